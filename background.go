package oribi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/storedir"
)

// Bounds of what may wait to be flushed or compacted.
const (
	maxLogBytes   = 128 << 20 // see logTarget
	maxCompaction = 256 << 20 // bytes of input that one background compaction should stay below, if the memory limit is not less
	confirmAfter  = time.Second
	historyAfter  = time.Minute // after which an idle store looks for history that has become too old
	syncAfter     = 4 << 20     // bytes by which the log grows before the syncer syncs it
)

// background runs the store's maintenance: one goroutine lists the operations that are due, has
// package maintenance choose among them, and starts each in a goroutine of its own, up to
// Options.MaintenanceWorkers at once. Another goroutine syncs the log of write batches that do not
// wait for it. With Options.Manual only the metadata is confirmed, once a second.
//
// Listing is cheap: what depends on the layout of a table is computed once for each version of it.
// The policy, which is the caller's code and may be slow, is asked by a worker.
type background struct {
	s      *Store
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	wake   chan struct{} // operations may be due, or a worker is free
	sync   chan struct{} // a sync of the log is due
	synced atomic.Int64  // length of the log when that was last begun
	noted  atomic.Bool   // a commit has woken the scheduler since the last operation ended: memory or log is over a limit of the store

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

func startBackground(s *Store) *background {
	b := &background{s: s, wake: make(chan struct{}, 1), sync: make(chan struct{}, 1), ended: make(chan struct{}), tables: map[uint32]*tableWork{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.done.Go(b.scheduler)
	if !s.opts.Manual {
		b.done.Go(b.syncer)
		b.done.Go(b.marker)
	}
	return b
}

// stop cancels the work in progress, before its commit, and waits for the goroutines.
func (b *background) stop() {
	b.cancel()
	b.done.Wait()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// check wakes the scheduler if a write batch has brought a table or the store to a limit, and the
// syncer if the log has grown. It wakes the scheduler once until an operation ends: a table stays
// above its limit while it is flushed.
func (b *background) check(tables []*tableOps) {
	if b.s.opts.Manual {
		return
	}
	switch length := b.s.writer.Log.Bytes(); {
	case length >= b.synced.Load()+syncAfter:
		wake(b.sync)
	case length < b.synced.Load(): // segments were removed
		b.synced.Store(length)
	}
	for _, p := range tables {
		t := p.table
		if t.noted.Load() {
			continue
		}
		if mem, _ := t.tab.MemBytes(); mem >= b.s.opts.FlushBytes && t.noted.CompareAndSwap(false, true) {
			wake(b.wake)
		}
	}
	if !b.noted.Load() && b.s.overLimit() && b.noted.CompareAndSwap(false, true) {
		wake(b.wake)
	}
}

// overLimit reports whether memory or log should be freed, whatever the sizes of single tables.
func (s *Store) overLimit() bool {
	mem, soft := s.memoryPressure()
	return mem > soft || s.core.Budget.UsedBy(budget.Delta) >= s.deltaLimit() || s.writer.Log.Bytes() >= s.logTarget()
}

// logTarget returns the length of the log above which whatever pins it is flushed. A flush frees
// whole segments only, and not the newest: if that alone were above the target, each write batch
// would be flushed.
func (s *Store) logTarget() int64 { return max(s.maxLog, 2*s.opts.LogSegmentBytes) }

// softShare is the share of the memory for rows and changes above which they are flushed before
// anything else is done, in percent. Source: tablet spec §17.
const softShare = 60

// writersMemory returns the bytes for which writers wait: all that are counted, without those of
// scans and merges, since a flush frees none of them.
func (s *Store) writersMemory() int64 {
	return s.core.Budget.Used() - s.core.Budget.UsedBy(budget.Scan) - s.core.Budget.UsedBy(budget.Merge)
}

// memoryPressure returns the bytes of rows and changes in memory, and above how many of them memory
// is short: a share of what they may have before writers wait, see makeRoom.
func (s *Store) memoryPressure() (mem, soft int64) {
	mem = s.core.Budget.UsedBy(budget.MemRowSet) + s.core.Budget.UsedBy(budget.Delta)
	return mem, max(0, s.opts.MemoryLimit/2-(s.writersMemory()-mem)) / 100 * softShare
}

// poke looks for operations that are due after the layout of a table has changed, or after a job of
// a caller has ended.
func (b *background) poke() {
	if !b.s.opts.Manual {
		wake(b.wake)
	}
}

// syncer makes the log of write batches that were committed with NoSync durable, a few megabytes at
// a time. If the disk had to write all of them at once, at the end of a segment or before a flush,
// writers would wait for it.
func (b *background) syncer() {
	s := b.s
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.sync:
		}
		b.synced.Store(s.writer.Log.Bytes())
		if err := s.writer.Log.Sync(s.core.LastLSN()); err != nil {
			s.writer.Poison(err)
			return
		}
	}
}

// scheduler starts operations when they become due. It also looks once a second: for what has
// become due by time, and for what had to wait for a job of a caller.
func (b *background) scheduler() {
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
func (b *background) lookAgain() {
	for _, w := range b.tables {
		if w.hidden {
			w.hidden, w.planned, w.seen = false, 0, 0
		}
	}
}

// schedule starts operations as long as one is due and a worker is free.
func (b *background) schedule(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.ctx.Err() == nil && b.paused == 0 && b.s.poisoned() == nil {
		ops := b.list(now, !b.s.opts.Manual)
		if i := b.choose(ops); i >= 0 {
			op := ops[i]
			b.begin(op)
			b.done.Go(func() { b.carryOut(b.ctx, op) })
			continue
		}
		if b.s.opts.Manual || b.rewriting >= b.s.opts.MaintenanceWorkers-1 || b.running() >= b.s.opts.MaintenanceWorkers {
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

func (b *background) state() maintenance.State {
	mem, soft := b.s.memoryPressure()
	return maintenance.State{Workers: b.s.opts.MaintenanceWorkers, Running: b.running(), Rewriting: b.rewriting,
		Memory: mem - b.owned, SoftMemory: soft, LogTarget: b.s.logTarget()}
}

// running returns how many workers are busy.
func (b *background) running() int {
	if b.planning {
		return b.counts.Running + 1
	}
	return b.counts.Running
}

// begin counts an operation that is about to run.
func (b *background) begin(op operation) {
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
func (b *background) carryOut(ctx context.Context, op operation) error {
	start := time.Now()
	bytes, err := b.perform(ctx, op)
	result := maintenance.Done
	var damaged []uint64
	switch {
	case err == nil && bytes == 0 && op.Kind == maintenance.LogGC:
		result = maintenance.Canceled
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, context.Canceled), errors.Is(err, fault.ErrNoTable), errors.Is(err, fault.ErrClosed):
		result = maintenance.Canceled
	default:
		result = maintenance.Failed
		attrs := []any{slog.Any("err", err)}
		if op.table != nil {
			attrs = append(attrs, slog.String("table", op.table.tab.Name()))
		}
		b.s.opts.Logger.Error(string(op.Kind)+" failed", attrs...)
		if sets := op.rowsets(); len(sets) > 0 {
			damaged = op.table.tab.Damaged(ctx, err, sets)
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
func (b *background) end() {
	close(b.ended)
	b.ended = make(chan struct{})
}

// learn updates what is known of a table from how an operation on it ended, and which of the
// rowsets that it read are damaged.
func (b *background) learn(op operation, result maintenance.Result, damaged []uint64, now time.Time) {
	job := maintenance.Job{Kind: op.Kind, Table: op.Table}
	w := b.tables[op.Table]
	switch {
	case result == maintenance.Canceled:
	case result == maintenance.Done:
		b.backoff.Succeeded(job)
		b.sparse = b.sparse || op.Kind != maintenance.LogGC && op.Kind != maintenance.Reclaim
		// What a flush would write does not depend on the version alone.
		if w != nil && op.Kind != maintenance.Flush && op.Kind != maintenance.DeltaFlush && op.table.tab.Version() == op.version {
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

// deltaLimit bounds the delta mem stores of all tables together.
func (s *Store) deltaLimit() int64 { return min(maxDeltaBytes, s.opts.MemoryLimit/8) }

// makeRoom makes a write batch wait while memory is full. It flushes the batch's own tables first,
// then the others. So a writer waits for the flush that its batch needs, even if Options.Manual is
// set.
func (s *Store) makeRoom(ctx context.Context, b *Batch) error {
	hard := s.opts.MemoryLimit / 2
	over := func() bool { return s.writersMemory()+b.bytes > hard }
	if !over() {
		return nil
	}
	defer s.stall(b)()
	defer s.background.poke()
	flush := func(t *Table) error {
		// Other writers may have waited for the same flush, which is usually enough for all of
		// them.
		err := t.tab.FlushIf(ctx, over)
		if errors.Is(err, fault.ErrNoTable) {
			return nil
		}
		return err
	}
	for _, p := range b.tables {
		if !over() {
			return nil
		}
		if err := flush(p.table); err != nil {
			return err
		}
	}
	for _, t := range s.sortedTables() {
		if !over() {
			return nil
		}
		if err := flush(t); err != nil {
			return err
		}
	}
	// Only changes of rowsets that are being compacted are left.
	for _, t := range s.sortedTables() {
		if err := t.tab.FlushCompacted(ctx, over); err != nil && !errors.Is(err, fault.ErrNoTable) {
			return err
		}
	}
	return nil
}

// marker writes clock marks periodically.
func (b *background) marker() {
	tick := time.NewTicker(storedir.MarkEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-tick.C:
		}
		if err := b.s.markClock(b.ctx); err != nil && b.ctx.Err() == nil {
			b.s.opts.Logger.Debug("the clock was not marked for followers", slog.Any("err", err))
		}
	}
}

// markClock writes a clock mark if there are followers, see storedir.Locks.Mark.
func (s *Store) markClock(ctx context.Context) error {
	if !s.core.Dir.HasFollowers() {
		return nil
	}
	if err := s.poisoned(); err != nil {
		return err
	}
	ts, last, err := s.writer.Now()
	if err != nil {
		return err
	}
	// A batch up to ts may still be in a buffer of the log, or an ingest before its commit.
	if err := s.core.WaitLSN(ctx, last); err != nil {
		return err
	}
	return s.locks.Mark(ts)
}
