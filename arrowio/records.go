package arrowio

import (
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// records makes record batches of batches: what the record readers of this package have in common.
type records struct {
	refs      atomic.Int64
	schema    *arrow.Schema
	exporters []*exporter

	rest *batch.RecordBatch // dense; rows from at on are not returned yet. nil: none
	at   int
	cur  arrow.RecordBatch
	err  error
}

// begin gives r one reference and the columns of its batches.
func (r *records) begin(s *arrow.Schema, columns []schema.Column, mem memory.Allocator) {
	r.refs.Store(1)
	r.schema = s
	for i, c := range columns {
		r.exporters = append(r.exporters, newExporter(c, s.Field(i).Type, mem))
	}
}

// Schema returns the Arrow schema, with the definition in its metadata.
func (r *records) Schema() *arrow.Schema { return r.schema }

// RecordBatch returns the current record batch, which is valid until the next call of Next unless
// the caller retains it.
func (r *records) RecordBatch() arrow.RecordBatch { return r.cur }

// Record is the former name of RecordBatch.
func (r *records) Record() arrow.RecordBatch { return r.cur }

// Err returns the error that has ended the rows.
func (r *records) Err() error { return r.err }

// Retain adds a reference.
func (r *records) Retain() { r.refs.Add(1) }

// release removes a reference, and reports whether it was the last one. Then it releases all memory
// except the memory of retained record batches.
func (r *records) release() bool {
	if r.refs.Add(-1) > 0 {
		return false
	}
	r.drop()
	r.rest = nil
	for _, x := range r.exporters {
		x.release()
	}
	return true
}

// drop releases the current record batch.
func (r *records) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// next makes the current record batch of the next rows: the rest of the last batch, or the rows of
// the batch that fetch returns. That batch is dense, not empty, and is not modified later; it is
// nil at the end. next returns false at the end and after an error.
func (r *records) next(fetch func() *batch.RecordBatch) bool {
	r.drop()
	if r.rest == nil {
		if r.rest, r.at = fetch(), 0; r.rest == nil {
			return false
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
