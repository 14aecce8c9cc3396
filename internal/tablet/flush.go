package tablet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/block"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// Result tells what a Flush or Compact did.
type Result struct {
	RowSetsBefore int
	RowSetsAfter  int
	BytesWritten  int64
}

// Flush writes the MemRowSet to new rowsets and every delta mem store to a delta file, in one metadata commit.
// Writers of the table wait meanwhile, readers do not. Nothing in memory: nothing happens.
func (t *Tablet) Flush(ctx context.Context) (res Result, err error) {
	t.alone(func() { res, err = t.flush(ctx) })
	return res, err
}

// alone runs work with no other flush or compaction of the table beside it. Events are sent when all locks are free again: a
// listener may do with the table whatever it likes.
func (t *Tablet) alone(work func()) {
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
	r, err := t.freeze(ctx)
	if err != nil {
		return Result{}, err
	}
	defer r.thaw()
	res := Result{RowSetsBefore: len(r.old.tree.Sets), RowSetsAfter: len(r.old.tree.Sets)}
	if r.old.firstLSN() == NoLSN {
		return res, nil
	}
	r.mem = t.newMem(r.old.shape)
	r.floor = t.opts.Store.HistoryFloor(t, t.Row().HistorySec)
	if r.old.mem.Len() > 0 {
		r.event.Kind, r.event.Why = compaction.Flush, "the MemRowSet goes to disk"
		err = r.write(ctx, []compaction.Input{&memInput{it: r.old.mem.Histories(mvcc.Max)}})
	} else {
		r.event.Kind, r.event.Why = compaction.DeltaFlush, "delta mem stores go to disk"
		r.floor = r.old.floor
	}
	if err == nil {
		err = r.writeDeltas()
	}
	if err == nil {
		err = r.commit()
	}
	r.tell(err)
	if err != nil {
		return res, err
	}
	res.RowSetsAfter, res.BytesWritten = len(t.cur.tree.Sets), r.event.BytesWritten
	return res, nil
}

// Compact flushes, then merges until no rowsets overlap and no redo is left but the DELETE of a row that history still holds.
func (t *Tablet) Compact(ctx context.Context) (res Result, err error) {
	t.alone(func() { res, err = t.compact(ctx) })
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
		n, err := t.mergeSets(ctx, ids, "asked for", len(group) > 1)
		if err != nil {
			return res, err
		}
		res.BytesWritten += n
	}
	res.RowSetsAfter = len(t.Info().RowSets)
	return res, nil
}

// Merge rewrites the chosen rowsets into others that do not overlap.
func (t *Tablet) Merge(ctx context.Context, c compaction.Choice) (err error) {
	t.alone(func() { _, err = t.mergeSets(ctx, c.RowSets, c.Why, true) })
	return err
}

// mergeSets is Merge under the work lock. Without force, a rowset is left as it is when a rewrite would change nothing.
func (t *Tablet) mergeSets(ctx context.Context, ids []uint64, why string, force bool) (bytes int64, err error) {
	r, err := t.freeze(ctx)
	if err != nil {
		return 0, err
	}
	defer r.thaw()
	r.mem = r.old.mem
	r.floor = t.opts.Store.HistoryFloor(t, t.Row().HistorySec)
	for _, d := range r.old.tree.Sets {
		if slices.Contains(ids, d.Stored().ID) {
			r.in = append(r.in, d)
		}
	}
	if len(r.in) == 0 || !force && !slices.ContainsFunc(r.in, func(d *rowset.DiskRowSet) bool { return hasWork(d, r.floor) }) {
		return 0, nil
	}
	r.event.Kind, r.event.Why = compaction.Merge, why
	inputs, err := r.inputs()
	if err == nil {
		err = r.write(ctx, inputs)
	}
	if err == nil {
		err = r.commit()
	}
	r.tell(err)
	return r.event.BytesWritten, err
}

// inputs opens the histories of the rowsets to be replaced.
func (r *rewrite) inputs() ([]compaction.Input, error) {
	var inputs []compaction.Input
	for _, d := range r.in {
		r.event.Inputs = append(r.event.Inputs, describe(d.Stored()))
	}
	for _, d := range r.in {
		h, err := d.Histories(mvcc.Max)
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", r.t.Name, err)
		}
		inputs = append(inputs, h)
	}
	return inputs, nil
}

