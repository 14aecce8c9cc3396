package oribi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/storeinfo"
)

// Snapshot is a timestamp at which all tables can be read until the snapshot is closed, whatever
// their retention. It is safe for concurrent use.
//
// While a snapshot is open, no table drops history above it. Store.Info lists the open snapshots. A
// snapshot is not stored: it ends with the store that opened it.
type Snapshot struct {
	store *Store
	pin   store.Snapshot

	// Of a follower: the states of the tables in which the snapshot reads.
	statesMu sync.Mutex
	states   map[*Table]tablet.View
}

// SnapshotInfo describes an open snapshot.
type SnapshotInfo = storeinfo.Snapshot

func (s *Store) newSnapshot(ts mvcc.Timestamp) *Snapshot {
	return &Snapshot{store: s, pin: store.Snapshot{TS: ts}}
}

// Snapshot pins the newest published state: every write batch whose Commit has returned, and none
// that is in flight. It does not wait for commits, except if a table has dropped all history up to
// the newest write batch: then it waits for those in flight. Errors: ctx.Err(); ErrClosed.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	// All batches up to this timestamp are published, and later ones get a higher timestamp.
	sn := s.newSnapshot(s.newest())
	if s.Follows() {
		// A history floor is below all batches that had no timestamp when it was chosen, and not
		// above one that was in flight.
		for _, t := range s.sortedTables() {
			sn.pin.TS = max(sn.pin.TS, t.tab.Metadata().HistoryFloor)
		}
	}
	s.promise(sn.pin.TS)
	if s.core.Pins.OpenAbove(&sn.pin, tablets(s.sortedTables())) {
		sn.keep()
		return sn, nil
	}
	ts, _, err := s.core.Now()
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	s.promise(ts)
	sn.pin.TS = ts
	s.core.Pins.Open(&sn.pin)
	err = s.core.WaitTimestamp(ctx, ts)
	if errors.Is(err, fault.ErrPoisoned) {
		// Publishing and dropping have stopped: the visible state stays the newest.
		sn.Close()
		sn = s.newSnapshot(s.core.Visible())
		s.core.Pins.Open(&sn.pin)
		err = nil
	}
	if err != nil {
		sn.Close()
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	return sn, nil
}

// SnapshotAt pins the state at a timestamp in the past or at present. Tables whose history begins
// later cannot be read at it. SnapshotAt waits for the commits in flight with timestamps up to ts.
//
// Errors: ErrTooOld if there are tables and the history of all of them begins later, and for what
// looks like a Unix time (see AsOf); ErrFuture for a timestamp ahead of the clock; ctx.Err(); ErrClosed; ErrPoisoned.
func (s *Store) SnapshotAt(ctx context.Context, ts mvcc.Timestamp) (*Snapshot, error) {
	return s.snapshotAt(ctx, ts, s.sortedTables)
}

// snapshotAt is SnapshotAt for readers of some tables.
func (s *Store) snapshotAt(ctx context.Context, ts mvcc.Timestamp, tables func() []*Table) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	err := ctx.Err()
	sn := s.newSnapshot(ts)
	if err == nil {
		err = s.checkTimestamp(ts)
	}
	if err == nil {
		err = s.advance(ctx, ts)
	}
	if err == nil {
		err = s.core.Pins.OpenPast(&sn.pin, tablets(tables()))
	}
	if err == nil {
		if err = s.waitPublished(ctx, ts); err != nil {
			sn.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot at %v: %w", ts, err)
	}
	sn.keep()
	return sn, nil
}

// Timestamp returns the timestamp of the snapshot, which those of later write batches are above.
//
// If it is above that of the newest write batch, as when rows have expired since, it enters the log,
// like a batch committed with NoSync.
func (sn *Snapshot) Timestamp() mvcc.Timestamp {
	sn.store.handOut(sn.pin.TS)
	return sn.pin.TS
}

// handOut makes sure that later batches get timestamps above ts, which a reader asks for, also after
// a kill. What reads use themselves is not in the log: only their callers can compare it with the
// timestamps of batches.
func (s *Store) handOut(ts mvcc.Timestamp) {
	if s.opts.ReadOnly || s.enter() != nil {
		return
	}
	defer s.leave()
	if err := s.core.Writer.LogTimestamp(ts); err != nil { // Close keeps it then
		s.opts.Logger.Debug("a timestamp is not in the log", slog.Any("err", err))
	}
}

// Name returns the name of the snapshot, which is empty before SetName.
func (sn *Snapshot) Name() string { return sn.pin.Name() }

