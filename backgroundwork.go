package oribi

import (
	"context"
)

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
	resume, err = s.core.Background.Pause(ctx)
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
	op, ran, err = s.core.Background.Step(ctx)
	return op, ran, callErr("background "+op.Kind, err)
}
