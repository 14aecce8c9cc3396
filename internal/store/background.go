package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/storeinfo"
)

// Bounds of what may wait to be flushed or compacted.
const (
	// bytes of input that one background compaction should stay below, if the memory limit is not less
	maxCompaction = 256 << 20
	confirmAfter  = time.Second
	historyAfter  = time.Minute // after which an idle store looks for history that has become too old
	syncAfter     = 4 << 20     // bytes by which the log grows before the syncer syncs it
)

// Background runs the store's maintenance: one goroutine lists the operations that are due, has
// package maintenance choose among them, and starts each in a goroutine of its own, up to
// Options.MaintenanceWorkers at once. Another goroutine syncs the log of write batches that do not
// wait for it. With Options.Manual only the metadata is confirmed, once a second.
//
// Listing is cheap: what depends on the layout of a table is computed once for each version of it.
// The policy, which is the caller's code and may be slow, is asked by a worker.
type Background struct {
	w      *Writer
	o      BackgroundOptions
	locks  *storedir.Locks
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // operations may be due, or a worker is free
	sync   chan struct{} // a sync of the log is due
	synced atomic.Int64  // length of the log when that was last begun
	// a commit has woken the scheduler since the last operation ended: memory or log is over a limit of the store
	noted atomic.Bool

	mu         sync.Mutex // guards the fields below; no file is touched while it is held
	counts     maintenance.Counts
	rewriting  int           // running operations of kinds that do not free memory, and planning
	planning   bool          // the policy is being asked
	paused     int           // calls of PauseBackgroundWork without their end
	ended      chan struct{} // closed and replaced when an operation ends
	tables     map[uint32]*tableWork
	backoff    maintenance.Backoff
	owned      int64     // bytes of changes that flushes leave to compactions, as of the last list
	confirmDue bool      // it is time to confirm the metadata
	sparse     bool      // blocks were dropped since no container was sparse
	looked     time.Time // when history was last looked through
}

// BackgroundOptions are the options of background work.
type BackgroundOptions struct {
	Manual     bool // only the metadata is confirmed, once a second
	Workers    int  // operations that run at once
	FlushBytes int64
	Policy     compaction.Policy
	// Schedule, unless it is nil, chooses one of the operations that may start next: it returns its
	// index, or a negative number for none.
	Schedule func([]storeinfo.BackgroundOp) int
}

