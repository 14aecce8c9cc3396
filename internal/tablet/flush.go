package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
)

// Flush writes the MemRowSet to new rowsets and the delta mem stores to delta files, in one
// metadata commit. The table's writers wait briefly for the new state. Flush does nothing if there
// is nothing in memory. It does not wait for compactions: the delta mem stores of the rowsets that
// these replace stay in memory.
func (t *Tablet) Flush(ctx context.Context) (res compaction.Result, err error) {
	err = t.flushing(ctx, func() error {
		res, err = t.flush(ctx)
		return err
	})
	return res, err
}

// FlushIf waits until no other flush of the table runs, and then flushes if due returns true.
func (t *Tablet) FlushIf(ctx context.Context, due func() bool) error {
	return t.flushing(ctx, func() error {
		if !due() {
			return nil
		}
		_, err := t.flush(ctx)
		return err
	})
}

// FlushCompacted flushes, if due returns true, what a flush has left to compactions: it waits until
// those have ended that own rowsets with changes in memory.
func (t *Tablet) FlushCompacted(ctx context.Context, due func() bool) error {
	st, err := t.acquire()
	if err != nil {
		return err
	}
	owned := t.claims.compactedIDs()
	var left []uint64
	for _, d := range st.tree.Sets {
		if id := d.Metadata().ID; owned[id] && !d.Tracker().Mem.Empty() {
			left = append(left, id)
		}
	}
	st.release()
	if len(left) == 0 || !due() {
		return nil
	}
	if err := t.claims.waitCompacted(ctx, left); err != nil {
		return err
	}
	return t.FlushIf(ctx, due)
}

// FlushDeltas writes the delta mem stores to delta files as Flush does; the MemRowSet stays in
// memory. The table's writers wait briefly for the new state.
func (t *Tablet) FlushDeltas(ctx context.Context) (res compaction.Result, err error) {
	err = t.flushing(ctx, func() error {
		res, _, err = t.flushOnce(ctx, (*job).takeDeltas)
		return err
	})
	return res, err
}

// flush is Flush for the owner of the MemRowSets.
func (t *Tablet) flush(ctx context.Context) (compaction.Result, error) {
	res, left, err := t.flushOnce(ctx, (*job).takeMemory)
	if err == nil && left {
		var rest compaction.Result
		rest, _, err = t.flushOnce(ctx, (*job).takeMemory)
		res.RowSetsAfter = rest.RowSetsAfter
		res.BytesWritten += rest.BytesWritten
	}
	return res, err
}

// flushOnce flushes the memory stores that take selects. left reports whether a failed flush had
// left a frozen MemRowSet. If so, that one was flushed, and the current MemRowSet may not be empty.
func (t *Tablet) flushOnce(ctx context.Context, take func(*job)) (res compaction.Result, left bool, err error) {
	j, err := t.begin()
	if err != nil {
		return res, false, err
	}
	defer j.end()
	n := len(j.st.tree.Sets)
	res, left = compaction.Result{RowSetsBefore: n, RowSetsAfter: n}, j.st.frozen != nil
	if err := j.freeze(ctx, func() { take(j) }); err != nil {
		return res, left, err
	}
	if !j.flushes() {
		return res, left, j.awaitLog()
	}
	j.announce()
	err = j.writeMemory(ctx)
	if err == nil {
		err = j.finish(ctx)
	}
	j.record(err)
	if err == nil {
		res.RowSetsAfter = len(t.Info().RowSets)
		res.BytesWritten = j.edit.BytesWritten
	}
	return res, left, err
}

// flushes reports whether the job has taken memory stores that are not empty. If so, it describes the
// edit as a flush.
func (j *job) flushes() bool {
	t, e := j.t, &j.edit
	switch {
	case e.Frozen != nil:
		e.Kind, e.Why = compaction.Flush, "the MemRowSet is flushed"
		e.Retained = t.opts.Store.Retained(t, t.Metadata().HistorySec)
	case len(e.Replaced) > 0:
		e.Kind, e.Why = compaction.DeltaFlush, "the delta mem stores are flushed"
	default:
		return false
	}
	return true
}

// takeMemory takes the MemRowSet and the delta mem stores. Writers are blocked.
func (j *job) takeMemory() {
	j.takeMemRowSet()
	j.takeDeltas()
}

