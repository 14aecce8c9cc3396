package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// A delta compaction rewrites files of one rowset, whose rows keep their IDs. It reads no memory,
// so writers go on while it reads and writes; what they change goes to the delta mem store, which
// stays, and so does the included LSN:
//
//	work lock   ├──────────────────────────────────────────────┤   no flush, no other compaction
//	gate                                          ├────────────┤   writers wait for the metadata commit
//	            read redos and base, write blocks   commit, swap
//
// The rowset's successor takes the delta mem store over as it is when the gate is held. Readers
// that run keep the rowset that they have, whose files are open.

// swap is a rowset that gets other files for the same rows.
type swap struct {
	set *rowset.DiskRowSet
	row *meta.RowSet
}

// appendDead appends the blocks that the rowset needs no more.
func (s swap) appendDead(dst []block.ID) []block.ID {
	kept := s.row.Blocks(nil)
	for _, id := range s.set.Metadata().Blocks(nil) {
		if !slices.Contains(kept, id) {
			dst = append(dst, id)
		}
	}
	return dst
}

// swap is the new metadata row of d, nil if it keeps its files.
func (r *rewrite) swap(d *rowset.DiskRowSet) *meta.RowSet {
	for _, s := range r.swapped {
		if s.set == d {
			return s.row
		}
	}
	return nil
}

// CompactMinor makes one redo file of several in each rowset.
func (t *Tablet) CompactMinor(ctx context.Context) (res Result, err error) {
	return t.eachRowSet(func(id uint64) (int64, error) {
		return t.compactDeltas(ctx, compaction.DeltaChoice{RowSet: id, Kind: compaction.MinorDelta, Why: requested})
	})
}

// CompactMajor brings the redos of columns into the base of each rowset; without names those of all
// columns. Errors: ErrNotFound for a column that the table does not have; ErrSchema for one of the
// key.
func (t *Tablet) CompactMajor(ctx context.Context, columns []string) (res Result, err error) {
	if _, err := columnIndexes(t.Shape().Schema, columns); err != nil {
		return Result{}, fmt.Errorf("table %q: %w", t.Name(), err)
	}
	return t.eachRowSet(func(id uint64) (int64, error) {
		return t.compactDeltas(ctx, compaction.DeltaChoice{RowSet: id, Kind: compaction.MajorDelta, Columns: columns, Why: requested})
	})
}

const requested = "asked for"

// CollectUndos drops what history no longer holds, as far as it goes without rewriting: undo files,
// and rowsets of deleted rows.
func (t *Tablet) CollectUndos(ctx context.Context) (res Result, err error) {
	t.exclusively(func() {
		res.RowSetsBefore = len(t.Info().RowSets)
		res.BytesWritten, err = t.collectUndos(ctx, requested)
		res.RowSetsAfter = len(t.Info().RowSets)
	})
	return res, err
}

// CompactDeltas does what the rules for delta compactions chose. A rowset that is not there any
// more needs nothing.
func (t *Tablet) CompactDeltas(ctx context.Context, c compaction.DeltaChoice) (err error) {
	t.exclusively(func() {
		if c.Kind == compaction.UndoGC {
			_, err = t.collectUndos(ctx, c.Why)
		} else {
			_, err = t.compactDeltas(ctx, c)
		}
	})
	return err
}

// eachRowSet does work with each rowset in turn, with a commit of its own.
func (t *Tablet) eachRowSet(work func(id uint64) (int64, error)) (res Result, err error) {
	t.exclusively(func() {
		sets := t.Info().RowSets
		res.RowSetsBefore = len(sets)
		for _, s := range sets {
			var n int64
			if n, err = work(s.ID); err != nil {
				break
			}
			res.BytesWritten += n
		}
		res.RowSetsAfter = len(t.Info().RowSets)
	})
	return res, err
}

// columnIndexes finds columns that a major compaction can take; nil for no names.
func columnIndexes(s *schema.Schema, names []string) ([]int, error) {
	if len(names) == 0 {
		return nil, nil
	}
	cols, err := s.Project(names)
	if err != nil {
		return nil, err
	}
	for _, c := range cols {
		if c < s.Keys {
			return nil, fmt.Errorf("column %q is in the key, which never changes: %w", s.Columns[c].Name, fault.ErrSchema)
		}
	}
	return cols, nil
}

