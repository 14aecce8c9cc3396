package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/storeinfo"
)

// startBackground starts background work, which ends with stop.
func startBackground(w *Writer, o BackgroundOptions, locks *storedir.Locks, p *pacer) *Background {
	b := &Background{w: w, o: o, locks: locks, pacer: p, wake: make(chan struct{}, 1), sync: make(chan struct{}, 1),
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
			began := time.Now()
			b.schedule(began)
			b.rest(time.Since(began))
		}
	}
}

// While calls wake the scheduler again and again, as many flushes of small tables do, it uses at most
// 1/restShare of a processor. Looking at fewer than a thousand tables takes less than restAbove.
const (
	restShare = 8
	restAbove = time.Millisecond
	restMost  = 50 * time.Millisecond
)

// rest waits after the scheduler has taken some time.
func (b *Background) rest(took time.Duration) {
	if took < restAbove {
		return
	}
	select {
	case <-b.ctx.Done():
	case <-time.After(min((restShare-1)*took, restMost)):
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
		if b.o.Manual || !b.state().MayPlan() {
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
	return maintenance.State{Workers: b.o.workers(), Spare: b.o.spare(), Running: b.running(), Rewriting: b.rewriting,
		Memory: mem - b.owned, SoftMemory: soft, LogTarget: b.w.core.LogTarget()}
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
	if op.Kind != maintenance.LogGC { // which allocates little, and is due each second
		b.pacer.beginJob()
		defer b.pacer.endJob()
	}
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
	for _, t := range op.joined {
		t.noted.Store(false)
	}
	wake(b.wake)
	return err
}

// learn updates what is known of a table from how an operation on it ended, and which of the
// rowsets that it read are damaged.
func (b *Background) learn(op operation, result maintenance.Result, damaged []uint64, now time.Time) {
	job := maintenance.Job{Kind: op.Kind, Table: op.Table}
	w := b.tables[op.Table]
	if op.Kind == maintenance.Flush && w != nil {
		w.apart = false
	}
	if len(op.joined) > 0 && result == maintenance.Failed {
		for _, t := range append(op.joined, op.table) {
			b.of(t).apart = true
		}
		return
	}
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
	if b.o.Schedule == nil {
		b.joinFlushes(state, ops)
	}
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
