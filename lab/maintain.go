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
	w.look()
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
	deltas  []compaction.DeltaInfo // of rowsets of which delta compactions are due
	merge   compaction.Choice
}

// look finds what is due after a flush or merge.
func (w *upkeep) look() {
	w.merge = w.merging.pick()
	w.deltas = w.x.table.dueDeltas()
}

// isDue reports whether a delta compaction of the rowset is due.
func isDue(d compaction.DeltaInfo) bool {
	due, _ := compaction.PickDeltas([]compaction.DeltaInfo{d})
	return len(due) > 0
}

// step carries out the operation that is due first. done reports whether there was none.
func (w *upkeep) step() (done bool, err error) {
	picked, _ := compaction.PickDeltas(w.deltas)
	var ops []maintenance.Operation
	for _, c := range picked {
		ops = append(ops, maintenance.Operation{Kind: maintenance.Kind(c.Kind), Gain: c.Quality,
			Cost: c.Bytes, Data: c.Frees})
	}
	i := 0 // a merge that nothing competes with is not weighed
	if merges := len(w.merge.RowSets) > 0; !merges || len(picked) > 0 {
		if merges {
			ops = append(ops, w.mergeOperation())
		}
		i, _ = maintenance.Choose(maintenance.State{Workers: 2}, ops)
	}
	switch {
	case i < 0:
		return true, nil
	case i == len(picked):
		err = w.merging.merge(w.merge)
	default:
		err = w.x.table.compact(picked[i])
	}
	if err != nil {
		return false, err
	}
	if i == len(picked) || picked[i].Kind == compaction.UndoGC {
		w.look()
		return false, nil
	}
	// The bounds of rowsets, and so what there is to merge, are as before.
	w.deltas = slices.DeleteFunc(w.deltas, func(d compaction.DeltaInfo) bool { return d.RowSet == picked[i].RowSet })
	return false, nil
}

// mergeOperation describes the merge that the policy has picked.
func (w *upkeep) mergeOperation() maintenance.Operation {
	l := w.x.table.layout()
	return maintenance.Operation{Kind: maintenance.Merge, Gain: w.merge.Worth(l), Cost: 2 * chosenBytes(l, w.merge)}
}
