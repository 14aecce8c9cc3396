package arrowio

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// ReaderOptions are options of NewReader.
type ReaderOptions struct {
	// Allocator allocates the memory of cells that are copied. nil means memory.DefaultAllocator.
	Allocator memory.Allocator

	// Dictionary names string, varchar, and binary columns that become dictionary arrays, with
	// indexes of type int32. The dictionary may differ from one record batch to the next, which
	// Arrow streams support and Arrow files do not.
	Dictionary []string
}

// NewReader returns the rows of a scan, of a table or in a transaction, as record batches in the
// order of the scan. The caller releases the reader; until then it keeps the history that it sees,
// as a running scan does. A record batch stays valid for as long as it is retained, also after the
// reader is released.
//
// The schema has the definition of the table in its metadata (see Define). Cells are copied only
// where Arrow has another layout: bools, decimals of up to 18 digits, byte strings, and arrays.
//
// Errors: a *ColumnError with ErrUnsupported for an int128 column; ErrSchema and ErrNoColumn for a
// name in Dictionary, or in the scan's options. Err returns the errors of the scan, and ErrConflict
// if the table was altered before the first call of Next.
func NewReader(scan *oribi.Scan, o ReaderOptions) (array.RecordReader, error) {
	r, err := newReader(scan, o)
	if err != nil {
		return nil, wrap(err)
	}
	return r, nil
}

func newReader(scan *oribi.Scan, o ReaderOptions) (*scanReader, error) {
	columns, err := scan.Columns()
	if err != nil {
		return nil, err
	}
	s, err := Schema(definitionOf(scan.Table(), columns))
	if err != nil {
		return nil, err
	}
	if s, err = withDictionaries(s, o.Dictionary); err != nil {
		return nil, err
	}
	r := &scanReader{scan: scan, columns: columns, schema: s}
	r.refs.Store(1)
	for i, c := range columns {
		r.exporters = append(r.exporters, newExporter(c, s.Field(i).Type, allocator(o.Allocator)))
	}
	return r, nil
}

// withDictionaries returns s with dictionaries for the named columns.
func withDictionaries(s *arrow.Schema, names []string) (*arrow.Schema, error) {
	fields := s.Fields()
	for _, name := range names {
		i := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, columnErrorf(name, "no such column in the scan: %w", ErrNoColumn)
		}
		switch fields[i].Type.ID() {
		case arrow.STRING, arrow.BINARY:
			fields[i].Type = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: fields[i].Type}
		case arrow.DICTIONARY:
		default:
			return nil, columnErrorf(name, "a dictionary of type %s, want strings or binary: %w", fields[i].Type, ErrSchema)
		}
	}
	metadata := s.Metadata()
	return arrow.NewSchema(fields, &metadata), nil
}

// scanReader is an array.RecordReader over a scan.
type scanReader struct {
	refs      atomic.Int64
	scan      *oribi.Scan
	columns   []schema.Column
	schema    *arrow.Schema
	exporters []*exporter

	begun bool
	pull  func() (*batch.RecordBatch, error, bool)
	stop  func()

	rest *batch.RecordBatch // dense; rows from at on are not returned yet. nil: none
	at   int
	cur  arrow.RecordBatch
	err  error
}

func (r *scanReader) Schema() *arrow.Schema          { return r.schema }
func (r *scanReader) RecordBatch() arrow.RecordBatch { return r.cur }
func (r *scanReader) Record() arrow.RecordBatch      { return r.cur }
func (r *scanReader) Err() error                     { return r.err }
func (r *scanReader) Retain()                        { r.refs.Add(1) }

func (r *scanReader) Release() {
	if r.refs.Add(-1) > 0 {
		return
	}
	r.drop()
	for _, x := range r.exporters {
		x.release()
	}
	if r.stop != nil {
		r.stop()
	}
	r.begun, r.pull, r.rest = true, nil, nil
}

// drop releases the current record batch.
func (r *scanReader) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// begin runs the scan. The batches belong to the reader if owned is set; otherwise each is valid
// until the next one.
func (r *scanReader) begin(owned bool) {
	batches := r.scan.Batches
	if owned {
		batches = r.scan.OwnedBatches
	}
	r.begun = true
	r.pull, r.stop = iter.Pull2(batches())
}

// next returns the next batch of the scan, nil at the end and after an error.
func (r *scanReader) next() *batch.RecordBatch {
	if r.err != nil || r.pull == nil {
		return nil
	}
	b, err, ok := r.pull()
	switch {
	case !ok:
		return nil
	case err == nil && !sameColumns(b.Schema, r.columns):
		err = fmt.Errorf("arrowio: table %q was altered before the scan began: %w", r.scan.Table().Name(), ErrConflict)
	}
	if err != nil {
		r.err = err
		return nil
	}
	return b
}

// sameColumns reports whether a scan that returns columns a has the names and types of b.
func sameColumns(a, b []schema.Column) bool {
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] ||
		slices.EqualFunc(a, b, func(a, b schema.Column) bool {
			return a.Name == b.Name && a.Type == b.Type && a.Nullable == b.Nullable && sameCells(&a, &b)
		})
}

func (r *scanReader) Next() bool {
	r.drop()
	if !r.begun {
		r.begin(true)
	}
	for r.rest == nil {
		b := r.next()
		if b == nil {
			return false
		}
		b.Compact()
		if b.Len > 0 {
			r.rest, r.at = b, 0
		}
	}
	from, to := r.at, fit(r.rest, r.at)
	cur, err := record(r.schema, r.exporters, r.rest, from, to)
	if err != nil {
		r.err, r.rest = wrap(err), nil
		return false
	}
	if r.at = to; to == r.rest.Len {
		r.rest = nil
	}
	r.cur = cur
	return true
}

// textBytes is the number of bytes of byte strings from which on a batch is divided.
const textBytes = 32 << 20

// fit returns the end of a record batch that begins with row from of b: its byte strings have up to
// textBytes, unless it has just 64 rows.
func fit(b *batch.RecordBatch, from int) int {
	size := 0
	for i := from; i < b.Len; i += 64 {
		end := min(i+64, b.Len)
		for _, v := range b.Columns {
			if v.Type.Variable() {
				for _, cell := range cellsOf(v, i, end) {
					size += len(cell)
				}
			}
		}
		if size > textBytes && i > from {
			return i
		}
	}
	return b.Len
}

// record returns rows [from, to) of a dense batch.
func record(s *arrow.Schema, exporters []*exporter, b *batch.RecordBatch, from, to int) (arrow.RecordBatch, error) {
	arrays := make([]arrow.Array, 0, len(b.Columns))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for i, v := range b.Columns {
		a, err := exporters[i].array(v, from, to)
		if err != nil {
			return nil, in(b.Schema[i].Name, -1, err)
		}
		arrays = append(arrays, a)
	}
	return array.NewRecordBatch(s, arrays, int64(to-from)), nil
}
