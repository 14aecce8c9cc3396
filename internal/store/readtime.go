package store

import (
	"context"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Expires reports whether rows of a table expire.
func Expires(t *tablet.Tablet) bool {
	_, ok := t.Schema().Expiry.Current()
	return ok
}

// NewestOf returns the timestamp at which reads of the newest state see a table: if its rows
// expire, they do so as time passes, also while nothing is written.
func (s *Store) NewestOf(t *tablet.Tablet) mvcc.Timestamp {
	if Expires(t) {
		return s.present()
	}
	return s.Visible()
}

// newest returns the timestamp of the newest state of all tables.
func (s *Store) newest() mvcc.Timestamp {
	for _, t := range s.Tablets() {
		if Expires(t) {
			return s.present()
		}
	}
	return s.Visible()
}

// present returns the highest timestamp at which the store can be read without waiting for write
// batches in flight.
func (s *Store) present() mvcc.Timestamp {
	if s.Follows() {
		return s.Reached()
	}
	return s.Present()
}

// Pass makes the clock pass ts, which is not ahead of it, so that no later write batch gets a
// timestamp at or below it.
//
// A follower cannot do that to the writer's clock. A ts after the newest batch is final for it when
// there is no writer, or when the writer has confirmed it (see Background.MarkClock), which a
// follower waits for. Errors: ErrFuture; ctx.Err(); the errors of Refresh.
func (s *Store) Pass(ctx context.Context, ts mvcc.Timestamp) error {
	if !s.Follows() || ts <= s.Reached() {
		return s.Clock.Pass(ts)
	}
	if err := s.Clock.Pass(ts); err != nil {
		return err
	}
	for begin := time.Now(); s.PhysicalTime() > 0; {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		if ts <= s.Reached() {
			return s.Clock.Pass(ts)
		}
		if time.Since(begin) > storedir.MarkPatience {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(storedir.MarkEvery / 8):
		}
	}
	return fault.Reworded(fault.ErrFuture, "this follower has seen the store up to %v, and the writer has not "+
		"confirmed that nothing comes after that: "+
		"refresh the follower, or read as of an earlier time", s.Reached())
}

// Await waits until all batches at or below ts, which the clock has passed, are published. Errors:
// ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Await(ctx context.Context, ts mvcc.Timestamp) error {
	s.promise(ts)
	return s.WaitPublished(ctx, ts)
}

// promise makes sure that a writer's later batches get timestamps above ts, see Commits.Promise.
func (s *Store) promise(ts mvcc.Timestamp) {
	if s.Writer != nil {
		s.Writer.Promise(ts)
	}
}

// PinAt pins the history that a read of a table at ts needs, and waits until all that the read sees
// is published. Errors: ErrTooOld; the errors of Pass and Await.
func (s *Store) PinAt(ctx context.Context, t *tablet.Tablet, ts mvcc.Timestamp) error {
	if err := s.Pass(ctx, ts); err != nil {
		return err
	}
	if err := s.Pins.Pin(t, ts); err != nil {
		return err
	}
	waited := false
	defer func() {
		if !waited { // also if the context panics
			s.Pins.Unpin(ts)
		}
	}()
	err := s.Await(ctx, ts)
	waited = err == nil
	return err
}
