package oribi

import (
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/grouping"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scaninfo"
)

// The options of reads are grouped by what they say: which state, which columns, which rows. Each
// call has a type of its own for the options that it takes, the same for untyped rows, structs, and
// transactions. An option that a call does not take does not compile. A nil option has no effect.
type (
	// ReadOption says which state is read: AsOf, AsOfTime, At, Latest. It is an option of every
	// read of a state that no transaction and no other argument says.
	ReadOption interface {
		GetOption
		CursorOption
		CountOption
		read()
	}

	// ColumnsOption says which columns are read: Columns. It is an option of every read that
	// returns rows, and the only one of Tx.Get, TxOf.Get, and Batch.Get.
	ColumnsOption interface {
		GetOption
		CursorOption
		RowsOption
		columns()
	}

	// RangeOption says which rows are read or changed: From, To, Prefix, Where. It is an option of
	// every read of several rows and of bulk calls.
	RangeOption interface {
		CursorOption
		CountOption
		RowsOption
		BulkOption
	}

	// GetOption is an option of Get, GetCells, GetMany, GetManyCells, GetAs, History, and
	// Table.Explain: each ReadOption and ColumnsOption.
	GetOption interface {
		option
		get()
	}

	// ScanOption is an option of Table.Scan, TableOf.Scan, and ScanAs: each RowsOption, ReadOption,
	// and CountOption.
	ScanOption interface {
		option
		scan()
	}

	// RowsOption is an option of Tx.Scan, TxOf.Scan, and Diff, whose states are given: Desc,
	// AnyOrder, OrderBy, Limit, Above, Below, and each ColumnsOption, RangeOption, and IndexOption.
	RowsOption interface {
		ScanOption
		rows()
	}

	// TxCursorOption is an option of Tx.Cursor and TxOf.Cursor: each ColumnsOption and RangeOption.
	TxCursorOption interface {
		CursorOption
		RowsOption
	}

	// CursorOption is an option of Cursor: each ReadOption, ColumnsOption, and RangeOption.
	CursorOption interface {
		option
		cursor()
	}

	// CountOption is an option of Table.Count: Workers, Explain, and each ReadOption, RangeOption, and
	// IndexOption.
	CountOption interface {
		ScanOption
		AggregateOption
		count()
	}

	// AggregateOption is an option of Table.Aggregate: GroupBy, GroupByPeriod, Top, and each
	// CountOption.
	AggregateOption interface {
		option
		aggregate()
	}
)

// option is common to all options of reads.
type option interface{ apply(*readOptions) }

// The options by the calls that take them.
type (
	readOption    func(*readOptions) // all reads of a state
	columnsOption func(*readOptions) // all reads that return rows
	rangeOption   func(*readOptions) // scans, cursors, counts, aggregates, diffs, bulk calls
	rowsOption    func(*readOptions) // scans, diffs
	countOption   func(*readOptions) // scans, counts, aggregates
	groupOption   func(*readOptions) // aggregates
)

func (f readOption) apply(o *readOptions)    { f(o) }
func (f columnsOption) apply(o *readOptions) { f(o) }
func (f rangeOption) apply(o *readOptions)   { f(o) }
func (f rowsOption) apply(o *readOptions)    { f(o) }
func (f countOption) apply(o *readOptions)   { f(o) }
func (f groupOption) apply(o *readOptions)   { f(o) }

func (readOption) get()        {}
func (readOption) scan()       {}
func (readOption) cursor()     {}
func (readOption) count()      {}
func (readOption) aggregate()  {}
func (readOption) read()       {}
func (columnsOption) get()     {}
func (columnsOption) scan()    {}
func (columnsOption) cursor()  {}
func (columnsOption) rows()    {}
func (columnsOption) columns() {}
func (rangeOption) scan()      {}
func (rangeOption) rows()      {}
func (rangeOption) cursor()    {}
func (rangeOption) count()     {}
func (rangeOption) aggregate() {}
func (rowsOption) scan()       {}
func (rowsOption) rows()       {}
func (countOption) scan()      {}
func (countOption) count()     {}
func (countOption) aggregate() {}
func (groupOption) aggregate() {}

// readOptions are the options of one read.
type readOptions struct {
	point
	columns []string
	all     bool
	where   []Predicate
	lower   any
	upper   any
	prefix  any
	limit   int64 // below 0: none
	order   order
	groupBy []grouping.Key
	top     int          // groups of the result; 0: all
	explain *Explanation // set when the read ends, unless nil
	noIndex bool
	using   string // the index to use; empty if it is chosen
	orderBy string // the index in whose order the rows are, or empty
	above   any
	below   any
	// goroutines of a scan in any order; 0, 1: one, the caller
	workers int
	fit     func(*tablet.TableSchema) (columns []int, err error) // chooses the columns; if nil, columns and all do
}

