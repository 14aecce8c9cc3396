package scaninfo

import "time"

// Explanation describes what a scan, a count, or an aggregate did: what it read, what it skipped
// and why, and how it tested each predicate. The option Explain and Scan.Explain return one. Counts
// are exact: where a field says so, the parts add up to the whole.
type Explanation struct {
	Table string
	Where string // the predicates in the syntax of SQL; empty without predicates

	// Returned is the number of rows that the scan returned, or that were counted or aggregated.
	Returned int64
	// Complete reports whether the read came to its end or to its limit. Otherwise an error or the
	// caller ended it, and the counts are those up to then.
	Complete bool
	// FromCounters reports that the read was a count of all rows. It added up counters and read no
	// rows, so all other counts are 0.
	FromCounters bool
	// Time is the time spent in the read, without the time of the caller's loop over the rows.
	Time time.Duration
	// Index is the name of the index that found the keys of Keys rows, which were read one by one and are
	// in no other count; empty if none was used.
	Index string
	Keys  int64
	// Indexes says why the read used an index, or did not, for each that it has looked at.
	Indexes []IndexChoice
	// Workers is the number of goroutines that read, at most.
	Workers int

	RowSets    RowSetCounts
	Rows       RowCounts
	Predicates []PredicateCounts // in the order of evaluation: those that tested more rows first
	Columns    []ColumnCounts    // those that the read needs, in the order of the schema

	verb string // the use of the rows: "returned", "counted", or "aggregated"
}

// IndexChoice says why a read used an index, or did not.
type IndexChoice struct{ Index, Reason string }

// RowSetCounts counts rowsets, the sets of rows that a table consists of. Disk is the sum of the
// fields after it.
type RowSetCounts struct {
	Memory int // in memory: rows that were not flushed yet

	Disk       int // on disk
	Outside    int // skipped: no key of the rowset is in the key range
	NotReached int // not read: the read ended before
	Read       int
}

// RowCounts counts rows. Disk and Memory together are the sum of the fields after them.
type RowCounts struct {
	Disk   int64 // in rowsets on disk, deleted rows included
	Memory int64 // in rowsets in memory: rows in the key range that the read sees

	Outside     int64 // on disk: skipped, because they are outside of the key range
	NotReached  int64 // on disk: not read, because the read ended before
	Invisible   int64 // on disk: deleted, or inserted after the time that is read
	Excluded    int64 // the predicates are not true
	NotReturned int64 // the predicates are true, but the read ended before it returned the row
	Decoded     int64 // returned, counted, or aggregated as decoded columns
	Stored      int64 // counted or aggregated from the values as they are stored
}

// PredicateCounts describes one predicate of a read. A predicate such as Between that is tested in
// two steps appears as two. The test for expired rows is one of them, if rows of the table expire:
// its text says so. Tested is the sum of the fields after Passed.
type PredicateCounts struct {
	Predicate string // in the syntax of SQL
	Column    string

	Tested int64 // cells: rows that were left when the predicate was tested
	Passed int64 // of these, those for which it is true

	Schema     int64 // decided by the schema: no cell is NULL, or all have the default
	ZoneMap    int64 // decided by the bounds of the cblock, which was not read for that
	Dictionary int64 // decided by the dictionary: all of its words pass, or none
	Planes     int64 // decided by bit planes that are constant in a chunk of the cblock
	Stored     int64 // tested by the values as they are stored, without decoding them
	Decoded    int64 // tested after decoding them
	Changed    int64 // changed since the flush: tested by the new cell
	Memory     int64 // of rows in memory
	Untested   int64 // passed without a test, while the filter of InBloom rests, unless NULL
}

// Selectivity returns the share of the tested cells for which the predicate is true, 1 if none was
// tested.
func (p *PredicateCounts) Selectivity() float64 {
	if p.Tested == 0 {
		return 1
	}
	return float64(p.Passed) / float64(p.Tested)
}

// ColumnCounts counts the cblocks of a column in the rowsets that were read: the pieces of a column
// file that are read and decoded separately. Each is counted once, by the most that was done with
// it. Blocks is the sum of the fields after it, except Cells.
type ColumnCounts struct {
	Column string

	Blocks  int64
	Outside int64 // no row of it is in the key range
	Skipped int64 // no row of it was left, or the read ended before
	ZoneMap int64 // its bounds decided a predicate or an extreme; it was not read
	Stored  int64 // read, and tested or computed with as it is stored
	Decoded int64 // read, and some or all of its cells decoded

	Cells int64 // decoded cells
}

// Counted returns the explanation of a count of n rows of a table that added up counters and took
// d.
func Counted(table string, n int64, d time.Duration) Explanation {
	return Explanation{Table: table, Returned: n, Complete: true, FromCounters: true, Time: d, verb: "counted"}
}
