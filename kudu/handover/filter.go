package handover

import (
	"context"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// eachKey calls use with the encoded key of each row of a rowset, deleted ones included.
func eachKey(ctx context.Context, d *rowset.DiskRowSet, use func(key []byte) error) error {
	h, err := d.Histories(mvcc.Everything)
	if err != nil {
		return err
	}
	for {
		rows, err := h.NextStored()
		if err != nil || rows == nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, key := range rows.Rows.Keys {
			if err := use(key); err != nil {
				return err
			}
		}
	}
}

// within is the rows of a rowset that belong to a partition, as the input of a compaction.
type within struct {
	rows *rowset.Histories
	p    *partition
	out  change.Rows // the last result
}

// Next implements rewrite.Input.
func (w *within) Next() (*change.Rows, error) {
	for {
		rows, err := w.rows.Next()
		if err != nil || rows == nil {
			return nil, err
		}
		if err := w.take(rows); err != nil {
			return nil, err
		}
		if len(w.out.Keys) > 0 {
			return &w.out, nil
		}
	}
}

// take sets w.out to the rows that belong to the partition.
func (w *within) take(rows *change.Rows) error {
	n := len(rows.Keys)
	selection := batch.MakeBitmap(n)
	to := make([]int, n) // positions in the result, −1 for others
	w.out.Keys, w.out.Undo, w.out.Redo = w.out.Keys[:0], w.out.Undo[:0], w.out.Redo[:0]
	for i, key := range rows.Keys {
		ok, err := w.p.has(key)
		if err != nil {
			return err
		}
		to[i] = -1
		if ok {
			selection.Set(i)
			to[i] = len(w.out.Keys)
			w.out.Keys = append(w.out.Keys, key)
		}
	}
	for i, v := range w.out.Batch.Columns {
		v.Reset(0)
		v.AppendSelected(rows.Batch.Columns[i], selection, 0, n)
	}
	w.out.Batch.Len = len(w.out.Keys)
	w.out.Undo = moved(w.out.Undo, rows.Undo, to)
	w.out.Redo = moved(w.out.Redo, rows.Redo, to)
	return nil
}

// moved appends the changes of rows that have a new position.
func moved(dst, src []change.Delta, to []int) []change.Delta {
	for _, d := range src {
		if at := to[d.Row]; at >= 0 {
			d.Row = uint32(at)
			dst = append(dst, d)
		}
	}
	return dst
}

// rewrite returns new rowsets, in memory, with the rows of a rowset that belong to a partition and
// all their history.
func (p *partition) rewrite(ctx context.Context, d *rowset.DiskRowSet, s *schema.Schema) ([]rowset.Files, error) {
	h, err := d.Histories(mvcc.Everything)
	if err != nil {
		return nil, err
	}
	made := &rowset.Overlay{}
	next := uint64(0)
	w := rowset.NewRollingWriter(made, s, func() uint64 { next++; return next }, 0)
	w.RowFiles = schema.NoRowFile // its blocks get other IDs
	in := &within{rows: h, p: p, out: change.Rows{Batch: batch.New(s.Columns, 0)}}
	if _, err := rewrite.Run(ctx, rewrite.Job{Schema: s, Inputs: []rewrite.Input{in},
		Writer: w}); err != nil {
		return nil, err
	}
	sets, err := w.Finish()
	if err != nil {
		return nil, err
	}
	var out []rowset.Files
	for _, m := range sets {
		set, err := rowset.Open(s, m, rowset.Options{Blocks: made})
		if err != nil {
			return nil, err
		}
		f, err := tablet.PlainFiles(ctx, set, s, made)
		set.Unref()
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