// hasWork tells whether a rowset has redos that a rewrite brings into the base, or a deleted row that history no longer holds.
func hasWork(d *rowset.DiskRowSet, floor mvcc.Timestamp) bool {
	tr := d.Tracker()
	if tr.Mem != nil {
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

// rewrite is one flush or compaction on its way. The table's writers are shut out from freeze to thaw; a delta compaction, which
// reads no memory, begins without that and shuts them out only for its commit.
type rewrite struct {
	t        *Tablet
	gated    bool   // the gate is held
	lsn      uint64 // from freeze on everything up to here is published and in r.old's stores; nothing of this table lies above
	old      *layout
	in       []*rowset.DiskRowSet // rowsets that the outputs replace
	shape    *Shape               // of the new layout
	mem      *memrowset.MemRowSet // of the new layout
	floor    mvcc.Timestamp       // of the new layout
	creation *blockmanager.Creation
	before   *blockmanager.Creation // blocks that were written, and synced, before the freeze; nil = none
	confirm  bool                   // the log cannot bring back what this brings
	out      []*meta.RowSet
	flushed  []flushedDeltas
	swapped  []swap
	auto     int64       // the highest value that an ingest brings for an auto-incrementing column
	altered  *meta.Table // the table's row with what an Alter has changed in it; nil = no Alter
	event    compaction.Event
	start    time.Time
	done     bool
}

// flushedDeltas is a rowset that gets its delta mem store as a file.
type flushedDeltas struct {
	set  *rowset.DiskRowSet
	row  *meta.RowSet
	file block.ID
}

// freeze shuts the table's writers out and waits until all that is in the log is durable and published.
func (t *Tablet) freeze(ctx context.Context) (*rewrite, error) {
	// What waits for the disk is mostly done before writers have to wait too.
	if err := t.opts.Store.Settle(ctx, t.opts.Store.LastLSN()); err != nil {
		return nil, err
	}
	start := time.Now()
	t.gate.Lock()
	r, err := t.begin()
	if err != nil {
		t.gate.Unlock()
		return nil, err
	}
	r.gated, r.start, r.lsn = true, start, t.opts.Store.LastLSN()
	if err := t.opts.Store.Settle(ctx, r.lsn); err != nil {
		r.thaw()
		return nil, err
	}
	return r, nil
}

// begin starts a rewrite with writers about.
func (t *Tablet) begin() (*rewrite, error) {
	l, err := t.acquire()
	if err != nil {
		return nil, err
	}
	r := &rewrite{t: t, old: l, shape: l.shape, creation: t.opts.Store.NewCreation(), start: time.Now()}
	r.event.Table, r.event.Before = t.Name, l.info(t.Name)
	return r, nil
}

// thaw lets writers in again. What was not committed never happened.
func (r *rewrite) thaw() {
	if !r.done {
		r.creation.Abort()
	}
	r.old.release()
	if r.gated {
		r.t.gate.Unlock()
	}
}

// rows is how many rows write reads, ghosts included: those of the rowsets that it replaces, or else of the MemRowSet.
func (r *rewrite) rows() (n int64) {
	if len(r.in) == 0 {
		return int64(r.old.mem.Len())
	}
	for _, d := range r.in {
		n += d.Stored().Rows
	}
	return n
}

// write rewrites inputs into new rowsets.
func (r *rewrite) write(ctx context.Context, inputs []compaction.Input) error {
	w := rowset.NewRollingWriter(r.creation, r.old.shape.Schema, r.t.newRowSetID, r.t.opts.TargetBytes)
	job := compaction.Job{Schema: r.old.shape.Schema, Inputs: inputs, Floor: r.floor, Writer: w}
	if tell := r.t.opts.Progress; tell != nil {
		of := r.rows()
		job.Progress = func(rows int64) { tell(r.t.Name, rows, of) }
	}
	stats, err := compaction.Run(ctx, job)
	if err != nil {
		return fmt.Errorf("table %q: %w", r.t.Name, err)
	}
	r.event.RowsRead, r.event.RowsWritten = stats.RowsRead, stats.RowsWritten
	if r.out, err = w.Finish(); err != nil {
		return fmt.Errorf("table %q: %w", r.t.Name, err)
	}
	for _, row := range r.out {
		row.IncludedLSN = r.lsn
	}
	return nil
}

func (t *Tablet) newRowSetID() uint64 { return t.nextID.Add(1) - 1 }

// writeDeltas writes the delta mem stores of rowsets that stay.
func (r *rewrite) writeDeltas() error {
	for _, d := range r.old.tree.Sets {
		m := d.Tracker().Mem
		if m == nil || m.Len() == 0 {
			continue
		}
		sink, err := r.creation.Create()
		if err != nil {
			return err
		}
		if err := writeMemStore(sink, m); err != nil {
			return fmt.Errorf("table %q: rowset %d: %w", r.t.Name, d.Stored().ID, err)
		}
		if err := r.creation.Finish(sink); err != nil {
			return err
		}
		row := *d.Stored()
		row.Redo = append(slices.Clone(row.Redo), sink.ID())
		row.LastDurableDMS++
		row.LiveRows -= m.Deleted()
		row.IncludedLSN = r.lsn
		row.MaxTimestamp = max(row.MaxTimestamp, m.MaxTimestamp())
		row.Bytes += sink.Size()
		r.flushed = append(r.flushed, flushedDeltas{set: d, row: &row, file: sink.ID()})
	}
	return nil
}

func writeMemStore(sink block.Sink, m *delta.MemStore) error {
	w, err := delta.NewWriter(sink, false)
	if err != nil {
		return err
	}
	if err := m.Each(w.Append); err != nil {
		return err
	}
	_, err = w.Finish()
	return err
}

// commit makes the outputs part of the table, in metadata and then in memory.
func (r *rewrite) commit() error {
	t := r.t
	if err := r.creation.Sync(); err != nil {
		return err
	}
	row := *t.Row()
	if r.altered != nil {
		row = *r.altered
	}
	row.NextRowSetID = t.nextID.Load()
	row.HistoryFloor = max(row.HistoryFloor, r.floor)
	if r.mem != r.old.mem {
		row.FlushedLSN, row.AutoIncrement = r.lsn, t.auto
	}
	row.AutoIncrement = max(row.AutoIncrement, r.auto)
	ch := blockmanager.Change{Created: []*blockmanager.Creation{r.creation}, Confirm: r.confirm}
	if r.before != nil {
		ch.Created = append(ch.Created, r.before)
	}
	for _, d := range r.in {
		d.OpenFiles() // for readers that hold the old layout and have not needed each file yet
		ch.Dead = d.Stored().Blocks(ch.Dead)
		ch.Delete = append(ch.Delete, meta.RowSetKey(t.Number, d.Stored().ID))
	}
	for _, m := range r.out {
		ch.Put = append(ch.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, m.ID), Value: m.Encode()})
	}
	for _, f := range r.flushed {
		ch.Put = append(ch.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, f.row.ID), Value: f.row.Encode()})
	}
	for _, s := range r.swapped {
		ch.Dead = s.appendDead(ch.Dead)
		ch.Put = append(ch.Put, blockmanager.Row{Key: meta.RowSetKey(t.Number, s.row.ID), Value: s.row.Encode()})
	}
	ch.Put = append(ch.Put, blockmanager.Row{Key: meta.TableKey(t.Number), Value: row.Encode()})
	for _, c := range ch.Created {
		for _, info := range c.Blocks() {
			r.event.BytesWritten += info.Length
		}
	}
	return t.opts.Store.CommitMeta(t, ch, r.firstLSN, func() error { return r.install(&row) })
}