// startBackground starts background work, which ends with stop.
func startBackground(w *Writer, o BackgroundOptions, locks *storedir.Locks) *Background {
	b := &Background{w: w, o: o, locks: locks, wake: make(chan struct{}, 1), sync: make(chan struct{}, 1),
		ended: make(chan struct{}), tables: map[uint32]*tableWork{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.done.Go(b.scheduler)
	if !o.Manual {
		b.done.Go(b.syncer)
		b.done.Go(b.marker)
	}
	return b
}

// stop cancels the work in progress, before its commit, and waits for the goroutines.
func (b *Background) stop() {
	b.cancel()
	b.done.Wait()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Appended wakes the syncer if the log has grown, and the scheduler if the store has reached a limit.
// It wakes the scheduler once until an operation ends. It is called after a write batch has entered
// the log; Grown is called for its tables.
func (b *Background) Appended() {
	if b.o.Manual {
		return
	}
	switch length := b.w.Log.Bytes(); {
	case length >= b.synced.Load()+syncAfter:
		wake(b.sync)
	case length < b.synced.Load(): // segments were removed
		b.synced.Store(length)
	}
	if !b.noted.Load() && b.w.OverLimit() && b.noted.CompareAndSwap(false, true) {
		wake(b.wake)
	}
}

// Grown wakes the scheduler if a write batch has brought a table to its limit. It wakes the scheduler
// once until an operation on the table ends: a table stays above its limit while it is flushed.
func (b *Background) Grown(t *Table) {
	if b.o.Manual || t.noted.Load() {
		return
	}
	if mem, _ := t.MemBytes(); mem >= b.o.FlushBytes && t.noted.CompareAndSwap(false, true) {
		wake(b.wake)
	}
}

// Poke looks for operations that are due after the layout of a table has changed, or after a job of
// a caller has ended.
func (b *Background) Poke() {
	if !b.o.Manual {
		wake(b.wake)
	}
}

// syncer makes the log of write batches that were committed with NoSync durable, a few megabytes at
// a time. If the disk had to write all of them at once, at the end of a segment or before a flush,
// writers would wait for it.
func (b *Background) syncer() {
	w := b.w
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.sync:
		}
		b.synced.Store(w.Log.Bytes())
		if err := w.Log.Sync(w.LastLSN()); err != nil {
			w.Poison(err)
			return
		}
	}
}

// scheduler starts operations when they become due. It also looks once a second: for what has
// become due by time, and for what had to wait for a job of a caller.
func (b *Background) scheduler() {
	tick := time.NewTicker(confirmAfter)
	defer tick.Stop()
	b.schedule(time.Now())
	for {
		select {
		case <-b.ctx.Done():
			return
		case now := <-tick.C:
			b.mu.Lock()
			b.confirmDue = true
			b.lookAgain()
			b.mu.Unlock()
			b.schedule(now)
		case <-b.wake:
			b.schedule(time.Now())
		}
	}
}

// lookAgain makes the rules and the policy look again at tables of which they have not seen all
// rowsets: the compactions that owned these may have ended without a new layout. The caller holds
// b.mu.
func (b *Background) lookAgain() {
	for _, w := range b.tables {
		if w.hidden {
			w.hidden, w.planned, w.seen = false, 0, 0
		}
	}
}

// schedule starts operations as long as one is due and a worker is free.
func (b *Background) schedule(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.ctx.Err() == nil && b.paused == 0 && b.w.Poisoned() == nil {
		ops := b.list(now, !b.o.Manual)
		if i := b.choose(ops); i >= 0 {
			op := ops[i]
			b.begin(op)
			b.done.Go(func() { b.carryOut(b.ctx, op) })
			continue
		}
		if b.o.Manual || b.rewriting >= b.o.Workers-1 || b.running() >= b.o.Workers {
			return
		}
		if tables := b.beginPlanning(); len(tables) > 0 {
			b.done.Go(func() {
				b.plan(tables)
				wake(b.wake)
			})
		}
		return
	}
}

func (b *Background) state() maintenance.State {
	mem, soft := b.w.memoryPressure()
	return maintenance.State{Workers: b.o.Workers, Running: b.running(), Rewriting: b.rewriting,
		Memory: mem - b.owned, SoftMemory: soft, LogTarget: b.w.core.LogTarget()}
}

// running returns how many workers are busy.
func (b *Background) running() int {
	if b.planning {
		return b.counts.Running + 1
	}
	return b.counts.Running
}

// begin counts an operation that is about to run.
func (b *Background) begin(op operation) {
	b.counts.Started(op.Kind)
	if !op.Kind.FreesMemory() {
		b.rewriting++
	}
	if w := b.tables[op.Table]; w != nil && op.Kind == maintenance.Merge {
		w.merging = true
	}
	if op.Kind == maintenance.LogGC {
		b.confirmDue = false
	}
}

// carryOut runs an operation that begin has counted. It logs a failure, and remembers it so that
// the operation is not repeated in vain.
func (b *Background) carryOut(ctx context.Context, op operation) error {
	start := time.Now()
	bytes, err := b.perform(ctx, op)
	result := maintenance.Done
	var damaged []uint64
	switch {
	case err == nil && bytes == 0 && op.Kind == maintenance.LogGC:
		result = maintenance.Canceled
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, context.Canceled), errors.Is(err, fault.ErrNoTable), errors.Is(err,
		fault.ErrClosed):
		result = maintenance.Canceled
	default:
		result = maintenance.Failed
		attrs := []any{slog.Any("err", err)}
		if op.table != nil {
			attrs = append(attrs, slog.String("table", op.table.Name()))
		}
		b.w.core.Options.Logger.Error(string(op.Kind)+" failed", attrs...)
		if sets := op.rowsets(); len(sets) > 0 {
			damaged = op.table.Damaged(ctx, err, sets)
		}
	}
	end := time.Now()
	b.mu.Lock()
	b.counts.Ended(op.Kind, result, bytes, end.Sub(start))
	if !op.Kind.FreesMemory() {
		b.rewriting--
	}
	b.learn(op, result, damaged, end)
	b.end()
	b.mu.Unlock()
	b.noted.Store(false)
	if op.table != nil {
		op.table.noted.Store(false)
	}
	wake(b.wake)
	return err
}

// end wakes those who wait for operations to end.
func (b *Background) end() {
	close(b.ended)
	b.ended = make(chan struct{})
}

