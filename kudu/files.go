package kudu

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// RowSets yields the files of all rowsets, and makes files of the operations that only the logs
// have: a rowset that a log changes has one more file of redos, in memory, and the rows that a log
// inserts are rowsets in memory, one tablet's at a time. Metadata and blocks are valid until the
// next step. The last step may be an error: ctx.Err() or ErrCorrupt.
func (t *Table) RowSets(ctx context.Context) iter.Seq2[rowset.Files, error] {
	return func(yield func(rowset.Files, error) bool) {
		for _, tablet := range t.tablets {
			for _, set := range tablet.sets {
				f, err := tablet.flushed(set)
				if err == nil {
					err = ctx.Err()
				}
				if !yieldFiles(yield, tablet, f, err) {
					return
				}
			}
			added, err := tablet.inserted(ctx)
			if err != nil {
				yieldFiles(yield, tablet, rowset.Files{}, err)
				return
			}
			for _, f := range added {
				if !yieldFiles(yield, tablet, f, nil) {
					return
				}
			}
		}
	}
}

// yieldFiles passes a rowset or an error on. It reports whether there may be more.
func yieldFiles(yield func(rowset.Files, error) bool, t *tablet, f rowset.Files, err error) bool {
	if err != nil {
		yield(rowset.Files{}, fmt.Errorf("kudu: tablet %s: %w", t.id, err))
		return false
	}
	return yield(f, nil)
}

// flushed returns the files of a rowset with the changes that only the log has.
func (t *tablet) flushed(set *rowset.DiskRowSet) (rowset.Files, error) {
	m := *set.Metadata()
	if !t.super.GetSupportsLiveRowCount() {
		m.LiveRows = -1
	}
	mem := set.Tracker().Mem
	if mem.Empty() {
		return rowset.Files{Metadata: &m, Blocks: blocks{t.fs}}, nil
	}
	o := &rowset.Overlay{Base: blocks{t.fs}}
	sink, err := o.Create()
	if err != nil {
		return rowset.Files{}, err
	}
	w, err := delta.NewWriter(sink, false)
	if err != nil {
		return rowset.Files{}, err
	}
	if err := mem.Each(mvcc.Everything, w.Append); err != nil {
		return rowset.Files{}, err
	}
	stats, err := w.Finish()
	if err != nil {
		return rowset.Files{}, err
	}
	m.Redo = append(slices.Clone(m.Redo), sink.ID())
	m.LastDurableDMS++
	if m.LiveRows >= 0 {
		m.LiveRows -= stats.Deletes
	}
	return rowset.Files{Metadata: &m, Blocks: o}, o.Finish(sink)
}

// inserted returns rowsets of the rows that only the log has.
func (t *tablet) inserted(ctx context.Context) (out []rowset.Files, err error) {
	if t.mem.Len() == 0 {
		return nil, nil
	}
	o, id := &rowset.Overlay{}, uint64(0)
	for _, set := range t.sets {
		id = max(id, set.Metadata().ID)
	}
	w := rowset.NewRollingWriter(o, t.schema, func() uint64 { id++; return id }, 0)
	w.RowFiles = schema.NoRowFile // its blocks get other IDs
	_, err = rewrite.Run(ctx, rewrite.Job{Schema: t.schema,
		Inputs: []rewrite.Input{rewrite.NewMemInput(t.mem.Histories(mvcc.Everything))}, Writer: w})
	if err != nil {
		return nil, err
	}
	sets, err := w.Finish()
	for _, m := range sets {
		out = append(out, rowset.Files{Metadata: m, Blocks: o})
	}
	return out, err
}
