package oribi

import (
	"cmp"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

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
	// Workers is the number of goroutines that read, at most.
	Workers int

	RowSets    RowSetCounts
	Rows       RowCounts
	Predicates []PredicateCounts // in the order of evaluation: those that tested more rows first
	Columns    []ColumnCounts    // those that the read needs, in the order of the schema

	verb string // the use of the rows: "returned", "counted", or "aggregated"
}

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

// Explain makes a read set *e to an explanation of what it did, when it ends: for a scan at the end
// of the loop over its rows, also if the loop was left early or there was an error. If the read
// fails before it reads rows, or does not run, *e does not change. A read that is explained is
// slower: it tests predicates one by one. A nil e has no effect.
func Explain(e *Explanation) CountOption {
	return countOption(func(o *readOptions) {
		if e != nil {
			o.explain = e
		}
	})
}

// Explain runs the scan to its end and describes what it did, without returning the rows. To get
// both, give Table.Scan the option Explain. Together with an error, the explanation describes the
// read up to then; it is nil if nothing was read.
func (sc *Scan) Explain() (*Explanation, error) {
	to, e := sc.o.explain, new(Explanation)
	sc.o.explain = e
	defer func() { sc.o.explain = to }()
	var failed error
	for _, err := range sc.Batches() {
		failed = err
	}
	if e.Table == "" { // it did not begin to read
		return nil, failed
	}
	if to != nil {
		*to = *e
	}
	return e, failed
}

// explaining fills an Explanation while a read runs.
type explaining struct {
	to       *Explanation
	e        Explanation
	stats    *scan.Stats
	schema   *schema.Schema
	tests    []PredicateCounts
	complete bool
}

// newExplaining begins the explanation of a read with options o, and makes o count.
func (sc *Scan) newExplaining(v *view, o *scan.Options) *explaining {
	x := beginExplaining(sc.o.explain, sc.t.tab.Name(), v.TableSchema.Schema, sc.o.where, o)
	if n := len(x.tests); v.Clock() >= 0 && n > 0 { // request has added it last
		x.tests[n-1].Predicate += " (rows that expire)"
	}
	return x
}

// beginExplaining begins the explanation of a scan of a table, and makes o count.
func beginExplaining(to *Explanation, table string, s *schema.Schema, where []Predicate, o *scan.Options) *explaining {
	x := &explaining{to: to, stats: scan.NewStats(&o.Filter), schema: s}
	o.Stats = x.stats
	x.e = Explanation{Table: table, Workers: 1, verb: "returned"}
	if len(where) > 0 {
		p := And(where...)
		readable := p.p.Readable(x.schema)
		x.e.Where = readable.String()
	}
	for p := range o.Filter.Tests() {
		x.tests = append(x.tests, PredicateCounts{Predicate: bind.TestText(x.schema, p), Column: p.Column})
	}
	return x
}

// ExplainScan makes *e the explanation of a scan of rows that are in no store, as those of a
// kudu.Table. s is their schema and where are the predicates of o.Filter, for the text. It sets
// o.Stats, with which the caller makes the scan; the iterator that wrap returns for it sets *e when
// it is closed, and ends after o.Limit rows, unless that is 0.
func ExplainScan(
	e *Explanation, table string, s *schema.Schema, where []Predicate, o *scan.Options,
) (wrap func(scan.Iterator) scan.Iterator) {
	x, limit := beginExplaining(e, table, s, where, o), int64(-1)
	if o.Limit > 0 {
		limit = o.Limit
	}
	return func(it scan.Iterator) scan.Iterator {
		if limit >= 0 {
			it = scan.Limit(it, limit)
		}
		return &explainedScan{Iterator: it, x: x, limit: limit}
	}
}

// timed adds the time since from to the time of the read.
func (x *explaining) timed(from time.Time) {
	if x != nil {
		x.e.Time += time.Since(from)
	}
}

// workers sets the number of goroutines.
func (x *explaining) workers(n int) {
	if x != nil {
		x.e.Workers = n
	}
}

// restart clears the counts of a read that begins again.
func (x *explaining) restart() {
	if x != nil {
		x.stats.Reset()
	}
}

// finish sets the explanation, after all iterators were closed. If returned is negative, all
// selected rows were returned.
func (x *explaining) finish(returned int64) {
	s := x.stats
	if returned < 0 {
		returned = s.Rows.Selected
	}
	e := &x.e
	e.Returned, e.Complete = returned, x.complete
	l := &s.Layout
	e.RowSets = RowSetCounts{Memory: l.MemRowSets, Disk: l.RowSets, Outside: l.Outside, Read: s.RowSetsRead()}
	e.RowSets.NotReached = l.RowSets - l.Outside - e.RowSets.Read
	r := &s.Rows
	e.Rows = RowCounts{
		Disk: l.FileRows, Memory: r.Memory, Outside: l.OutsideRows + r.Outside, Invisible: r.Invisible,
		Excluded:    r.Excluded,
		NotReturned: r.Selected - returned, Decoded: returned - r.Stored, Stored: r.Stored,
	}
	e.Rows.NotReached = e.Rows.Disk - e.Rows.Outside - r.File
	e.Predicates = slices.Clone(x.tests)
	for i := range e.Predicates {
		e.Predicates[i].set(&s.Tests[i])
	}
	// Each test reduces the rows that are left for the next one.
	slices.SortStableFunc(e.Predicates, func(a, b PredicateCounts) int { return cmp.Compare(b.Tested, a.Tested) })
	for i := range x.schema.Columns {
		c := &x.schema.Columns[i]
		if counts := s.Columns[c.ID]; counts != nil {
			e.Columns = append(e.Columns, columnCounts(c.Name, counts))
		}
	}
	*x.to = *e
}

func (p *PredicateCounts) set(t *batch.TestCounts) {
	p.Tested, p.Passed = t.Tested, t.Passed
	p.Schema, p.ZoneMap, p.Dictionary, p.Planes, p.Stored = t.Schema, t.ZoneMap, t.Dictionary, t.Planes, t.Stored
	p.Decoded, p.Changed, p.Memory, p.Untested = t.Decoded, t.Changed, t.Memory, t.Untested
}

func columnCounts(name string, counts *scan.ColumnCounts) ColumnCounts {
	uses := counts.Uses()
	c := ColumnCounts{
		Column: name, Outside: uses[batch.BlockOutside], Skipped: uses[batch.BlockSkipped],
		ZoneMap: uses[batch.BlockZoneMap],
		Stored:  uses[batch.BlockStored], Decoded: uses[batch.BlockDecoded], Cells: counts.Decoded,
	}
	for _, n := range uses {
		c.Blocks += n
	}
	return c
}

// explainedScan explains the scan that it returns.
type explainedScan struct {
	scan.Iterator
	x        *explaining // nil: closed
	returned int64
	limit    int64 // below 0: none
}

func (s *explainedScan) Next() bool {
	from := time.Now()
	ok := s.Iterator.Next()
	if s.x == nil {
		return ok
	}
	s.x.timed(from)
	if s.x.complete = !ok; ok { // complete unless Close returns an error
		s.returned += int64(s.Batch().Selected())
	}
	return ok
}

func (s *explainedScan) Close() error {
	from := time.Now()
	err := s.Iterator.Close()
	if x := s.x; x != nil {
		s.x = nil
		x.timed(from)
		x.complete = err == nil && (x.complete || s.returned == s.limit)
		x.finish(s.returned)
	}
	return err
}
