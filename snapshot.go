package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// Snapshot is a timestamp at which all tables can be read until the snapshot is closed, whatever
// their retention. It is safe for concurrent use.
//
// An open snapshot keeps all tables from dropping history above it; Store.Info lists the open ones.
// A snapshot is not stored: it ends with the store that opened it.
type Snapshot struct {
	store *Store
	name  string
	ts    mvcc.Timestamp

	closed bool // under store.holds.mu
}

// SnapshotInfo describes an open snapshot.
type SnapshotInfo struct {
	Name      string
	Timestamp mvcc.Timestamp
}

// SnapshotOption is an option of Store.Snapshot and SnapshotAt: Named. A nil option changes nothing.
type SnapshotOption interface{ snapshot(*Snapshot) }

type named string

func (n named) snapshot(sn *Snapshot) { sn.name = string(n) }

// Named gives a snapshot a name for Store.Info. Any text is allowed, also the name of another
// snapshot.
func Named(name string) SnapshotOption { return named(name) }

func (s *Store) newSnapshot(ts mvcc.Timestamp, opts []SnapshotOption) *Snapshot {
	sn := &Snapshot{store: s, ts: ts}
	for _, o := range opts {
		if o != nil {
			o.snapshot(sn)
		}
	}
	return sn
}

// Snapshot pins the newest published state: every write batch whose Commit has returned, and none
// that is in flight. It waits for no commit, except when a table dropped all history up to the newest
// write batch: then for those in flight. Errors: ctx's; ErrClosed.
func (s *Store) Snapshot(ctx context.Context, opts ...SnapshotOption) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	// All batches up to the visible timestamp are published, and later ones get a higher timestamp.
	sn := s.newSnapshot(s.pub.Visible(), opts)
	if s.holds.openAbove(sn, s.sortedTables()) {
		return sn, nil
	}
	s.appendMu.Lock()
	ts, err := s.clock.Now()
	s.appendMu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	s.promise(ts)
	sn.ts = ts
	s.holds.open(sn)
	err = s.pub.WaitTimestamp(ctx, ts)
	if errors.Is(err, fault.ErrPoisoned) {
		// Nothing is published any more, nor dropped: the visible state is the newest for good.
		sn.Close()
		sn = s.newSnapshot(s.pub.Visible(), opts)
		s.holds.open(sn)
		err = nil
	}
	if err != nil {
		sn.Close()
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	return sn, nil
}

// SnapshotAt pins the state at a timestamp, a past one or the present. Tables whose history begins
// later cannot be read at it. It waits for the commits in flight with timestamps up to ts.
//
// Errors: ErrTooOld if there are tables and the history of all begins later; ErrFuture for a
// timestamp ahead of the clock; ctx's; ErrClosed; ErrPoisoned.
func (s *Store) SnapshotAt(ctx context.Context, ts mvcc.Timestamp, opts ...SnapshotOption) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	err := ctx.Err()
	sn := s.newSnapshot(ts, opts)
	if err == nil {
		err = s.advance(ts)
	}
	if err == nil {
		err = s.holds.openPast(sn, s.sortedTables())
	}
	if err == nil {
		if err = s.settle(ctx, ts); err != nil {
			sn.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot at %v: %w", ts, err)
	}
	return sn, nil
}

// Timestamp returns the timestamp of the snapshot.
func (sn *Snapshot) Timestamp() mvcc.Timestamp { return sn.ts }

// Name returns the name that the snapshot was given with Named.
func (sn *Snapshot) Name() string { return sn.name }

// Close unpins the history. Running reads of the snapshot are not disturbed; later ones return
// ErrClosed. Close may be called twice.
func (sn *Snapshot) Close() error {
	sn.store.holds.close(sn)
	return nil
}

// advance makes the clock pass ts, which is not ahead of it, so that no later write batch gets a
// timestamp at or below it.
func (s *Store) advance(ts mvcc.Timestamp) error { return s.clock.Pass(ts) }

// AdvanceClock moves the store's clock: all later write batches get timestamps above ts, after the
// next Open too, and ts can be read. It is for a store that follows timestamps of another. A ts that
// the clock is past changes nothing.
//
// Errors: ErrFuture for a ts more than 10 s ahead of the machine's clock; ErrReadOnly; ErrPoisoned;
// ErrClosed.
func (s *Store) AdvanceClock(ts mvcc.Timestamp) error {
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.clock.Advance(ts); err != nil {
		return fmt.Errorf("oribi: advance clock to %v: %w", ts, err)
	}
	s.promise(ts)
	return nil
}

// settle waits until all batches at or below ts, which the clock has passed, are published.
func (s *Store) settle(ctx context.Context, ts mvcc.Timestamp) error {
	s.promise(ts)
	// A commit that took its timestamp before the clock passed ts may still be on its way to the
	// publisher: it is there once this goroutine has been through the commits' critical section.
	s.appendMu.Lock()
	s.appendMu.Unlock() //lint:ignore SA2001 the point is to have been there
	return s.pub.WaitTimestamp(ctx, ts)
}