// SetName gives the snapshot a name for Store.Info. Any text is allowed, also the name of another
// snapshot.
func (sn *Snapshot) SetName(name string) { sn.pin.SetName(name) }

// Close unpins the history. Running reads of the snapshot continue; later ones return ErrClosed.
// Close may be called twice.
func (sn *Snapshot) Close() error {
	sn.store.core.Pins.Close(&sn.pin)
	sn.release()
	return nil
}

// defaultClock is the clock of a store that was opened without one.
type defaultClock struct{ *mvcc.HybridClock }

// checkTimestamp returns an error for a caller's timestamp that looks like a Unix time. The
// timestamps of a store that was written with another clock may be that low.
func (s *Store) checkTimestamp(ts mvcc.Timestamp) error {
	unix, ok := ts.LooksLikeUnix()
	if _, isDefault := s.core.Clock.(defaultClock); !ok || !isDefault {
		return nil
	}
	if _, low := s.core.Visible().LooksLikeUnix(); low {
		return nil
	}
	return fault.Reworded(fault.ErrTooOld, "the timestamp looks like the Unix time of %s: use AsOfTime, or "+
		"mvcc.FromTime", unix.Format(time.RFC3339Nano))
}

// check returns an error for a point that is most likely a mistake.
func (p *point) check(s *Store) error {
	switch {
	case p.zero:
		return fault.Reworded(fault.ErrTooOld, "the time is the zero Time")
	case p.isTime:
		return nil
	}
	return s.checkTimestamp(p.at)
}

// advance makes the clock pass ts, which is not ahead of it, so that no later write batch gets a
// timestamp at or below it.
//
// A follower cannot do that to the writer's clock. A ts after the newest batch is final for it when
// there is no writer, or when the writer has confirmed it (see store.Background.MarkClock), which a follower waits
// for.
func (s *Store) advance(ctx context.Context, ts mvcc.Timestamp) error {
	if !s.Follows() || ts <= s.core.Reached() {
		return s.core.Clock.Pass(ts)
	}
	if err := s.core.Clock.Pass(ts); err != nil {
		return err
	}
	for begin := time.Now(); s.core.PhysicalTime() > 0; {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		if ts <= s.core.Reached() {
			return s.core.Clock.Pass(ts)
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
		"refresh the follower, or read as of an earlier time", s.core.Reached())
}

// AdvanceClock moves the store's clock forward to ts: all later write batches get timestamps above
// ts, also after the next Open, and ts can be read. It is for a store that follows the timestamps
// of another. If a write batch has a timestamp of at least ts, AdvanceClock does nothing.
//
// That survives a kill of the process like a batch committed with NoSync, and a power failure after
// the next commit without NoSync, or Close.
//
// Errors: ErrFuture for a ts more than 10 s ahead of the machine's clock; ErrTooOld for what looks
// like a Unix time (see AsOf); ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed.
func (s *Store) AdvanceClock(ts mvcc.Timestamp) error {
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	err := s.checkTimestamp(ts)
	if err == nil {
		err = s.core.Clock.Advance(ts)
	}
	if err != nil {
		return fmt.Errorf("oribi: advance clock to %v: %w", ts, err)
	}
	s.promise(ts)
	return callErr("advance clock", s.core.Writer.LogTimestamp(ts))
}

// waitPublished waits until all batches at or below ts, which the clock has passed, are published.
func (s *Store) waitPublished(ctx context.Context, ts mvcc.Timestamp) error {
	s.promise(ts)
	return s.core.WaitPublished(ctx, ts)
}

// promise makes sure that a writer's later batches get timestamps above ts, see store.Commits.
func (s *Store) promise(ts mvcc.Timestamp) {
	if s.core.Writer != nil {
		s.core.Writer.Promise(ts)
	}
}

// keep makes a snapshot of a follower keep the states of the tables, in which it reads.
func (sn *Snapshot) keep() {
	s := sn.store
	if !s.Follows() {
		return
	}
	sn.states = map[*Table]tablet.View{}
	for _, t := range s.sortedTables() {
		v, err := t.tab.View(tablet.Snapshot{At: mvcc.AsOf(sn.pin.TS)})
		if err == nil { // else a read has the same error
			sn.states[t] = v
		}
	}
}

// state returns the view of a table that the snapshot keeps, which the caller releases.
func (sn *Snapshot) state(t *Table) (tablet.View, bool) {
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	v, ok := sn.states[t]
	if ok {
		v = v.Ref()
	}
	return v, ok
}

// release releases the states.
func (sn *Snapshot) release() {
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	for _, v := range sn.states {
		v.Release()
	}
	sn.states = nil
}
