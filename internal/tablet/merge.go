package tablet

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Compact flushes, then merges until no rowsets overlap and no redos are left, except the DELETEs
// of rows that history still contains and the redos of concurrent changes. No other job of the table
// runs concurrently.
func (t *Tablet) Compact(ctx context.Context) (res compaction.Result, err error) {
	err = t.exclusively(ctx, func() error {
		res, err = t.compact(ctx)
		return err
	})
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
		e, err := t.mergeSets(ctx, ids, requested, len(group) > 1)
		if err != nil {
			return res, err
		}
		res.BytesWritten += e.BytesWritten
	}
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, nil
}

// Merge rewrites the chosen rowsets into others that do not overlap. An empty choice does nothing.
// A choice that Choice.Check refuses is reported as a failed merge. The table's writers wait
// briefly for the new state.
func (t *Tablet) Merge(ctx context.Context, c compaction.Choice) error {
	c.RowSets = slices.Clone(c.RowSets)
	return t.compacting(ctx, c.RowSets, func() error {
		layout, err := t.layout()
		if err != nil || len(c.RowSets) == 0 {
			return err
		}
		if err := c.Check(layout); err != nil {
			t.refuse(c, layout, err)
			return err
		}
		_, err = t.mergeSets(ctx, c.RowSets, c.Why, true)
		return err
	})
}

// MergeBy merges the rowsets that a policy picks, until it picks nothing, or only rowsets that the
// merges of this call have written without making the layout simpler. Errors: the errors of a
// merge; ErrNotFound if the policy picks a rowset that the table does not have.
func (t *Tablet) MergeBy(ctx context.Context, p compaction.Policy, budget int64) (res compaction.Result, err error) {
	res.RowSetsBefore = len(t.Info().RowSets)
	r := newMergeSeries()
	for err == nil {
		var e *Edit
		if e, err = t.mergeOnce(ctx, p, budget, &r); e == nil {
			break
		}
		res.BytesWritten += e.BytesWritten
		r.wrote(e)
	}
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, err
}

// mergeSeries records the merges of MergeBy, or of Merges, so that the series ends for any policy.
// Each merge must take at least one rowset that is not in written, and adds the rowsets that it
// writes. written is cleared only when one of two numbers, of rowsets and of overlaps, has become
// lower than ever, which cannot go on without end.
type mergeSeries struct {
	written  map[uint64]bool // since one of the numbers was lowered, and by the last merge
	last     []uint64        // by the last merge
	rowsets  int             // the least number of rowsets so far
	overlaps int             // the least number of pairs of rowsets that overlap
}

func newMergeSeries() mergeSeries {
	return mergeSeries{written: map[uint64]bool{}, rowsets: math.MaxInt, overlaps: math.MaxInt}
}

// wrote adds the rowsets of a merge.
func (r *mergeSeries) wrote(e *Edit) {
	r.last = nil
	for _, a := range e.Added {
		r.last = append(r.last, a.Row.ID)
		r.written[a.Row.ID] = true
	}
}

// observe forgets the merges before the last one if the layout has become simpler.
func (r *mergeSeries) observe(l compaction.Layout) {
	overlaps := 0
	for i := range l.RowSets { // they are ordered by MinKey
		later := l.RowSets[i+1:]
		overlaps += sort.Search(len(later), func(k int) bool {
			return bytes.Compare(later[k].MinKey, l.RowSets[i].MaxKey) > 0
		})
	}
	if len(l.RowSets) < r.rowsets || overlaps < r.overlaps {
		clear(r.written)
		for _, id := range r.last {
			r.written[id] = true
		}
	}
	r.rowsets, r.overlaps = min(r.rowsets, len(l.RowSets)), min(r.overlaps, overlaps)
}

// repeats reports whether a choice is only of rowsets that would be written again for nothing.
func (r *mergeSeries) repeats(c compaction.Choice) bool {
	return !slices.ContainsFunc(c.RowSets, func(id uint64) bool { return !r.written[id] })
}