// firstLSN is the lowest LSN that the table's memory stores will hold after the commit.
func (r *rewrite) firstLSN() uint64 {
	first := NoLSN
	if lsn := r.mem.FirstLSN(); lsn != 0 {
		first = lsn
	}
	for _, d := range r.old.tree.Sets {
		m := d.Tracker().Mem
		if m == nil || m.FirstLSN() == 0 || slices.Contains(r.in, d) || r.flushes(d) {
			continue
		}
		first = min(first, m.FirstLSN())
	}
	return first
}

func (r *rewrite) flushes(d *rowset.DiskRowSet) bool {
	return slices.ContainsFunc(r.flushed, func(f flushedDeltas) bool { return f.set == d })
}

// stored is the metadata row of a rowset that stays, as of the commit.
func (r *rewrite) stored(d *rowset.DiskRowSet) *meta.RowSet {
	for _, f := range r.flushed {
		if f.set == d {
			return f.row
		}
	}
	return d.Stored()
}

// install swaps the new layout in. An error after the commit means that memory no longer shows what the metadata says: the
// store poisons itself.
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
		trackers[i] = &delta.Tracker{Schema: old.Schema, Undo: old.Undo, Redo: append(slices.Clone(old.Redo), file)}
	}
	t.row.Store(row)
	t.auto = max(t.auto, row.AutoIncrement)
	for i, f := range r.flushed {
		mem := f.set.Tracker().Mem
		f.set.SetStores(f.row, trackers[i])
		mem.Release()
	}
	for _, d := range r.in {
		if m := d.Tracker().Mem; m != nil {
			m.Release()
		}
	}
	t.install(newLayout(r.shape, r.mem, sets, max(r.floor, r.old.floor)))
	if r.mem != r.old.mem {
		r.old.mem.Release()
	}
	return nil
}

// tell puts the event by for alone to send, after the commit or the failure.
func (r *rewrite) tell(err error) {
	e := &r.event
	e.Err, e.Duration = err, time.Since(r.start)
	for _, m := range r.out {
		e.Outputs = append(e.Outputs, describe(m))
	}
	for _, f := range r.flushed {
		e.Outputs = append(e.Outputs, describe(f.row))
	}
	for _, s := range r.swapped {
		e.Outputs = append(e.Outputs, describe(s.row))
	}
	e.After = r.t.Info()
	r.t.events = append(r.t.events, *e)
}

// memInput is a MemRowSet as the input of a flush.
type memInput struct{ it *memrowset.HistoryIterator }

const memInputRows = 4096

func (m *memInput) Next() (*change.Rows, error) { return m.it.Next(memInputRows) }
