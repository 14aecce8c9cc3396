package handover

import (
	"context"
	"errors"
	"iter"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// encoded yields the rows of a table as of a snapshot in new rowsets, in memory, one at a time.
// They are inserted at ts.
func encoded(
	ctx context.Context, from *kudu.Table, snap mvcc.Snapshot, ts mvcc.Timestamp,
) iter.Seq2[rowset.Files, error] {
	return func(yield func(rowset.Files, error) bool) {
		var cols []int
		for i := range from.Schema.Columns {
			cols = append(cols, i)
		}
		it, err := from.Scan(scan.Options{Columns: cols, Snapshot: snap, Keys: true}, true)
		if err != nil {
			yield(rowset.Files{}, err)
			return
		}
		e := encoder{ctx: ctx, from: from, it: it, ts: ts, rows: change.Rows{Batch: batch.New(from.Schema.Columns, 0)}}
		for e.next() {
			if !yield(e.out, nil) {
				it.Close() // reading ends early: its error does not matter
				return
			}
		}
		if err := errors.Join(e.err, it.Close()); err != nil {
			yield(rowset.Files{}, err)
		}
	}
}

// encoder writes rowsets of the rows that an iterator returns.
type encoder struct {
	ctx  context.Context
	from *kudu.Table
	it   scan.Iterator
	ts   mvcc.Timestamp
	rows change.Rows // scratch
	out  rowset.Files
	id   uint64
	err  error
}

// next writes the next rowset. It reports whether there is one.
func (e *encoder) next() bool {
	o := &rowset.Overlay{}
	w, err := rowset.NewWriter(o, e.from.Schema, e.id)
	for err == nil && w.Bytes() < rowset.DefaultTargetBytes && e.it.Next() {
		if err = e.ctx.Err(); err == nil {
			err = w.Append(e.selected(e.it.Batch(), e.it.Keys()))
		}
	}
	if err != nil || w.Rows() == 0 {
		e.err = err
		return false
	}
	m, err := w.Finish()
	if err != nil {
		e.err = err
		return false
	}
	m.Births = []delta.Birth{{Rows: uint32(m.Rows), TS: e.ts}}
	e.out = rowset.Files{Metadata: m, Blocks: o}
	e.id++
	return true
}

// selected returns the selected rows of a batch, valid until the next call.
func (e *encoder) selected(b *batch.RecordBatch, keys [][]byte) *change.Rows {
	e.rows.Batch.Reset(0)
	e.rows.Keys = e.rows.Keys[:0]
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		e.rows.Keys = append(e.rows.Keys, keys[i])
		for c, v := range e.rows.Batch.Columns {
			v.AppendCell(b.Columns[c].Cell(i))
		}
	}
	e.rows.Batch.Len = len(e.rows.Keys)
	return &e.rows
}