// compactDeltas is a minor or major compaction of one rowset, under the work lock; bytes is what it
// wrote.
func (t *Tablet) compactDeltas(ctx context.Context, c compaction.DeltaChoice) (bytes int64, err error) {
	r, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer r.end()
	i := slices.IndexFunc(r.old.tree.Sets, func(d *rowset.DiskRowSet) bool { return d.Metadata().ID == c.RowSet })
	if i < 0 {
		return 0, nil
	}
	d := r.old.tree.Sets[i]
	r.event.Kind, r.event.Why = c.Kind, c.Why
	r.event.Inputs = append(r.event.Inputs, describe(d.Metadata()))
	row, err := r.rewriteDeltas(ctx, d, c)
	switch {
	case err != nil:
		err = fmt.Errorf("table %q: rowset %d: %w", t.Name(), c.RowSet, err)
	case row == nil:
		return 0, nil
	default:
		r.swapped = append(r.swapped, swap{d, row})
		err = r.commitSwap()
	}
	r.recordEvent(err)
	return r.event.BytesWritten, err
}

// rewriteDeltas writes the new files of a rowset; nil when there is nothing to do.
func (r *rewrite) rewriteDeltas(ctx context.Context, d *rowset.DiskRowSet, c compaction.DeltaChoice) (*meta.RowSet, error) {
	job := compaction.DeltaJob{Set: d, State: d.State(), Creation: r.creation}
	if c.Kind == compaction.MinorDelta {
		return compaction.Minor(ctx, job)
	}
	cols, err := columnIndexes(d.Schema, c.Columns)
	if err != nil {
		return nil, err
	}
	r.floor = r.t.opts.Store.HistoryFloor(r.t, r.t.Metadata().HistorySec)
	job.Floor = r.floor
	row, err := compaction.Major(ctx, job, cols)
	if row != nil {
		r.event.RowsRead, r.event.RowsWritten = row.Rows, row.Rows
	}
	return row, err
}

// commitSwap makes what was written without the gate part of the table.
func (r *rewrite) commitSwap() error {
	// What waits for the disk is mostly done before writers have to wait too.
	if err := r.creation.Sync(); err != nil {
		return err
	}
	if err := r.blockWriters(); err != nil {
		return err
	}
	if err := r.commit(); err != nil {
		return err
	}
	for _, s := range r.swapped {
		r.old.openReplaced([]*rowset.DiskRowSet{s.set})
	}
	return nil
}

// collectUndos is CollectUndos under the work lock: one commit for all rowsets.
func (t *Tablet) collectUndos(ctx context.Context, why string) (bytes int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r, err := t.begin()
	if err != nil {
		return 0, err
	}
	defer r.end()
	r.floor = t.opts.Store.HistoryFloor(t, t.Metadata().HistorySec)
	for _, d := range r.old.tree.Sets {
		s := d.State()
		if compaction.Gone(s, r.floor) {
			r.in = append(r.in, d)
		} else if row := compaction.DropUndos(s, r.floor); row != nil {
			r.swapped = append(r.swapped, swap{d, row})
		} else {
			continue
		}
		r.event.Inputs = append(r.event.Inputs, describe(s.Meta))
	}
	if len(r.event.Inputs) == 0 {
		return 0, nil
	}
	r.event.Kind, r.event.Why = compaction.UndoGC, why
	err = r.commitSwap()
	r.recordEvent(err)
	return r.event.BytesWritten, err
}

// Deltas is the rowsets as the rules for delta compactions see them, and the earliest timestamp
// that reads may still ask for.
func (t *Tablet) Deltas() (infos []compaction.DeltaInfo, err error) {
	st, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer st.release()
	floor := t.opts.Store.HistoryFloor(t, t.Metadata().HistorySec)
	for _, d := range st.tree.Sets {
		infos = append(infos, compaction.DescribeDeltas(d.State(), floor))
	}
	return infos, nil
}