// takeMemRowSet freezes the MemRowSet, unless it is empty or an earlier flush has left a frozen one,
// and takes the frozen one. Writers are blocked.
func (j *job) takeMemRowSet() {
	t, st := j.t, j.st
	if st.frozen == nil && st.mem.Len() > 0 {
		st.mem.Freeze()
		next := newState(st.schema, t.newMem(st.schema), &frozen{st.mem, j.at}, st.tree.Sets, st.floor)
		next.refs.Add(1)
		t.install(next)
		st.release()
		j.st = next
	}
	flushed := j.at
	if f := j.st.frozen; f != nil {
		j.edit.Frozen, flushed = f, f.cutover
	}
	j.edit.FlushedLSN, j.edit.AutoIncrement = flushed.lsn, flushed.auto
}

// takeDeltas takes the delta mem stores that are not empty, except in rowsets that compactions own.
// Writers are blocked.
func (j *job) takeDeltas() {
	changed := func(d *rowset.DiskRowSet) bool { return !d.Tracker().Mem.Empty() }
	for _, d := range j.t.claims.takeFlushed(j.st.tree.Sets, changed) {
		j.startChangeLog(d)
		j.edit.Replaced = append(j.edit.Replaced, Replaced{Set: d, Flush: true})
	}
}

// writeMemory writes the memory stores that were taken.
func (j *job) writeMemory(ctx context.Context) error {
	if f := j.edit.Frozen; f != nil {
		inputs := []rewrite.Input{j.dropping(rewrite.NewMemInput(f.mem.Histories(f.snap)), nil)}
		if err := j.writeRows(ctx, inputs, int64(f.mem.Len()), f.lsn); err != nil {
			return fmt.Errorf("table %q: %w", j.t.Name(), err)
		}
	}
	for i := range j.edit.Replaced {
		r := &j.edit.Replaced[i]
		if err := j.writeDeltas(r); err != nil {
			return fmt.Errorf("table %q: rowset %d: %w", j.t.Name(), r.Set.Metadata().ID, err)
		}
	}
	return nil
}

// writeRows rewrites inputs into new rowsets. rows is the number of rows of the inputs, with
// ghosts, and included the LSN as of which they are read.
func (j *job) writeRows(ctx context.Context, inputs []rewrite.Input, rows int64, included lsn.LSN) error {
	t, e, s := j.t, &j.edit, j.schema.Schema
	written := s
	var convert func(*change.Rows) (*change.Rows, error)
	if e.Alter != nil && e.Alter.retype != nil {
		written, convert = e.Alter.retype.to, e.Alter.retype.rows
	}
	grow := t.opts.GrowFlush
	if e.Kind == compaction.Merge {
		grow = t.opts.GrowMerge
	}
	defer reserve(grow, rowset.WriterBytes(written))()
	w := rowset.NewRollingWriter(j.output(ctx), written, t.newRowSetID, t.opts.TargetBytes)
	w.RowFiles, w.Dictionaries = e.rowFiles(t.Metadata()), &t.dictionaries
	run := rewrite.Job{Schema: s, Inputs: inputs, Retained: e.Retained, Writer: w, Convert: convert}
	if progress := t.opts.Progress; progress != nil {
		run.Progress = func(n int64) { progress(t.Name(), n, rows) }
	}
	stats, err := rewrite.Run(ctx, run)
	if err != nil {
		return err
	}
	e.RowsRead, e.RowsWritten = stats.RowsRead, stats.RowsWritten
	out, err := w.Finish()
	if err != nil {
		return err
	}
	e.add(out, included)
	return nil
}

func (t *Tablet) newRowSetID() uint64 { return t.nextID.Add(1) - 1 }

// writeDeltas writes the delta mem store of a rowset to a file, as of the cutover point.
func (j *job) writeDeltas(r *Replaced) error {
	sink, err := j.creation.Create()
	if err != nil {
		return err
	}
	stats, err := j.writeMemStore(sink, r.Set.Tracker().Mem)
	if err != nil {
		return err
	}
	if err := j.creation.Finish(sink); err != nil {
		return err
	}
	row := *r.Set.Metadata()
	row.Redo = append(slices.Clone(row.Redo), sink.ID())
	row.LastDurableDMS++
	row.LiveRows -= stats.Deletes
	row.IncludedLSN = j.at.lsn
	row.MaxTimestamp = max(row.MaxTimestamp, stats.Max)
	row.Bytes += sink.Size()
	r.Row = &row
	return nil
}

func (j *job) writeMemStore(sink block.Sink, m *delta.MemStore) (delta.Stats, error) {
	w, err := delta.NewWriter(sink, false)
	if err != nil {
		return delta.Stats{}, err
	}
	if err := m.Each(j.at.snap, w.Append); err != nil {
		return delta.Stats{}, err
	}
	return w.Finish()
}
