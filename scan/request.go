package scan

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Options are the parameters of a Request.
type Options struct {
	Schema  *schema.Schema
	Columns []int        // indexes in Schema of the columns to return, in that order
	Filter  batch.Filter // the scan returns rows for which it is true
	Lower   []byte       // encoded key, inclusive; nil for no bound
	Upper   []byte       // encoded key, exclusive; nil for no bound
	Rows    RowRange     // for scans of one DiskRowSet
	// Only opens the keys of the rows that are looked at, of a scan of a table: Lower, Upper, and Filter
	// select among them. nil means all rows.
	Only func() Keys
	// Row reads some columns of the row with a key for a scan with Only: it appends the cells to dst, unless
	// there is no such row. nil reads the row as of Snapshot.
	Row      func(key []byte, columns []int, dst [][]byte) (cells [][]byte, found bool, err error)
	Share    *RowShare     // for scans of one DiskRowSet without order, instead of Rows; may be nil
	Snapshot mvcc.Snapshot // the changes visible to the scan
	Keys     bool          // return encoded keys, which Merge requires

	// Descending returns the rows in descending order of their keys. It does not affect what Lower,
	// Upper and Rows select.
	Descending bool

	// Limit is the number of rows that the caller will read, if known; 0 means all. It only
	// determines the sizes of batches; the function Limit enforces a limit.
	Limit int64

	// MostRows is the maximum number of rows of a batch of a scan without filter; 0 means batch.RowsOf.
	MostRows int

	// TableBytes is the size of the table's files without row files, if known. It only determines
	// which files a DiskRowSet reads.
	TableBytes int64

	// Stats counts what the scan does; nil disables it.
	Stats *Stats
}

// Keys are keys of rows, in the order in which a scan returns them.
type Keys interface {
	// Next returns the next key, which is never overwritten. ok is false at the end and with an error.
	Next() (key []byte, ok bool, err error)
	Close()
}

// RowRange is the row IDs [From, To) of a DiskRowSet. A To of 0 means no upper bound; the zero
// value means all rows.
type RowRange struct{ From, To batch.Ordinal }

// RowShare divides the rows of a DiskRowSet among iterators. Each takes a range of them, and
// another one when it has read it, so it opens the columns once and all end at about the same time.
// It is safe for concurrent use.
type RowShare struct {
	rows, step uint64
	pause      func() error
	taken      atomic.Uint64 // ranges
}

// NewRowShare returns a share of rows [0, rows) in ranges of step rows. pause is called before a
// range is taken; its errors end an iterator.
func NewRowShare(rows, step batch.Ordinal, pause func() error) *RowShare {
	return &RowShare{rows: uint64(rows), step: uint64(step), pause: pause}
}

// Next returns the next range, or false if all rows are taken.
func (s *RowShare) Next() (r RowRange, ok bool, err error) {
	if s.Empty() {
		return r, false, nil
	}
	if err := s.pause(); err != nil {
		return r, false, err
	}
	from := (s.taken.Add(1) - 1) * s.step
	if from >= s.rows {
		return r, false, nil
	}
	return RowRange{batch.Ordinal(from), batch.Ordinal(min(s.rows, from+s.step))}, true, nil
}

// Empty reports whether all ranges have been taken.
func (s *RowShare) Empty() bool { return s.taken.Load()*s.step >= s.rows }

// Request is one scan of a set of rows. It is immutable, so iterators and goroutines may share it.
type Request struct {
	o          Options
	projection []schema.Column
	most       int // rows of a batch
}

// NewRequest checks options and returns a Request. Columns and bounds must not be changed
// afterwards.
// Errors: ErrSchema for columns and predicates that do not match the schema; an untyped error for a
// negative limit or row range.
func NewRequest(o Options) (*Request, error) {
	if o.Schema == nil {
		return nil, fmt.Errorf("scan: no schema: %w", fault.ErrSchema)
	}
	for _, c := range o.Columns {
		if c < 0 || c >= len(o.Schema.Columns) {
			return nil, fmt.Errorf("scan: column %d of %d: %w", c, len(o.Schema.Columns), fault.ErrSchema)
		}
	}
	for p := range o.Filter.Tests() {
		c := o.Schema.IndexID(p.ID)
		if c < 0 {
			return nil, fmt.Errorf("scan: predicate on column ID %d: no such column: %w", p.ID, fault.ErrSchema)
		}
		switch column := &o.Schema.Columns[c]; {
		case p.Type != column.Type:
			return nil, fmt.Errorf("scan: predicate on column %q: made for type %s, the column has %s: %w",
				column.Name, p.Type, column.Type, fault.ErrSchema)
		case !p.Prepared():
			return nil, fmt.Errorf("scan: predicate on column %q: not prepared: %w", column.Name, fault.ErrSchema)
		}
	}
	if o.Limit < 0 || o.MostRows < 0 {
		return nil, fmt.Errorf("scan: limit %d, batches of at most %d rows", o.Limit, o.MostRows)
	}
	if o.Share != nil && (o.Descending || o.Rows != (RowRange{})) {
		return nil, fmt.Errorf("scan: shared rows in descending order, or in a range")
	}
	if o.Rows.To != 0 && o.Rows.To < o.Rows.From {
		return nil, fmt.Errorf("scan: rows [%d, %d)", o.Rows.From, o.Rows.To)
	}
	columns := projection(&o)
	most := batch.RowsOf(batch.RowBytes(columns))
	if o.MostRows > 0 && o.Filter.All() {
		most = min(most, o.MostRows)
	}
	return &Request{o, columns, most}, nil
}

