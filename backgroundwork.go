package oribi

import (
	"context"
	"time"

	"github.com/oribi-db/oribi/internal/maintenance"
)

// BackgroundOp describes an operation of background work: what it would free, gain, and cost. Sizes
// are in bytes and estimates.
type BackgroundOp struct {
	// Kind is flush, delta-flush, minor, major, recompress, merge, or undo-gc, as in the events of package
	// compaction; log-gc, which confirms the metadata and removes log segments; or reclaim, which
	// copies the blocks out of a container that has few of them.
	Kind  string
	Table string // empty for log-gc and reclaim

	Memory int64   // memory that it frees
	Log    int64   // log that it lets be removed, unless another table needs it too
	Data   int64   // disk space that it frees
	Gain   float64 // by how much reads improve; only for comparison
	Cost   int64   // bytes that it reads and writes
}

func (op *operation) public() BackgroundOp {
	out := BackgroundOp{Kind: string(op.Kind), Memory: op.Memory, Log: op.Log, Data: op.Data, Gain: op.Gain, Cost: op.Cost}
	if op.table != nil {
		out.Table = op.table.tab.Name()
	}
	return out
}

// PauseBackgroundWork waits until no background operation runs, and keeps others from starting
// until resume is called. Pauses may overlap: work continues when all are over. Flushes that the
// memory limit forces, and calls such as Flush and Compact, are not paused. A second call of resume
// does nothing. It must not be called by Options.Listener. Errors: ctx.Err(), after which nothing
// is paused; ErrReadOnly; ErrPoisoned; ErrClosed.
func (s *Store) PauseBackgroundWork(ctx context.Context) (resume func(), err error) {
	if err := s.enterWriting(); err != nil {
		return nil, err
	}
	defer s.leave()
	b := s.background
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
			return nil, callErr("pause background work", err)
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		end()
	}, nil
}

// StepBackgroundWork carries out the operation that background work would start next, and returns
// it. ran is false if none is due. With Options.Manual, or while background work is paused, a
// program can so go through it step by step. Errors: those of the operation, such as ErrCorrupt and
// ErrNoSpace; ctx.Err(); ErrReadOnly; ErrPoisoned; ErrClosed.
func (s *Store) StepBackgroundWork(ctx context.Context) (op BackgroundOp, ran bool, err error) {
	if err := s.enterWriting(); err != nil {
		return op, false, err
	}
	defer s.leave()
	next, ok := s.background.next()
	if !ok {
		return op, false, nil
	}
	op = next.public()
	if err := s.background.carryOut(ctx, next); err != nil {
		return op, true, callErr("background "+op.Kind, err)
	}
	return op, true, nil
}

// next begins the operation that is due next, if there is one, and returns it.
func (b *background) next() (operation, bool) {
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
func (b *background) choose(ops []operation) int {
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
	if schedule := b.s.opts.Schedule; schedule == nil {
		next, _ = maintenance.Choose(state, list)
	} else if may := state.Startable(list); len(may) > 0 {
		public := make([]BackgroundOp, len(may))
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