// point is the state that is read. The zero point is the newest.
type point struct {
	at       mvcc.Timestamp
	asOf     bool
	snapshot *Snapshot // of at; nil for any other timestamp
	isTime   bool      // at follows from a time.Time
	zero     bool      // which was the zero Time
}

// order is the order of a scan's rows.
type order int

const (
	keyOrder order = iota
	descendingOrder
	anyOrder
)

func collect[O option](opts []O) readOptions {
	if len(opts) == 0 {
		return readOptions{all: true, limit: -1}
	}
	var o readOptions // escapes: a read without options does not pay for that
	collectInto(&o, opts)
	return o
}

// collectInto is collect for a caller that has the memory.
func collectInto[O option](o *readOptions, opts []O) {
	*o = readOptions{all: true, limit: -1}
	for _, opt := range opts {
		if any(opt) != nil {
			opt.apply(o)
		}
	}
}

// Columns chooses the columns to read, in the given order. Without names, a read returns no columns
// and only finds out which rows exist. Without Columns, it returns all columns in schema order. A
// read of structs leaves the fields of other columns zero.
//
// Errors of the read: ErrNoColumn for a name that the table does not have; ErrSchema for a name
// given twice, and for a column of which the struct has no field.
func Columns(names ...string) ColumnsOption {
	names = slices.Clone(names)
	return columnsOption(func(o *readOptions) { o.columns, o.all = names, false })
}

// AsOf reads the state at ts: the write batch with timestamp ts and all before it. Without AsOf, a
// read returns the newest published state. A read as of ts returns the same answer each time, as
// long as the table's history reaches back to ts. After a kill of the process, this is only certain
// if ts was not ahead of the newest write batch.
//
// ts is a hybrid time, such as Commit returns, and no Unix time: for a time.Time, use AsOfTime.
// Unless the store was opened with a clock of its own, AsOf, and all else that takes a timestamp,
// refuses a number that looks like a Unix time: any between First and the hybrid time of
// 2000-01-01.
//
// Errors of the read: ErrTooOld below the history floor, and for what looks like a Unix time;
// ErrFuture for a timestamp above both the clock's microsecond and the newest timestamp (see
// Store.AdvanceClock).
func AsOf(ts mvcc.Timestamp) ReadOption {
	return readOption(func(o *readOptions) { o.point = point{at: ts, asOf: true} })
}

// AsOfTime reads the state at the end of t's microsecond: AsOf of mvcc.EndOf(t). It is for stores
// whose timestamps are times, as they are with the default clock. Errors of the read: as for AsOf;
// ErrTooOld for the zero Time.
func AsOfTime(t time.Time) ReadOption {
	return readOption(func(o *readOptions) {
		o.point = point{at: mvcc.EndOf(t), asOf: true, isTime: true, zero: t.IsZero()}
	})
}

// At reads the state of a snapshot. Error of the read: ErrClosed if the snapshot or the store was
// closed.
func At(sn *Snapshot) ReadOption {
	if sn == nil {
		sn = &Snapshot{} // which belongs to no store
	}
	return readOption(func(o *readOptions) { o.point = point{at: sn.pin.TS, asOf: true, snapshot: sn} })
}

// Latest reads the newest published state, as does a read without AsOf and At.
func Latest() ReadOption {
	return readOption(func(o *readOptions) { o.point = point{} })
}

// Where selects the rows for which all predicates are true. If it is given more than once, the
// predicates of all of them must be true. Without predicates, it selects all rows.
//
// Comparisons of the first key columns that must all be true bound the keys that are read, as From
// and To do. A diff returns a row if the predicates are true for it in either of the two states.
func Where(predicates ...Predicate) RangeOption {
	predicates = slices.Clone(predicates)
	return rangeOption(func(o *readOptions) { o.where = append(o.where, predicates...) })
}

// From begins a read at the first row whose key is not below key. key is a Go value for a key of
// one column; otherwise it is a Key of the first columns, or of all. A nil key is no bound, as it
// is for To and Prefix.
func From(key any) RangeOption { return rangeOption(func(o *readOptions) { o.lower = key }) }

