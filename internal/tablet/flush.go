package tablet

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/rowset"
)

// Result tells what a Flush or Compact did.
type Result struct {
	RowSetsBefore int
	RowSetsAfter  int
	BytesWritten  int64
}

// Flush writes the MemRowSet to new rowsets and every delta mem store to a delta file, in one
// metadata commit. Writers of the table wait for that commit alone. Nothing in memory: nothing
// happens.
func (t *Tablet) Flush(ctx context.Context) (res Result, err error) {
	t.exclusively(func() { res, err = t.flush(ctx) })
	return res, err
}

// FlushIf is Flush if due still says so when no other flush or compaction is in the way.
func (t *Tablet) FlushIf(ctx context.Context, due func() bool) (err error) {
	t.exclusively(func() {
		if due() {
			_, err = t.flush(ctx)
		}
	})
	return err
}

// FlushDeltas writes every delta mem store to a delta file; the MemRowSet stays. Writers of the
// table wait for the commit alone.
func (t *Tablet) FlushDeltas(ctx context.Context) (res Result, err error) {
	t.exclusively(func() { res, _, err = t.flushOnce(ctx, (*rewrite).takeDeltas) })
	return res, err
}

// alone runs work with no other flush or compaction of the table beside it. Events are sent when
// all locks are free again: a listener may do with the table whatever it likes.
func (t *Tablet) exclusively(work func()) {
	t.work.Lock()
	var events []compaction.Event
	func() {
		defer t.work.Unlock()
		work()
		events, t.events = t.events, nil
	}()
	for _, e := range events {
		t.opts.Store.Event(e)
	}
}

// flush is Flush under the work lock.
func (t *Tablet) flush(ctx context.Context) (Result, error) {
	res, left, err := t.flushOnce(ctx, (*rewrite).takeMemory)
	if err == nil && left {
		var rest Result
		rest, _, err = t.flushOnce(ctx, (*rewrite).takeMemory)
		res.RowSetsAfter = rest.RowSetsAfter
		res.BytesWritten += rest.BytesWritten
	}
	return res, err
}

// flushOnce writes what take takes. left tells that this was what an earlier flush had left: there
// may be more.
func (t *Tablet) flushOnce(ctx context.Context, take func(*rewrite)) (res Result, left bool, err error) {
	r, err := t.begin()
	if err != nil {
		return res, false, err
	}
	defer r.end()
	n := len(r.old.tree.Sets)
	res, left = Result{RowSetsBefore: n, RowSetsAfter: n}, r.old.frozen != nil
	if err := r.freeze(ctx, func() { take(r) }); err != nil {
		return res, left, err
	}
	if r.frozen == nil && len(r.flushed) == 0 {
		return res, left, nil
	}
	r.floor = r.old.floor
	r.event.Kind, r.event.Why = compaction.DeltaFlush, "delta mem stores go to disk"
	if r.frozen != nil {
		r.event.Kind, r.event.Why = compaction.Flush, "the MemRowSet goes to disk"
		r.floor = t.opts.Store.HistoryFloor(t, t.Metadata().HistorySec)
	}
	err = r.writeMemory(ctx)
	if err == nil {
		err = r.finish(ctx)
	}
	r.recordEvent(err)
	res.RowSetsAfter = len(r.event.After.RowSets)
	if err == nil {
		res.BytesWritten = r.event.BytesWritten
	}
	return res, left, err
}

// writeMemory writes what was taken of memory.
func (r *rewrite) writeMemory(ctx context.Context) error {
	if f := r.frozen; f != nil {
		if err := r.write(ctx, []compaction.Input{&memInput{it: f.mem.Histories(f.before)}}, f.lsn); err != nil {
			return err
		}
	}
	return r.writeDeltas()
}

// rows is how many rows write reads, ghosts included: those of the rowsets that it replaces, or
// else of the MemRowSet.
func (r *rewrite) rows() (n int64) {
	if r.frozen != nil {
		return int64(r.frozen.mem.Len())
	}
	for _, d := range r.in {
		n += d.Metadata().Rows
	}
	return n
}

// write rewrites inputs, which give what had happened by the batch with LSN included, into new
// rowsets.
func (r *rewrite) write(ctx context.Context, inputs []compaction.Input, included lsn.LSN) error {
	w := rowset.NewRollingWriter(r.creation, r.old.shape.Schema, r.t.newRowSetID, r.t.opts.TargetBytes)
	job := compaction.Job{Schema: r.old.shape.Schema, Inputs: inputs, Floor: r.floor, Writer: w}
	if tell := r.t.opts.Progress; tell != nil {
		of := r.rows()
		job.Progress = func(rows int64) { tell(r.t.Name(), rows, of) }
	}
	stats, err := compaction.Run(ctx, job)
	if err != nil {
		return fmt.Errorf("table %q: %w", r.t.Name(), err)
	}
	r.event.RowsRead, r.event.RowsWritten = stats.RowsRead, stats.RowsWritten
	if r.out, err = w.Finish(); err != nil {
		return fmt.Errorf("table %q: %w", r.t.Name(), err)
	}
	for _, row := range r.out {
		row.IncludedLSN = included
	}
	return nil
}

func (t *Tablet) newRowSetID() uint64 { return t.nextID.Add(1) - 1 }

// writeDeltas writes the delta mem stores that were taken, as of the moment.
func (r *rewrite) writeDeltas() error {
	for i := range r.flushed {
		f := &r.flushed[i]
		sink, err := r.creation.Create()
		if err != nil {
			return err
		}
		stats, err := r.writeMemStore(sink, f.from)
		if err != nil {
			return fmt.Errorf("table %q: rowset %d: %w", r.t.Name(), f.set.Metadata().ID, err)
		}
		if err := r.creation.Finish(sink); err != nil {
			return err
		}
		row := *f.set.Metadata()
		row.Redo = append(slices.Clone(row.Redo), sink.ID())
		row.LastDurableDMS++
		row.LiveRows -= stats.Deletes
		row.IncludedLSN = r.lsn
		row.MaxTimestamp = max(row.MaxTimestamp, stats.Max)
		row.Bytes += sink.Size()
		f.row, f.file = &row, sink.ID()
	}
	return nil
}

func (r *rewrite) writeMemStore(sink block.Sink, m *delta.MemStore) (delta.Stats, error) {
	w, err := delta.NewWriter(sink, false)
	if err != nil {
		return delta.Stats{}, err
	}
	if err := m.Each(r.before, w.Append); err != nil {
		return delta.Stats{}, err
	}
	return w.Finish()
}

// memInput is a MemRowSet as the input of a flush.
type memInput struct{ it *memrowset.HistoryIterator }

const memInputRows = 4096

func (m *memInput) Next() (*change.Rows, error) { return m.it.Next(memInputRows) }
