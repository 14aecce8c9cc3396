package oribi

import (
	"context"
	"errors"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// Refresh moves a follower to the newest state of the store: every write batch whose Commit had
// returned when Refresh was called, and perhaps later ones. Its cost depends on what has changed.
// Reads that run, and open snapshots, keep the state that they have. Tables stay valid; those that
// the writer has dropped return ErrNoTable.
//
// In a store that was not opened with Options.Follow, Refresh does nothing: it always sees the
// newest state, or, opened read-only, there is no other. Errors: ErrLocked if a writer changes the
// store faster than it can be read, within five seconds; ErrCorrupt; ErrClosed; ctx.Err(). After an
// error the follower has the state from before.
func (s *Store) Refresh(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil || !s.Follows() {
		return callErr("refresh", err)
	}
	return callErr("refresh", s.core.Follower.Refresh(ctx))
}

// restartTries is how often a read of a follower begins again.
const restartTries = 3

// restarts refreshes a follower in which a read of the newest state needs something that the writer
// has removed, and reports whether the read, which has returned nothing yet, may begin again.
func (s *Store) restarts(ctx context.Context, asOf bool, err error, tries int) bool {
	return s.Follows() && !asOf && tries < restartTries && errors.Is(err, fault.ErrTooOld) && s.Refresh(ctx) == nil
}

// restarts is Store.restarts for a read of a table with options.
func restarts[O option](ctx context.Context, t *Table, opts []O, err error, tries int) bool {
	return t.store.Follows() && t.store.restarts(ctx, collect(opts).asOf, err, tries)
}

// Between two looks for something new, Wait sleeps, for a time that doubles up to the second value.
const waitSleep, waitMaxSleep = time.Millisecond, 50 * time.Millisecond

// Wait returns when a follower would find something new by Refresh, or may. It looks at the files
// periodically: the writer copies small batches into mapped memory, of which the system tells
// nobody.
//
// In a store that was not opened with Options.Follow, Wait waits for the next write batch to become
// visible. Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Wait(ctx context.Context) error {
	if !s.Follows() {
		return callErr("wait", s.core.WaitAbove(ctx, s.core.Visible()))
	}
	for sleep := waitSleep; ; sleep = min(2*sleep, waitMaxSleep) {
		needed, err := s.needsRefresh()
		if err != nil || needed {
			return err
		}
		select {
		case <-ctx.Done():
			return callErr("wait", ctx.Err())
		case <-time.After(sleep):
		}
	}
}

// needsRefresh reports whether a Refresh may find something.
func (s *Store) needsRefresh() (bool, error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.leave()
	return s.core.Follower.NeedsRefresh()
}
