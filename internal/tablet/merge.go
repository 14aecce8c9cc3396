package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Compact flushes, then merges until no rowsets overlap and no redo is left but the DELETE of a row
// that history still holds, and those of what was written meanwhile.
func (t *Tablet) Compact(ctx context.Context) (res Result, err error) {
	t.exclusively(func() { res, err = t.compact(ctx) })
	return res, err
}

func (t *Tablet) compact(ctx context.Context) (Result, error) {
	res, err := t.flush(ctx)
	if err != nil {
		return res, err
	}
	for _, group := range compaction.Groups(t.Info()) {
		ids := make([]uint64, len(group))
		for i := range group {
			ids[i] = group[i].ID
		}
		n, err := t.mergeSets(ctx, ids, requested, len(group) > 1)
		if err != nil {
			return res, err
		}
		res.BytesWritten += n
	}
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, nil
}

// Merge rewrites the chosen rowsets into others that do not overlap. Writers of the table wait for
// its commit alone.
func (t *Tablet) Merge(ctx context.Context, c compaction.Choice) (err error) {
	t.exclusively(func() { _, err = t.mergeSets(ctx, c.RowSets, c.Why, true) })
	return err
}

// mergeSets is Merge under the work lock. Without force, a rowset is left as it is when a rewrite
// would change nothing.
func (t *Tablet) mergeSets(ctx context.Context, ids []uint64, why string, force bool) (bytes int64, err error) {
	r, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer r.end()
	for _, d := range r.old.tree.Sets {
		if slices.Contains(ids, d.Metadata().ID) {
			r.in = append(r.in, d)
		}
	}
	r.floor = t.opts.Store.HistoryFloor(t, t.Metadata().HistorySec)
	if len(r.in) == 0 || !force && !slices.ContainsFunc(r.in, func(d *rowset.DiskRowSet) bool { return hasWork(d, r.floor) }) {
		return 0, nil
	}
	if err := r.freeze(ctx, r.takeInputs); err != nil {
		return 0, err
	}
	r.event.Kind, r.event.Why = compaction.Merge, why
	inputs, err := r.inputs()
	if err == nil {
		err = r.write(ctx, inputs, r.lsn)
	}
	if err == nil {
		err = r.finish(ctx)
	}
	r.recordEvent(err)
	return r.event.BytesWritten, err
}

// inputs opens the histories of the rowsets to be replaced.
func (r *rewrite) inputs() ([]compaction.Input, error) {
	var inputs []compaction.Input
	for _, d := range r.in {
		r.event.Inputs = append(r.event.Inputs, describe(d.Metadata()))
	}
	for _, d := range r.in {
		h, err := d.Histories(r.before)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", r.t.Name(), err)
		}
		inputs = append(inputs, h)
	}
	return inputs, nil
}

// hasWork tells whether a rowset has redos that a rewrite brings into the base, or a deleted row
// that history no longer holds.
func hasWork(d *rowset.DiskRowSet, floor mvcc.Timestamp) bool {
	tr := d.Tracker()
	if !tr.Mem.Empty() {
		return true
	}
	for _, f := range tr.Redo {
		s := f.Stats()
		if s.Reinserts > 0 || len(s.Columns) > 0 || s.Min <= floor {
			return true
		}
	}
	return len(tr.Redo) > 1
}
