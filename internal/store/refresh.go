package store

import (
	"context"
	"errors"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// Refresh moves a store that follows to the newest state. Errors: the errors of Follower.Refresh.
func (s *Store) Refresh(ctx context.Context) error {
	err := s.Enter()
	if err != nil {
		return err
	}
	defer s.Leave()
	if err = ctx.Err(); err == nil && s.Follows() {
		err = s.Follower.Refresh(ctx)
	}
	return fault.Call("refresh", err)
}

// restartTries is how often a read of a follower begins again.
const restartTries = 3

// Restarts refreshes a follower in which a read of the newest state needs something that the writer
// has removed, and reports whether the read, which has returned nothing yet, may begin again.
func (s *Store) Restarts(ctx context.Context, asOf bool, err error, tries int) bool {
	return s.Follows() && !asOf && tries < restartTries && errors.Is(err, fault.ErrTooOld) && s.Refresh(ctx) == nil
}

// Between two looks for something new, Wait sleeps, for a time that doubles up to the second value.
const waitSleep, waitMaxSleep = time.Millisecond, 50 * time.Millisecond

// Wait returns when a Refresh may find something new, or, in a store that does not follow, when the
// next write batch is visible. Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Wait(ctx context.Context) error {
	if !s.Follows() {
		return fault.Call("wait", s.WaitAbove(ctx, s.Visible()))
	}
	for sleep := waitSleep; ; sleep = min(2*sleep, waitMaxSleep) {
		needed, err := s.needsRefresh()
		if err != nil || needed {
			return err
		}
		select {
		case <-ctx.Done():
			return fault.Call("wait", ctx.Err())
		case <-time.After(sleep):
		}
	}
}

// needsRefresh reports whether a Refresh may find something.
func (s *Store) needsRefresh() (bool, error) {
	if err := s.Enter(); err != nil {
		return false, err
	}
	defer s.Leave()
	return s.Follower.NeedsRefresh()
}
