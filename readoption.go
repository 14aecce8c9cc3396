package oribi

import (
	"slices"

	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Each read takes the options that it supports and no others: an option that a call does not
// support does not compile. A nil option changes nothing.
type (
	// GetOption is an option of Table.Get, GetCells, GetMany, GetManyCells and History: Columns,
	// AsOf, At, Latest.
	GetOption interface {
		option
		get()
	}

	// ScanOption is an option of Table.Scan, which takes all options of reads.
	ScanOption interface {
		option
		scan()
	}

	// TypedScanOption is an option of TableOf.Scan and ScanAs: those of Table.Scan without Columns.
	TypedScanOption interface {
		ScanOption
		typedScan()
	}

	// CountOption is an option of Table.Count: Where, From, To, Prefix, AsOf, At, Latest.
	CountOption interface {
		TypedScanOption
		count()
	}

	// DiffOption is an option of Table.Diff: Columns, From, To, Prefix.
	DiffOption interface {
		option
		diff()
	}

	// ReadOption is an option of every read of a state: AsOf, At, Latest. The reads of typed rows
	// other than Scan and Diff take no other.
	ReadOption interface {
		GetOption
		CountOption
		read()
	}

	// RangeOption is an option of every read of a key range: From, To, Prefix. TableOf.Diff takes no
	// other.
	RangeOption interface {
		CountOption
		DiffOption
		BulkOption
	}

	// ColumnsOption is what Columns returns, an option of every read of an untyped row. Batch.Get
	// takes no other.
	ColumnsOption interface {
		GetOption
		ScanOption
		DiffOption
		columns()
	}
)

// option is what all options of reads are.
type option interface{ apply(*readOptions) }

// The options by the calls that take them.
type (
	readOption    func(*readOptions) // all reads of a state
	columnsOption func(*readOptions) // all reads of untyped rows
	rangeOption   func(*readOptions) // scans, counts, diffs
	whereOption   func(*readOptions) // scans, counts
	rowsOption    func(*readOptions) // scans
)

func (f readOption) apply(o *readOptions)    { f(o) }
func (f columnsOption) apply(o *readOptions) { f(o) }
func (f rangeOption) apply(o *readOptions)   { f(o) }
func (f whereOption) apply(o *readOptions)   { f(o) }
func (f rowsOption) apply(o *readOptions)    { f(o) }

func (readOption) get()        {}
func (readOption) scan()       {}
func (readOption) typedScan()  {}
func (readOption) count()      {}
func (readOption) read()       {}
func (columnsOption) get()     {}
func (columnsOption) scan()    {}
func (columnsOption) diff()    {}
func (columnsOption) columns() {}
func (rangeOption) scan()      {}
func (rangeOption) typedScan() {}
func (rangeOption) count()     {}
func (rangeOption) diff()      {}
func (whereOption) scan()      {}
func (whereOption) typedScan() {}
func (whereOption) count()     {}
func (rowsOption) scan()       {}
func (rowsOption) typedScan()  {}

// readOptions are the options of one read.
type readOptions struct {
	columns  []string
	all      bool
	at       mvcc.Timestamp
	asOf     bool
	snapshot *Snapshot // of at; nil for any other timestamp
	where    []Predicate
	lower    any
	upper    any
	prefix   any
	limit    int64 // below 0: none
	anyOrder bool
	fit      func(*tablet.Shape) (columns []int, err error) // chooses the columns instead; nil: columns and all do
}

func collect[O option](opts []O) readOptions {
	if len(opts) == 0 {
		return readOptions{all: true, limit: -1}
	}
	o := readOptions{all: true, limit: -1} // escapes: a read without options does not pay for that
	for _, opt := range opts {
		if any(opt) != nil {
			opt.apply(&o)
		}
	}
	return o
}

// Columns names the columns to read, in that order; of no names it reads none, only whether there
// is a row. Without it, a read returns all columns in schema order. Errors of the read: ErrNoColumn
// for a name that the table does not have, ErrSchema for one given twice.
func Columns(names ...string) ColumnsOption {
	names = slices.Clone(names)
	return columnsOption(func(o *readOptions) { o.columns, o.all = names, false })
}

// AsOf reads the state at ts: the write batch that got ts, and everything before it. Without it, a
// read returns the newest published state. A read as of ts can be repeated, with the same answer,
// as long as the table's history reaches back to ts; after a kill only if ts was not ahead of the
// newest write batch.
//
// Errors of the read: ErrTooOld below the history floor; ErrFuture for a timestamp above both the
// clock's microsecond and the newest timestamp (Store.AdvanceClock).
func AsOf(ts mvcc.Timestamp) ReadOption {
	return readOption(func(o *readOptions) { o.at, o.asOf, o.snapshot = ts, true, nil })
}

// At reads the state of a snapshot. Errors of the read: ErrClosed when the snapshot or the store
// was closed.
func At(sn *Snapshot) ReadOption {
	return readOption(func(o *readOptions) { o.at, o.asOf, o.snapshot = sn.ts, true, sn })
}

// Latest reads the newest published state, as a read without AsOf or At does.
func Latest() ReadOption {
	return readOption(func(o *readOptions) { o.at, o.asOf, o.snapshot = 0, false, nil })
}

// Where leaves out the rows for which one of the predicates is not true. It may be given more than
// once: all predicates of all Wheres must be true. Of no predicates it leaves out none.
func Where(predicates ...Predicate) CountOption {
	predicates = slices.Clone(predicates)
	return whereOption(func(o *readOptions) { o.where = append(o.where, predicates...) })
}

// From begins a read at the first row whose key is not below key: a Go value for a key of one
// column, a Key of the first columns for a compound one.
func From(key any) RangeOption { return rangeOption(func(o *readOptions) { o.lower = key }) }

// To ends a read before the first row whose key is not below key.
func To(key any) RangeOption { return rangeOption(func(o *readOptions) { o.upper = key }) }

// Prefix reads the rows whose keys begin with key: a Key of the first columns, or one Go value. The
// columns given are equal to their values; only the last column of the whole key, if it is a string
// or binary, may go on after its value. In a table with the key (host, path),
//
//	Prefix("example.org")                      all paths of that host, and of no other
//	Prefix(Key{"example.org", "/docs/"})       its paths that begin with /docs/
//
// From and To narrow the range further.
func Prefix(key any) RangeOption { return rangeOption(func(o *readOptions) { o.prefix = key }) }

// Limit ends a scan after n rows. Limit(0) reads no row; a negative n is no limit.
func Limit(n int64) TypedScanOption { return rowsOption(func(o *readOptions) { o.limit = n }) }

// AnyOrder lets a scan return rows in the order that is cheapest, instead of key order.
func AnyOrder() TypedScanOption { return rowsOption(func(o *readOptions) { o.anyOrder = true }) }