// holds are the timestamps that reads and snapshots need, and how far each table's history may have
// been dropped.
//
// Both stand under one lock, or a read would slip between a compaction's look at the holds and its
// dropping:
//
//	compaction: floor = min(oldest age, holds)                      drops what is below the floor
//	read:                                       hold 5, allowed ──▶ reads at 5, of which a part is gone
//
// With the floor noted in the moment it is chosen, the read is either held already or refused.
type holds struct {
	mu        sync.Mutex
	at        map[mvcc.Timestamp]int
	floors    map[uint32]mvcc.Timestamp // by table number: the highest that was chosen
	snapshots map[*Snapshot]bool
}

func newHolds() *holds {
	return &holds{at: map[mvcc.Timestamp]int{}, floors: map[uint32]mvcc.Timestamp{}, snapshots: map[*Snapshot]bool{}}
}

// lowest is the lowest timestamp that is held; Max if there is none. Under mu. There are as many as
// reads that run and snapshots, so it is only asked for by compactions and for reads beyond the
// retention.
func (h *holds) lowest() mvcc.Timestamp {
	low := mvcc.Max
	for ts := range h.at {
		low = min(low, ts)
	}
	return low
}

// choose is the floor for a rewrite of a table: oldest, by the age of history, or what is held
// below it.
func (h *holds) choose(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	h.mu.Lock()
	defer h.mu.Unlock()
	floor := min(oldest, h.lowest())
	h.floors[table] = max(h.floors[table], floor)
	return floor
}

// begins is where the history begins that reads of a table may ask for. oldest is told by its age.
func (h *holds) begins(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.beginsLocked(table, oldest)
}

// beginsLocked is begins under mu.
func (h *holds) beginsLocked(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	return max(h.floors[table], min(oldest, h.lowest()))
}

// hold is for a read of a table at ts. Errors: ErrTooOld.
func (h *holds) hold(table uint32, oldest, ts mvcc.Timestamp) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ts < oldest || ts < h.floors[table] {
		if begins := h.beginsLocked(table, oldest); ts < begins {
			return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
		}
	}
	h.at[ts]++
	return nil
}

// holdLatest is for a read of a table's newest state. It gives the timestamp that is held: nothing
// was published between visible and a floor above it.
func (h *holds) holdLatest(table uint32, visible mvcc.Timestamp) mvcc.Timestamp {
	h.mu.Lock()
	defer h.mu.Unlock()
	ts := max(visible, h.floors[table])
	h.at[ts]++
	return ts
}

// holdOldest is for a read of all that is left of a table's history. It gives the timestamp that is
// held: where the history begins.
func (h *holds) holdOldest(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	h.mu.Lock()
	defer h.mu.Unlock()
	ts := h.beginsLocked(table, oldest)
	h.at[ts]++
	return ts
}

// holdSnapshot is for a read of a table at a snapshot. Errors: ErrClosed, ErrTooOld.
func (h *holds) holdSnapshot(table uint32, sn *Snapshot) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch floor := h.floors[table]; {
	case sn.closed:
		return fmt.Errorf("snapshot %q: %w", sn.name, fault.ErrClosed)
	case sn.ts < floor:
		return fmt.Errorf("history begins at %v: %w", floor, fault.ErrTooOld)
	}
	h.at[sn.ts]++
	return nil
}

func (h *holds) release(ts mvcc.Timestamp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releaseLocked(ts)
}

func (h *holds) releaseLocked(ts mvcc.Timestamp) {
	if h.at[ts]--; h.at[ts] == 0 {
		delete(h.at, ts)
	}
}

// open holds a snapshot that no table has dropped anything of.
func (h *holds) open(sn *Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[sn.ts]++
	h.snapshots[sn] = true
}

// openAbove pins a snapshot unless a table's history may begin above it, and reports whether it did.
func (h *holds) openAbove(sn *Snapshot, tables []*Table) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tables {
		if sn.ts < h.floors[t.tab.Number] || sn.ts < t.tab.Metadata().HistoryFloor {
			return false
		}
	}
	h.at[sn.ts]++
	h.snapshots[sn] = true
	return true
}

// openPast holds a snapshot that one of the tables, if there are any, can still answer.
func (h *holds) openPast(sn *Snapshot, tables []*Table) error {
	begins := mvcc.Max
	for _, t := range tables {
		begins = min(begins, max(h.begins(t.tab.Number, t.oldest()), t.tab.Metadata().HistoryFloor))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(tables) > 0 && sn.ts < begins {
		return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
	}
	h.at[sn.ts]++
	h.snapshots[sn] = true
	return nil
}

func (h *holds) close(sn *Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sn.closed {
		return
	}
	sn.closed = true
	delete(h.snapshots, sn)
	h.releaseLocked(sn.ts)
}

// list is the open snapshots, oldest first.
func (h *holds) list() []SnapshotInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []SnapshotInfo
	for sn := range h.snapshots {
		out = append(out, SnapshotInfo{sn.name, sn.ts})
	}
	slices.SortFunc(out, func(a, b SnapshotInfo) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Name, b.Name))
	})
	return out
}
