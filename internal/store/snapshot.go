package store

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// OpenSnapshot makes sn a snapshot of the newest published state. It does not wait for commits,
// except if a table has dropped all history up to the newest write batch. Errors: ctx.Err().
func (s *Store) OpenSnapshot(ctx context.Context, sn *Snapshot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// All batches up to this timestamp are published, and later ones get a higher timestamp.
	sn.TS = s.newest()
	if s.Follows() {
		// A history floor is below all batches that had no timestamp when it was chosen, and not
		// above one that was in flight.
		for _, t := range s.Tablets() {
			sn.TS = max(sn.TS, t.Metadata().HistoryFloor)
		}
	}
	s.promise(sn.TS)
	if s.Pins.OpenAbove(sn, s.Tablets()) {
		s.keep(sn)
		return nil
	}
	ts, _, err := s.Now()
	if err != nil {
		return err
	}
	s.promise(ts)
	sn.TS = ts
	s.Pins.Open(sn)
	err = s.WaitTimestamp(ctx, ts)
	if errors.Is(err, fault.ErrPoisoned) {
		// Publishing and dropping have stopped: the visible state stays the newest.
		s.Pins.Close(sn)
		sn.TS, sn.closed = s.Visible(), false
		s.Pins.Open(sn)
		return nil
	}
	if err != nil {
		s.Pins.Close(sn)
	}
	return err
}

// OpenSnapshotAt makes sn a snapshot of the state at sn.TS, if at least one of the tables can be
// read at it. It waits for the commits in flight with timestamps up to it. Errors: ErrTooOld;
// ErrFuture; ErrPoisoned; ErrClosed; ctx.Err().
func (s *Store) OpenSnapshotAt(ctx context.Context, sn *Snapshot, tables func() []*tablet.Tablet) error {
	if err := s.Pass(ctx, sn.TS); err != nil {
		return err
	}
	if err := s.Pins.OpenPast(sn, tables()); err != nil {
		return err
	}
	if err := s.Await(ctx, sn.TS); err != nil {
		s.Pins.Close(sn)
		return err
	}
	s.keep(sn)
	return nil
}

// CloseSnapshot unpins the history. Further calls have no effect.
func (s *Store) CloseSnapshot(sn *Snapshot) {
	s.Pins.Close(sn)
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	for _, v := range sn.states {
		v.Release()
	}
	sn.states = nil
}

// keep makes a snapshot of a follower keep the states of the tables, in which it reads.
func (s *Store) keep(sn *Snapshot) {
	if !s.Follows() {
		return
	}
	sn.states = map[*tablet.Tablet]tablet.View{}
	for _, t := range s.Tablets() {
		v, err := t.View(tablet.Snapshot{At: mvcc.AsOf(sn.TS)})
		if err == nil { // else a read has the same error
			sn.states[t] = v
		}
	}
}

// HandOut makes sure that later batches get timestamps above ts, which a reader asks for, also
// after a kill. What reads use themselves is not in the log: only their callers can compare it with
// the timestamps of batches.
func (s *Store) HandOut(ts mvcc.Timestamp) {
	if s.Writer == nil || s.Enter() != nil {
		return
	}
	defer s.Leave()
	if err := s.Writer.LogTimestamp(ts); err != nil { // Close keeps it then
		s.Options.Logger.Debug("a timestamp is not in the log", slog.Any("err", err))
	}
}
