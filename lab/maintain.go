package lab

import (
	"context"
	"slices"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/maintenance"
)

// maintain does what the background work of a store does after a flush: one operation after the
// other, chosen by the same rules, until none is due.
func (x *experiment) maintain(ctx context.Context) error {
	if err := x.table.deltas(compaction.UndoGC, ""); err != nil {
		return err
	}
	w := upkeep{x: x, merging: merging{x: x}}
	w.merge, w.deltas = w.merging.pick(), w.due(nil)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err := w.step(); done || err != nil {
			return err
		}
	}
}

// upkeep is the operations that are due after a flush.
type upkeep struct {
	x       *experiment
	merging merging
	deltas  []compaction.DeltaInfo // rowsets of which delta compactions are due
	merge   compaction.Choice
}

// due returns those of some rowsets, nil = all, of which delta compactions are due.
func (w *upkeep) due(ids []uint64) []compaction.DeltaInfo {
	return slices.DeleteFunc(w.x.table.deltaInfos(ids), func(d compaction.DeltaInfo) bool {
		return len(compaction.PickDeltas([]compaction.DeltaInfo{d})) == 0
	})
}

// step carries out the operation that is due first. done reports whether there was none.
func (w *upkeep) step() (done bool, err error) {
	picked := compaction.PickDeltas(w.deltas)
	if len(picked) == 0 {
		if len(w.merge.RowSets) == 0 {
			return true, nil
		}
		return false, w.mergeNow()
	}
	var ops []maintenance.Operation
	for _, c := range picked {
		ops = append(ops, maintenance.Operation{Kind: maintenance.Kind(c.Kind), Gain: c.Quality, Cost: c.Bytes, Data: c.Frees})
	}
	if len(w.merge.RowSets) > 0 {
		ops = append(ops, w.mergeOperation())
	}
	i, _ := maintenance.Choose(maintenance.State{Workers: 2}, ops)
	switch {
	case i < 0:
		return true, nil
	case i == len(picked):
		return false, w.mergeNow()
	}
	if err := w.x.table.compact(picked[i]); err != nil {
		return false, err
	}
	if picked[i].Kind == compaction.UndoGC {
		w.merge, w.deltas = w.merging.pick(), w.due(nil)
		return false, nil
	}
	// The bounds of rowsets, and so what there is to merge, are as before.
	w.deltas = slices.DeleteFunc(w.deltas, func(d compaction.DeltaInfo) bool { return d.RowSet == picked[i].RowSet })
	return false, nil
}

// mergeNow carries out the merge that the policy has picked, and looks at what has become due.
func (w *upkeep) mergeNow() error {
	if err := w.merging.merge(w.merge); err != nil {
		return err
	}
	w.deltas = slices.DeleteFunc(w.deltas, func(d compaction.DeltaInfo) bool { return slices.Contains(w.merge.RowSets, d.RowSet) })
	ids := make([]uint64, len(w.x.last)) // not nil
	for i := range w.x.last {
		ids[i] = w.x.last[i].ID
	}
	w.merge, w.deltas = w.merging.pick(), append(w.deltas, w.due(ids)...)
	return nil
}

// mergeOperation describes the merge that the policy has picked.
func (w *upkeep) mergeOperation() maintenance.Operation {
	l, bytes := w.x.table.layout(), int64(0)
	chosen := slices.Sorted(slices.Values(w.merge.RowSets))
	for i := range l.RowSets {
		if _, is := slices.BinarySearch(chosen, l.RowSets[i].ID); is {
			bytes += l.RowSets[i].Bytes
		}
	}
	return maintenance.Operation{Kind: maintenance.Merge, Gain: w.merge.Worth(l), Cost: 2 * bytes}
}