// projection returns the columns of the batches.
func projection(o *Options) []schema.Column {
	if isAll(o.Columns, len(o.Schema.Columns)) {
		return o.Schema.Columns
	}
	out := make([]schema.Column, len(o.Columns))
	for i, c := range o.Columns {
		out[i] = o.Schema.Columns[c]
	}
	return out
}

// isAll reports whether columns are 0 to n−1.
func isAll(columns []int, n int) bool {
	if len(columns) != n {
		return false
	}
	for i, c := range columns {
		if i != c {
			return false
		}
	}
	return true
}

// Schema returns the schema of the rows.
func (r *Request) Schema() *schema.Schema { return r.o.Schema }

// Columns returns the indexes in the schema of the columns to return. Read-only.
func (r *Request) Columns() []int { return r.o.Columns }

// Filter returns the filter. Read-only.
func (r *Request) Filter() *batch.Filter { return &r.o.Filter }

// Bounds returns the range [lower, upper) of encoded keys; nil for no bound. Read-only.
func (r *Request) Bounds() (lower, upper []byte) { return r.o.Lower, r.o.Upper }

// Share returns the share from which the iterator takes its rows, nil if it reads the range Rows.
func (r *Request) Share() *RowShare { return r.o.Share }

// TableBytes returns the size of the table's files without row files, 0 if it is not known.
func (r *Request) TableBytes() int64 { return r.o.TableBytes }

// Rows returns the range of row IDs.
func (r *Request) Rows() RowRange { return r.o.Rows }

// Snapshot returns the changes visible to the scan.
func (r *Request) Snapshot() mvcc.Snapshot { return r.o.Snapshot }

// Keys reports whether batches have encoded keys.
func (r *Request) Keys() bool { return r.o.Keys }

// Descending reports whether rows are in descending order of their keys.
func (r *Request) Descending() bool { return r.o.Descending }

// compare compares two keys in the order of the scan.
func compare(a, b []byte, descending bool) int {
	if descending {
		a, b = b, a
	}
	return bytes.Compare(a, b)
}

// before reports whether key a comes before key b in the order of the scan.
func before(a, b []byte, descending bool) bool { return compare(a, b, descending) < 0 }

// A scan that may need few rows starts with small batches, to avoid reading rows that the caller
// does not use. Each batch is batchGrowth times as large as the one before; a long scan reaches
// full batches after a few thousand rows.
const (
	openRows    = 128 // first batch of a scan with a bound at its beginning but none at its end
	leastRows   = 16  // minimum for any first batch
	leastTested = 64  // minimum if there is a filter: predicates test this many cells per step
	batchGrowth = 4
)

// MostRows returns how many rows a batch has at most.
func (r *Request) MostRows() int { return r.most }

// FirstRows returns how many rows a set of rows should read for its first batch: MostRows, or less if the request has a limit, or has a bound at its beginning but none at its end.
func (r *Request) FirstRows() int {
	first, last := r.o.Lower, r.o.Upper
	if r.o.Descending {
		first, last = last, first
	}
	switch {
	case r.o.Limit > 0 && r.o.Filter.All():
		return int(min(max(r.o.Limit, leastRows), int64(r.most)))
	case r.o.Limit > 0:
		return int(min(max(r.o.Limit, leastTested), int64(r.most)))
	case first != nil && last == nil:
		return openRows
	}
	return r.most
}

// NextRows returns how many rows a set of rows should read after a batch of n.
func (r *Request) NextRows(n int) int { return min(batchGrowth*n, r.most) }

// LimitRows returns how many of n rows a set of rows should read if it has returned that many
// before: if the request's limit leaves fewer than n, about as many as it leaves. With a filter, it
// is not known how many rows have to be read.
func (r *Request) LimitRows(n int, returned int64) int {
	if left := r.o.Limit - returned; left > 0 && r.o.Filter.All() {
		return int(min(int64(n), max(left, leastRows)))
	}
	return n
}

// Projection returns the columns of the batches. Read-only.
func (r *Request) Projection() []schema.Column { return r.projection }
