package oribi

import (
	"context"

	"github.com/oribi-db/oribi/internal/store"
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

func publicOp(op store.BackgroundOp) BackgroundOp {
	return BackgroundOp{Kind: string(op.Kind), Table: op.Name, Memory: op.Memory, Log: op.Log, Data: op.Data,
		Gain: op.Gain, Cost: op.Cost}
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
	resume, err = s.background.Pause(ctx)
	return resume, callErr("pause background work", err)
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
	next, ran, err := s.background.Step(ctx)
	op = publicOp(next)
	return op, ran, callErr("background "+op.Kind, err)
}

// schedule returns Options.Schedule for package store.
func (s *Store) schedule() func([]store.BackgroundOp) int {
	choose := s.opts.Schedule
	if choose == nil {
		return nil
	}
	return func(ops []store.BackgroundOp) int {
		public := make([]BackgroundOp, len(ops))
		for i, op := range ops {
			public[i] = publicOp(op)
		}
		return choose(public)
	}
}
