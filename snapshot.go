package oribi

import (
	"context"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/storeinfo"
)

// Snapshot is a timestamp at which all tables can be read until the snapshot is closed, whatever
// their retention. It is safe for concurrent use.
//
// While a snapshot is open, tables keep its state. They drop the states between it and the beginning
// of their history, unless it was opened with KeepHistory. Store.Info lists the open snapshots. A
// snapshot is not stored: it ends with the store that opened it.
type Snapshot struct {
	store *Store
	pin   store.Snapshot
}

// SnapshotOption is an option of Store.Snapshot and Store.SnapshotAt: KeepHistory. A nil option has no
// effect.
type SnapshotOption interface{ snapshot(*store.Snapshot) }

type keepHistory struct{}

func (keepHistory) snapshot(sn *store.Snapshot) { sn.Whole = true }

// KeepHistory makes tables also keep all states after the snapshot until it is closed, so that
// Store.Subscribe can begin there.
func KeepHistory() SnapshotOption { return keepHistory{} }

// SnapshotInfo describes an open snapshot.
type SnapshotInfo = storeinfo.Snapshot

// Snapshot pins the newest published state: every write batch whose Commit has returned, and none
// that is in flight. It does not wait for commits, except if a table has dropped all history up to
// the newest write batch: then it waits for those in flight. Errors: ctx.Err(); ErrClosed.
func (s *Store) Snapshot(ctx context.Context, opts ...SnapshotOption) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	sn := s.newSnapshot(0, opts)
	if err := s.core.OpenSnapshot(ctx, &sn.pin); err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	return sn, nil
}

// newSnapshot returns a snapshot that is not open yet.
func (s *Store) newSnapshot(ts mvcc.Timestamp, opts []SnapshotOption) *Snapshot {
	sn := &Snapshot{store: s, pin: store.Snapshot{TS: ts}}
	for _, o := range opts {
		if o != nil {
			o.snapshot(&sn.pin)
		}
	}
	return sn
}

// SnapshotAt pins the state at a timestamp in the past or at present. Tables whose history begins
// later cannot be read at it. SnapshotAt waits for the commits in flight with timestamps up to ts.
//
// Errors: ErrTooOld if there are tables and the history of all of them begins later, and for what
// looks like a Unix time (see AsOf); ErrFuture for a timestamp ahead of the clock; ctx.Err();
// ErrClosed; ErrPoisoned.
func (s *Store) SnapshotAt(ctx context.Context, ts mvcc.Timestamp, opts ...SnapshotOption) (*Snapshot, error) {
	return s.snapshotAt(ctx, s.newSnapshot(ts, opts), s.sortedTables)
}

// snapshotAt opens a snapshot in the past for readers of some tables.
func (s *Store) snapshotAt(ctx context.Context, sn *Snapshot, tables func() []*Table) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	err := ctx.Err()
	if err == nil {
		err = s.checkTimestamp(sn.pin.TS)
	}
	if err == nil {
		err = s.core.OpenSnapshotAt(ctx, &sn.pin, func() []*tablet.Tablet { return tablets(tables()) })
	}
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot at %v: %w", sn.pin.TS, err)
	}
	return sn, nil
}

// Timestamp returns the timestamp of the snapshot, which those of later write batches are above.
//
// If it is above that of the newest write batch, as when rows have expired since, it enters the
// log, like a batch committed with NoSync.
func (sn *Snapshot) Timestamp() mvcc.Timestamp {
	sn.store.core.HandOut(sn.pin.TS)
	return sn.pin.TS
}

// Name returns the name of the snapshot, which is empty before SetName.
func (sn *Snapshot) Name() string { return sn.pin.Name() }

// SetName gives the snapshot a name for Store.Info. Any text is allowed, also the name of another
// snapshot.
func (sn *Snapshot) SetName(name string) { sn.pin.SetName(name) }

// Close unpins the history. Running reads of the snapshot continue; later ones return ErrClosed.
// Close may be called twice.
func (sn *Snapshot) Close() error {
	sn.store.core.CloseSnapshot(&sn.pin)
	return nil
}

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
	s.core.Writer.Promise(ts)
	return callErr("advance clock", s.core.Writer.LogTimestamp(ts))
}
