package tablet

import (
	"slices"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
)

// commit makes the outputs part of the table, in metadata and then in memory. The gate is held.
func (r *rewrite) commit() error {
	t := r.t
	if err := r.creation.Sync(); err != nil { // an ingest's and an Alter's: all others have synced with writers about
		return err
	}
	row := *t.Metadata()
	if r.altered != nil {
		row = *r.altered
	}
	row.NextRowSetID = t.nextID.Load()
	row.HistoryFloor = max(row.HistoryFloor, r.floor)
	row.FlushedLSN = max(row.FlushedLSN, r.flushLSN)
	row.AutoIncrement = max(row.AutoIncrement, r.highest)
	edit := blockmanager.Edit{Created: []*blockmanager.Creation{r.creation}, Confirm: r.confirm}
	if r.early != nil {
		edit.Created = append(edit.Created, r.early)
	}
	for _, d := range r.in {
		d.OpenFiles() // what finish has not; see there
		edit.Dead = d.Metadata().Blocks(edit.Dead)
		edit.Delete = append(edit.Delete, meta.RowSetKey(t.Number, d.Metadata().ID))
	}
	for _, m := range r.out {
		edit.Put = append(edit.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, m.ID), Value: m.Encode()})
	}
	for _, f := range r.flushed {
		edit.Put = append(edit.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, f.row.ID), Value: f.row.Encode()})
	}
	for _, s := range r.swapped {
		edit.Dead = s.appendDead(edit.Dead)
		edit.Put = append(edit.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, s.row.ID), Value: s.row.Encode()})
	}
	edit.Put = append(edit.Put, blockmanager.Row{Key: meta.TableKey(t.Number), Value: row.Encode()})
	for _, c := range edit.Created {
		for _, info := range c.Blocks() {
			r.event.BytesWritten += info.Length
		}
	}
	return t.opts.Store.CommitMeta(t, edit, r.firstLSN, func() error { return r.install(&row) })
}

// firstLSN is the lowest LSN that the table's memory stores will hold after the commit. In the
// outputs' stores is what was carried over.
func (r *rewrite) firstLSN() lsn.LSN {
	first := NoLSN
	see := func(l lsn.LSN) {
		if l != 0 {
			first = min(first, l)
		}
	}
	see(r.mem.FirstLSN())
	if f := r.kept(); f != nil {
		see(f.mem.FirstLSN())
	}
	for _, d := range r.old.tree.Sets {
		m := d.Tracker().Mem
		if f := r.flushes(d); f != nil {
			m = f.mem
		}
		if m != nil && !slices.Contains(r.in, d) {
			see(m.FirstLSN())
		}
	}
	for _, m := range r.caughtUp {
		see(m.FirstLSN())
	}
	return first
}

// kept is the frozen MemRowSet of the new state.
func (r *rewrite) kept() *frozen {
	if r.frozen != nil {
		return nil // it is in the outputs
	}
	return r.old.frozen
}

// flushes is what is flushed of a rowset that stays; nil if nothing is.
func (r *rewrite) flushes(d *rowset.DiskRowSet) *flushedDeltas {
	for i := range r.flushed {
		if r.flushed[i].set == d {
			return &r.flushed[i]
		}
	}
	return nil
}

// stored is the metadata row of a rowset that stays, as of the commit.
func (r *rewrite) stored(d *rowset.DiskRowSet) *meta.RowSet {
	if f := r.flushes(d); f != nil {
		return f.row
	}
	return d.Metadata()
}

// install installs the new state. An error after the commit means that memory no longer shows what
// the metadata says: the store poisons itself.
func (r *rewrite) install(row *meta.Table) error {
	t, schema := r.t, r.shape.Schema
	r.done = true
	var sets, opened []*rowset.DiskRowSet
	defer func() {
		for _, d := range opened {
			d.Unref()
		}
	}()
	reopen := r.out
	for _, d := range r.old.tree.Sets {
		switch row := r.swap(d); {
		case slices.Contains(r.in, d):
		case r.altered != nil:
			reopen = append(slices.Clip(reopen), r.stored(d))
		case row != nil:
			n, err := d.Successor(row)
			if err != nil {
				return err
			}
			opened = append(opened, n)
			sets = append(sets, n)
		default:
			sets = append(sets, d)
		}
	}
	for _, m := range reopen {
		d, err := rowset.Open(schema, m, t.opts.RowSets)
		if err != nil {
			return err
		}
		if mem := r.caughtUp[m.ID]; mem != nil {
			d.Adopt(mem)
		}
		opened = append(opened, d)
		sets = append(sets, d)
	}
	trackers := make([]*delta.Tracker, len(r.flushed))
	for i, f := range r.flushed {
		file, err := f.set.OpenDelta(f.file)
		if err != nil {
			return err
		}
		old := f.set.Tracker()
		trackers[i] = &delta.Tracker{Schema: old.Schema, Undo: old.Undo, Redo: append(slices.Clone(old.Redo), file), Mem: f.mem}
	}
	t.metadata.Store(row)
	t.auto = max(t.auto, row.AutoIncrement)
	for i, f := range r.flushed {
		f.set.SetStores(f.row, trackers[i])
		f.from.Release()
	}
	for _, d := range r.in {
		if m := d.Tracker().Mem; m != nil {
			m.Release()
		}
	}
	t.install(newState(r.shape, r.mem, r.kept(), sets, max(r.floor, r.old.floor)))
	if r.frozen != nil {
		r.frozen.mem.Release()
	}
	return nil
}

// tell puts the event by for alone to send, after the commit or the failure.
func (r *rewrite) recordEvent(err error) {
	e := &r.event
	e.Err, e.Duration = err, time.Since(r.start)
	for _, m := range r.out {
		e.Outputs = append(e.Outputs, describe(m))
	}
	for _, f := range r.flushed {
		if f.row != nil {
			e.Outputs = append(e.Outputs, describe(f.row))
		}
	}
	for _, s := range r.swapped {
		e.Outputs = append(e.Outputs, describe(s.row))
	}
	e.After = r.t.Info()
	r.t.events = append(r.t.events, *e)
}
