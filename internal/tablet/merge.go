package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Compact flushes, then merges until no rowsets overlap and no redos are left, except the DELETEs
// of rows that history still contains and the redos of concurrent changes.
func (t *Tablet) Compact(ctx context.Context) (res compaction.Result, err error) {
	t.exclusively(func() { res, err = t.compact(ctx) })
	return res, err
}

func (t *Tablet) compact(ctx context.Context) (compaction.Result, error) {
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

// Merge rewrites the chosen rowsets into others that do not overlap. The table's writers wait for
// the metadata commit only.
func (t *Tablet) Merge(ctx context.Context, c compaction.Choice) (err error) {
	t.exclusively(func() { _, err = t.mergeSets(ctx, c.RowSets, c.Why, true) })
	return err
}

// mergeSets is Merge under the work lock. bytes is the number of bytes written. Without force, it
// does nothing if a rewrite would change no rowset.
func (t *Tablet) mergeSets(ctx context.Context, ids []uint64, why string, force bool) (bytes int64, err error) {
	j, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer j.end()
	e := &j.edit
	e.Kind, e.Why = compaction.Merge, why
	e.Floor = t.opts.Store.HistoryFloor(t, t.Metadata().HistorySec)
	for _, d := range j.st.tree.Sets {
		if slices.Contains(ids, d.Metadata().ID) {
			e.Removed = append(e.Removed, d)
			force = force || needsRewrite(d, e.Floor)
		}
	}
	if len(e.Removed) == 0 || !force {
		return 0, nil
	}
	err = j.freeze(ctx, func() {
		for _, d := range e.Removed {
			j.startChangeLog(d)
		}
	})
	if err != nil {
		return 0, err
	}
	err = j.writeMerged(ctx)
	if err == nil {
		err = j.catchUp(ctx)
	}
	if err == nil {
		err = j.commit()
	}
	j.record(err)
	return e.BytesWritten, err
}

// writeMerged rewrites the removed rowsets as of the cutover point.
func (j *job) writeMerged(ctx context.Context) error {
	var inputs []compaction.Input
	var rows int64
	for _, d := range j.edit.Removed {
		h, err := d.Histories(j.at.snap)
		if err != nil {
			return fmt.Errorf("table %q: %w", j.t.Name(), err)
		}
		inputs = append(inputs, h)
		rows += d.Metadata().Rows
	}
	return j.writeRows(ctx, inputs, rows, j.at.lsn)
}

// needsRewrite reports whether a rewrite would fold redos of the rowset into its base, or remove a
// deleted row that history no longer contains.
func needsRewrite(d *rowset.DiskRowSet, floor mvcc.Timestamp) bool {
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
