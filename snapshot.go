package oribi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Snapshot is a timestamp at which all tables can be read until the snapshot is closed, whatever
// their retention. It is safe for concurrent use.
//
// While a snapshot is open, no table drops history above it. Store.Info lists the open snapshots. A
// snapshot is not stored: it ends with the store that opened it.
type Snapshot struct {
	store *Store
	name  string
	ts    mvcc.Timestamp

	closed bool // under store.pins.mu

	// Of a follower: the states of the tables in which the snapshot reads.
	statesMu sync.Mutex
	states   map[*Table]tablet.View
}

// SnapshotInfo describes an open snapshot.
type SnapshotInfo struct {
	Name      string
	Timestamp mvcc.Timestamp
}

// SnapshotOption is an option of Store.Snapshot and SnapshotAt: Named. A nil option has no effect.
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
// that is in flight. It does not wait for commits, except if a table has dropped all history up to
// the newest write batch: then it waits for those in flight. Errors: ctx.Err(); ErrClosed.
func (s *Store) Snapshot(ctx context.Context, opts ...SnapshotOption) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	// All batches up to this timestamp are published, and later ones get a higher timestamp.
	sn := s.newSnapshot(s.newest(), opts)
	if s.opts.Follow {
		// A history floor is below all batches that had no timestamp when it was chosen, and not
		// above one that was in flight.
		for _, t := range s.sortedTables() {
			sn.ts = max(sn.ts, t.tab.Metadata().HistoryFloor)
		}
	}
	s.promise(sn.ts)
	if s.pins.openAbove(sn, s.sortedTables()) {
		sn.keep()
		return sn, nil
	}
	ts, _, err := s.now(changes{})
	if err != nil {
		return nil, fmt.Errorf("oribi: snapshot: %w", err)
	}
	s.promise(ts)
	sn.ts = ts
	s.pins.open(sn)
	err = s.pub.WaitTimestamp(ctx, ts)
	if errors.Is(err, fault.ErrPoisoned) {
		// Publishing and dropping have stopped: the visible state stays the newest.
		sn.Close()
		sn = s.newSnapshot(s.pub.Visible(), opts)
		s.pins.open(sn)
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
func (s *Store) SnapshotAt(ctx context.Context, ts mvcc.Timestamp, opts ...SnapshotOption) (*Snapshot, error) {
	return s.snapshotAt(ctx, ts, s.sortedTables, opts)
}

// snapshotAt is SnapshotAt for readers of some tables.
func (s *Store) snapshotAt(ctx context.Context, ts mvcc.Timestamp, tables func() []*Table, opts []SnapshotOption) (*Snapshot, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	err := ctx.Err()
	sn := s.newSnapshot(ts, opts)
	if err == nil {
		err = s.checkTimestamp(ts)
	}
	if err == nil {
		err = s.advance(ctx, ts)
	}
	if err == nil {
		err = s.pins.openPast(sn, tables())
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
	sn.store.handOut(sn.ts)
	return sn.ts
}

// handOut makes sure that later batches get timestamps above ts, which a reader asks for, also after
// a kill. What reads use themselves is not in the log: only their callers can compare it with the
// timestamps of batches.
func (s *Store) handOut(ts mvcc.Timestamp) {
	if s.opts.ReadOnly || s.enter() != nil {
		return
	}
	defer s.leave()
	if err := s.logTimestamp(ts); err != nil { // Close keeps it then
		s.opts.Logger.Debug("a timestamp is not in the log", slog.Any("err", err))
	}
}

// Name returns the name that the snapshot was given with Named.
func (sn *Snapshot) Name() string { return sn.name }

// Close unpins the history. Running reads of the snapshot continue; later ones return ErrClosed.
// Close may be called twice.
func (sn *Snapshot) Close() error {
	sn.store.pins.close(sn)
	sn.release()
	return nil
}

// defaultClock is the clock of a store that was opened without one.
type defaultClock struct{ *mvcc.HybridClock }

// checkTimestamp returns an error for a caller's timestamp that looks like a Unix time. The
// timestamps of a store that was written with another clock may be that low.
func (s *Store) checkTimestamp(ts mvcc.Timestamp) error {
	unix, ok := ts.LooksLikeUnix()
	if _, isDefault := s.clock.(defaultClock); !ok || !isDefault {
		return nil
	}
	if _, low := s.pub.Visible().LooksLikeUnix(); low {
		return nil
	}
	return fault.Reworded(fault.ErrTooOld, "the timestamp looks like the Unix time of %s: use AsOfTime, or mvcc.FromTime", unix.Format(time.RFC3339Nano))
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
// there is no writer, or when the writer has confirmed it (see markClock), which a follower waits
// for.
func (s *Store) advance(ctx context.Context, ts mvcc.Timestamp) error {
	if !s.opts.Follow || ts <= s.reached() {
		return s.clock.Pass(ts)
	}
	if err := s.clock.Pass(ts); err != nil {
		return err
	}
	for begin := time.Now(); present(s.clock) > 0; {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		if ts <= s.reached() {
			return s.clock.Pass(ts)
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
	return fault.Reworded(fault.ErrFuture, "this follower has seen the store up to %v, and the writer has not confirmed that nothing comes after that: "+
		"refresh the follower, or read as of an earlier time", s.reached())
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
		err = s.clock.Advance(ts)
	}
	if err != nil {
		return fmt.Errorf("oribi: advance clock to %v: %w", ts, err)
	}
	s.promise(ts)
	return callErr("advance clock", s.logTimestamp(ts))
}

// waitPublished waits until all batches at or below ts, which the clock has passed, are published.
func (s *Store) waitPublished(ctx context.Context, ts mvcc.Timestamp) error {
	s.promise(ts)
	// A commit that took its timestamp before the clock passed ts may still be on its way to the
	// publisher. It has arrived once this goroutine has entered and left the critical section.
	s.appendMu.Lock()
	s.appendMu.Unlock() //lint:ignore SA2001 see above
	return s.pub.WaitTimestamp(ctx, ts)
}

// pins records the timestamps that reads and snapshots need, and how far each table's history may
// have been dropped.
//
// One lock guards both. Otherwise a read could pin its timestamp after a compaction has read the
// pins and before it drops history:
//
//	compaction: floor = min(oldest by age, pins)                    drops what is below the floor
//	read:                                       pin 5, allowed ───▶ reads at 5, part of which was dropped
//
// The floor is recorded when it is chosen, so the read has either pinned its timestamp before, or
// is refused.
type pins struct {
	mu        sync.Mutex
	at        map[mvcc.Timestamp]int
	floors    map[uint32]mvcc.Timestamp // by table number: the highest that was chosen
	snapshots map[*Snapshot]bool
}

func newPins() *pins {
	return &pins{at: map[mvcc.Timestamp]int{}, floors: map[uint32]mvcc.Timestamp{}, snapshots: map[*Snapshot]bool{}}
}

// lowest returns the lowest pinned timestamp, or Max if there is none. The caller has locked mu.
// There are as many pins as running reads and snapshots, so only compactions and reads beyond the
// retention call it.
func (p *pins) lowest() mvcc.Timestamp {
	low := mvcc.Max
	for ts := range p.at {
		low = min(low, ts)
	}
	return low
}

// choose returns the history floor for a rewrite of a table: oldest, which follows from the age of
// the history, or the lowest pin if that is lower.
func (p *pins) choose(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	floor := min(oldest, p.lowest())
	p.floors[table] = max(p.floors[table], floor)
	return floor
}

// begins returns the lowest timestamp at which the table can be read. oldest follows from the age
// of the history.
func (p *pins) begins(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beginsLocked(table, oldest)
}

// beginsLocked is begins for a caller that has locked mu.
func (p *pins) beginsLocked(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	return max(p.floors[table], min(oldest, p.lowest()))
}

// pin pins ts for a read of a table. Errors: ErrTooOld.
func (p *pins) pin(table uint32, oldest, ts mvcc.Timestamp) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ts < oldest || ts < p.floors[table] {
		if begins := p.beginsLocked(table, oldest); ts < begins {
			return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
		}
	}
	p.at[ts]++
	return nil
}

// pinLatest pins the newest state of a table for a read, and returns its timestamp. That may be a
// floor above visible: nothing was published in between.
func (p *pins) pinLatest(table uint32, visible mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := max(visible, p.floors[table])
	p.at[ts]++
	return ts
}

// pinOldest pins all that is left of a table's history for a read, and returns the timestamp at
// which the history begins.
func (p *pins) pinOldest(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := p.beginsLocked(table, oldest)
	p.at[ts]++
	return ts
}

// pinSnapshot pins the timestamp of a snapshot for a read of a table. Errors: ErrClosed, ErrTooOld.
func (p *pins) pinSnapshot(table uint32, sn *Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch floor := p.floors[table]; {
	case sn.closed:
		return fmt.Errorf("snapshot %q: %w", sn.name, fault.ErrClosed)
	case sn.ts < floor:
		return fmt.Errorf("history begins at %v: %w", floor, fault.ErrTooOld)
	}
	p.at[sn.ts]++
	return nil
}

func (p *pins) unpin(ts mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unpinLocked(ts)
}

func (p *pins) unpinLocked(ts mvcc.Timestamp) {
	if p.at[ts]--; p.at[ts] == 0 {
		delete(p.at, ts)
	}
}

// open pins a snapshot above which no table has dropped history.
func (p *pins) open(sn *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[sn.ts]++
	p.snapshots[sn] = true
}

// openAbove pins a snapshot unless a table's history may begin above it, and reports whether it
// did.
func (p *pins) openAbove(sn *Snapshot, tables []*Table) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tables {
		if sn.ts < p.floors[t.tab.Number] || sn.ts < t.tab.Metadata().HistoryFloor {
			return false
		}
	}
	p.at[sn.ts]++
	p.snapshots[sn] = true
	return true
}

// openPast pins a snapshot if there are no tables or at least one can still be read at it.
func (p *pins) openPast(sn *Snapshot, tables []*Table) error {
	begins := mvcc.Max
	for _, t := range tables {
		begins = min(begins, t.begins())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(tables) > 0 && sn.ts < begins {
		return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
	}
	p.at[sn.ts]++
	p.snapshots[sn] = true
	return nil
}

func (p *pins) close(sn *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sn.closed {
		return
	}
	sn.closed = true
	delete(p.snapshots, sn)
	p.unpinLocked(sn.ts)
}

// count returns the number of open reads and snapshots, and their oldest timestamp; 0 for none.
func (p *pins) count() (reads, snapshots int, oldest mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.at {
		reads += n
	}
	if reads > 0 {
		oldest = p.lowest()
	}
	return reads - len(p.snapshots), len(p.snapshots), oldest
}

// list returns the open snapshots, oldest first.
func (p *pins) list() []SnapshotInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []SnapshotInfo
	for sn := range p.snapshots {
		out = append(out, SnapshotInfo{sn.name, sn.ts})
	}
	slices.SortFunc(out, func(a, b SnapshotInfo) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Name, b.Name))
	})
	return out
}