// mergeOnce performs one merge of MergeBy. It returns nil if there is nothing to merge.
//
// The policy does not see rowsets that other compactions own. If it then picks nothing, mergeOnce
// waits for these compactions, and asks it again. It also asks again if another compaction has taken
// a rowset between the pick and the merge.
func (t *Tablet) mergeOnce(ctx context.Context, p compaction.Policy, budget int64,
	r *mergeSeries) (e *Edit, err error) {
	for again := true; again; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		layout, err := t.layout()
		if err != nil {
			return nil, err
		}
		r.observe(layout)
		free, owned := t.unowned(layout)
		c, err := t.pick(p, free, budget)
		switch {
		case err == nil && r.repeats(c) && len(owned) == 0:
			return nil, nil
		case err == nil && r.repeats(c):
			if err := t.claims.waitCompacted(ctx, owned); err != nil {
				return nil, err
			}
			continue
		case err == nil:
			err = c.Check(free)
		}
		if err != nil {
			t.refuse(c, layout, err)
			t.sendEvents()
			return nil, err
		}
		err = t.compacting(ctx, c.RowSets, func() error {
			layout, err := t.layout()
			if again = err == nil && c.Check(layout) != nil; again || err != nil {
				return err
			}
			e, err = t.mergeSets(ctx, c.RowSets, c.Why, true)
			return err
		})
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// unowned returns a layout without the rowsets that compactions own, and the IDs of those.
func (t *Tablet) unowned(layout compaction.Layout) (free compaction.Layout, owned []uint64) {
	compacted := t.claims.compactedIDs()
	free = layout
	free.RowSets = nil
	for _, r := range layout.RowSets {
		if compacted[r.ID] {
			owned = append(owned, r.ID)
		} else {
			free.RowSets = append(free.RowSets, r)
		}
	}
	return free, owned
}

// pick calls a policy, whose code is the caller's: a panic is an error.
func (t *Tablet) pick(p compaction.Policy, layout compaction.Layout, budget int64) (c compaction.Choice, err error) {
	defer func() {
		if r := recover(); r != nil {
			c, err = compaction.Choice{Why: fmt.Sprintf("a pick of %T", p)}, fmt.Errorf("policy %T: panic: %v", p, r)
			t.opts.Logger.Error("policy panicked", slog.String("table", layout.Table), slog.Any("err", err),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	layout.RowSets = slices.Clone(layout.RowSets) // the policy may keep or change it, keys included
	for i := range layout.RowSets {
		r := &layout.RowSets[i]
		r.MinKey, r.MaxKey = bytes.Clone(r.MinKey), bytes.Clone(r.MaxKey)
	}
	c = p.Pick(layout, budget)
	c.RowSets = slices.Clone(c.RowSets) // a policy may use its slice again
	return c, nil
}

// refuse saves the event of a merge that failed because of its choice, which was made from layout.
func (t *Tablet) refuse(c compaction.Choice, layout compaction.Layout, err error) {
	t.reports.add(t.refused(c, layout, err))
}

// mergeStep merges rowsets for their owner and returns the edit. Without force, it does nothing if a
// rewrite would change no rowset. added, unless it is nil, is called with the IDs of the rowsets that
// it has written, before they become part of the table.
func (t *Tablet) mergeStep(ctx context.Context, ids []uint64, why string, force bool,
	added func(ids []uint64)) (*Edit, error) {
	j, err := t.begin()
	if err != nil {
		return nil, err
	}
	defer j.end()
	e := &j.edit
	e.Kind, e.Why = compaction.Merge, why
	e.Retained = t.opts.Store.Retained(t, t.Metadata().HistorySec)
	for _, d := range j.st.tree.Sets {
		if slices.Contains(ids, d.Metadata().ID) {
			e.Removed = append(e.Removed, d)
			force = force || needsRewrite(d, e.First()) ||
				t.Metadata().RowFile == schema.FullRowFile && d.Metadata().RowFile == 0 ||
				d.RowFileDamaged() || d.KeyDirectoryDamaged()
		}
	}
	for i := 0; i < len(e.Removed) && !force; i++ {
		if force, err = j.hasExpired(e.Removed[i]); err != nil {
			return nil, err
		}
	}
	if len(e.Removed) == 0 || !force {
		return e, nil
	}
	err = j.freeze(ctx, func() {
		for _, d := range e.Removed {
			j.startChangeLog(d)
		}
	})
	if err != nil {
		return e, err
	}
	j.announce()
	err = j.writeMerged(ctx)
	if err == nil && added != nil {
		written := make([]uint64, len(e.Added))
		for i, a := range e.Added {
			written[i] = a.Row.ID
		}
		added(written)
	}
	if err == nil {
		err = j.finish(ctx)
	}
	j.record(err)
	return e, err
}

// writeMerged rewrites the removed rowsets as of the cutover point.
func (j *job) writeMerged(ctx context.Context) error {
	inputs, rows, err := j.removed()
	if err == nil {
		err = j.writeRows(ctx, inputs, rows, j.at.lsn)
	}
	if err != nil {
		return fmt.Errorf("table %q: %w", j.t.Name(), err)
	}
	return nil
}

// removed returns the rows of the removed rowsets as of the cutover point, and their number, with
// ghosts.
func (j *job) removed() (inputs []rewrite.Input, rows int64, err error) {
	for _, d := range j.edit.Removed {
		h, err := d.Histories(j.at.snap)
		if err != nil {
			return nil, 0, inRowSet(d.Metadata().ID, err)
		}
		inputs = append(inputs, j.dropping(mergeInput{h, d.Metadata().ID}, d))
		rows += d.Metadata().Rows
		j.edit.BytesRead += d.Metadata().Bytes
	}
	return inputs, rows, nil
}

// needsRewrite reports whether a rewrite would fold redos of the rowset into its base, or remove a
// deleted row that history no longer contains.
func needsRewrite(d *rowset.DiskRowSet, first mvcc.Timestamp) bool {
	tr := d.Tracker()
	if !tr.Mem.Empty() {
		return true
	}
	for _, f := range tr.Redo {
		s := f.Stats()
		if s.Reinserts > 0 || len(s.Columns) > 0 || s.Min <= first {
			return true
		}
	}
	return len(tr.Redo) > 1
}