// learn updates what is known of a table from how an operation on it ended, and which of the
// rowsets that it read are damaged.
func (b *Background) learn(op operation, result maintenance.Result, damaged []uint64, now time.Time) {
	job := maintenance.Job{Kind: op.Kind, Table: op.Table}
	w := b.tables[op.Table]
	switch {
	case result == maintenance.Canceled:
	case result == maintenance.Done:
		b.backoff.Succeeded(job)
		b.sparse = b.sparse || op.Kind != maintenance.LogGC && op.Kind != maintenance.Reclaim
		// What a flush would write does not depend on the version alone.
		if w != nil && op.Kind != maintenance.Flush && op.Kind != maintenance.DeltaFlush &&
			op.table.Version() == op.version {
			w.futile[op.Kind] = op.version
		}
	case len(damaged) > 0 && w != nil:
		w.exclude(damaged)
	default:
		b.backoff.Failed(job, now)
	}
	if w != nil && op.Kind == maintenance.Merge {
		w.merging = false
	}
}

// exclude leaves damaged rowsets out of compactions until the store is opened again.
func (w *tableWork) exclude(rowsets []uint64) {
	for _, id := range rowsets {
		w.damaged[id] = true
	}
	w.planned, w.seen = 0, 0
}

// marker writes clock marks periodically.
func (b *Background) marker() {
	tick := time.NewTicker(storedir.MarkEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.MarkClock(b.ctx); err != nil && b.ctx.Err() == nil {
			b.w.core.Options.Logger.Debug("the clock was not marked for followers", slog.Any("err", err))
		}
	}
}

// MarkClock writes a clock mark if there are followers, see storedir.Locks.Mark.
func (b *Background) MarkClock(ctx context.Context) error {
	w := b.w
	if !w.core.Dir.HasFollowers() {
		return nil
	}
	if err := w.Poisoned(); err != nil {
		return err
	}
	ts, last, err := w.Now()
	if err != nil {
		return err
	}
	// A batch up to ts may still be in a buffer of the log, or an ingest before its commit.
	if err := w.WaitLSN(ctx, last); err != nil {
		return err
	}
	return b.locks.Mark(ts)
}

// next begins the operation that is due next, if there is one, and returns it.
func (b *Background) next() (operation, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if tables := b.beginPlanning(); len(tables) > 0 {
		b.mu.Unlock()
		b.plan(tables)
		b.mu.Lock()
	}
	b.looked = time.Time{} // for history that has become too old
	ops := b.list(time.Now(), true)
	i := b.choose(ops)
	if i < 0 {
		return operation{}, false
	}
	b.begin(ops[i])
	return ops[i], true
}

// choose returns the index of the operation to start; −1 for none. It counts the others that are
// due.
func (b *Background) choose(ops []operation) int {
	state := b.state()
	list := make([]maintenance.Operation, len(ops))
	b.counts.Queued = 0
	for i := range ops {
		list[i] = ops[i].Operation
		if state.Due(list[i]) {
			b.counts.Queued++
		}
	}
	next := -1
	if schedule := b.o.Schedule; schedule == nil {
		next, _ = maintenance.Choose(state, list)
	} else if may := state.Startable(list); len(may) > 0 {
		public := make([]storeinfo.BackgroundOp, len(may))
		for k, i := range may {
			public[k] = ops[i].public()
		}
		if k := schedule(public); k >= 0 && k < len(may) {
			next = may[k]
		}
	}
	if next >= 0 && state.Due(list[next]) {
		b.counts.Queued--
	}
	return next
}

// Pause waits until no background operation runs, and keeps others from starting until resume is
// called. Pauses may overlap. A second call of resume does nothing. Errors: ctx.Err(), after which
// nothing is paused.
func (b *Background) Pause(ctx context.Context) (resume func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused++
	b.counts.Paused = true
	over := false
	end := func() { // under b.mu
		if over {
			return
		}
		over = true
		b.paused--
		b.counts.Paused = b.paused > 0
		wake(b.wake)
	}
	for b.running() > 0 {
		ended := b.ended
		b.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
		b.mu.Lock()
		if err != nil {
			end()
			return nil, err
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		end()
	}, nil
}

// Step carries out the operation that would start next. ran is false if none is due. Errors: the errors
// of the operation; ctx.Err().
func (b *Background) Step(ctx context.Context) (op storeinfo.BackgroundOp, ran bool, err error) {
	next, ok := b.next()
	if !ok {
		return op, false, nil
	}
	return next.public(), true, b.carryOut(ctx, next)
}

// Counts returns the counts of operations.
func (b *Background) Counts() maintenance.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}