// To ends a read before the first row whose key is not below key, which is given as in From.
func To(key any) RangeOption { return rangeOption(func(o *readOptions) { o.upper = key }) }

// Prefix reads the rows whose keys begin with key: a Key of the first columns, or one Go value. The
// given columns must be equal to their values. Only if the last given column is the last of the
// whole key, and a string or binary, need it only begin with its value. In a table with the key
// (host, path),
//
//	Prefix("example.org")                      all paths of that host, and of no other
//	Prefix(Key{"example.org", "/docs/"})       its paths that begin with /docs/
//
// From and To narrow the range further.
func Prefix(key any) RangeOption { return rangeOption(func(o *readOptions) { o.prefix = key }) }

// Limit ends a scan, or a diff, after n rows. Limit(0) reads no rows; a negative n means no limit.
func Limit(n int64) RowsOption { return rowsOption(func(o *readOptions) { o.limit = n }) }

// Desc makes a scan or a diff return rows in descending key order, from the last row of the range
// to the first. From, To, and Prefix select the same rows as without it; Limit(n) takes the n last
// of them. Of Desc and AnyOrder, the last one given counts.
func Desc() RowsOption { return rowsOption(func(o *readOptions) { o.order = descendingOrder }) }

// AnyOrder lets a scan return rows in the cheapest order instead of key order. A diff returns them
// in key order.
func AnyOrder() RowsOption { return rowsOption(func(o *readOptions) { o.order = anyOrder }) }

// GroupBy makes Table.Aggregate compute its aggregates for each group of rows that are equal in the
// given columns, which may have any type. NULL is a value like any other. So are NaN, and zero of
// either sign. If GroupBy is given more than once, the rows are grouped by the columns of all of
// them. Errors of the read: ErrNoColumn; ErrSchema for a name given twice.
func GroupBy(columns ...string) AggregateOption {
	columns = slices.Clone(columns)
	return groupOption(func(o *readOptions) {
		for _, c := range columns {
			o.groupBy = append(o.groupBy, grouping.Key{Column: c})
		}
	})
}

// GroupByPeriod is GroupBy with the period of a date or timestamp column, in UTC: "year", "month",
// "day", or "hour". The value of a group is a string, the beginning of an RFC 3339 time, such as
// "2026-11" for a month; the groups are in the order of time. The column of the result has a name
// such as month(seen). Errors of the read: as for GroupBy; ErrSchema for another period or type.
func GroupByPeriod(period, column string) AggregateOption {
	return groupOption(func(o *readOptions) {
		o.groupBy = append(o.groupBy, grouping.Key{Column: column, ByPeriod: true, Period: period})
	})
}

// Top makes Table.Aggregate return only the n groups, at least one, with the greatest values of the
// first aggregate, the greatest first. NULLs are after all other values, NaN is greater than all
// numbers, and groups with equal values are in the order of their keys. AggregateResult.Total is
// the number of all groups, so
//
//	r, err := t.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, oribi.GroupBy(c),
//		oribi.Where(oribi.NotNull(c)), oribi.Top(1))
//
// counts the different values of a column, and finds the most frequent one.
//
// There may be more groups than fit in memory: the rows are then read several times, each time for
// another part of the groups. Errors of the read: ErrSchema without an aggregate; one if the n
// groups take more than an eighth of Options.MemoryLimit.
func Top(n int) AggregateOption {
	return groupOption(func(o *readOptions) { o.top = max(n, 1) })
}

// BulkOption is an option of Table.UpdateWhere, DeleteWhere, DeleteRange, Truncate, and RestoreTo:
// InPieces, PieceBytes, Confirm, NoSync, and each RangeOption and IndexOption. A nil option has no effect.
type BulkOption interface{ bulk(*bulkOptions) }

type bulkOptions struct {
	read   readOptions // which rows
	pieces int64       // bytes of a write batch; 0 = there is only one
	noSync bool

	confirm func(rows int64) error // nil: nobody asks
	most    int64                  // rows that confirm has accepted
}

// Explanation describes what a scan, a count, or an aggregate did: what it read, what it skipped
// and why, and how it tested each predicate. The option Explain and Scan.Explain return one. Its
// parts are counts of rowsets, of rows, of each predicate, and of each column.
type (
	Explanation     = scaninfo.Explanation
	RowSetCounts    = scaninfo.RowSetCounts
	RowCounts       = scaninfo.RowCounts
	PredicateCounts = scaninfo.PredicateCounts
	ColumnCounts    = scaninfo.ColumnCounts
	IndexChoice     = scaninfo.IndexChoice
)
