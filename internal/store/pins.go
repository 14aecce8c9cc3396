package store

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Pins records the timestamps that reads and snapshots need, and how far each table's history may
// have been dropped. It is safe for concurrent use.
//
// One lock guards both. Otherwise a read could pin its timestamp after a compaction has read the
// pins and before it drops history:
//
//	compaction: floor = min(oldest by age, pins)                    drops what is below the floor
//	read:                                       pin 5, allowed ───▶ reads at 5, part of which was dropped
//
// The floor is recorded when it is chosen, so the read has either pinned its timestamp before, or
// is refused.
type Pins struct {
	timeline *Timeline

	mu        sync.Mutex
	at        map[mvcc.Timestamp]int
	floors    map[uint32]mvcc.Timestamp // by table number: the highest that was chosen
	snapshots map[*Snapshot]bool
}

// Snapshot pins the history of all tables above a timestamp from OpenSnapshot or OpenSnapshotAt until
// CloseSnapshot. It is safe for concurrent use.
type Snapshot struct {
	TS mvcc.Timestamp

	name atomic.Pointer[string] // nil: the empty name

	closed bool // under Pins.mu

	// Of a follower: the states of the tables in which the snapshot reads.
	statesMu sync.Mutex
	states   map[*tablet.Tablet]tablet.View
}

// Name returns the name of the snapshot.
func (sn *Snapshot) Name() string {
	if name := sn.name.Load(); name != nil {
		return *name
	}
	return ""
}

// SetName changes the name of the snapshot.
func (sn *Snapshot) SetName(name string) { sn.name.Store(&name) }

// State returns the view of a table that the snapshot of a follower keeps, which the caller releases.
func (sn *Snapshot) State(t *tablet.Tablet) (tablet.View, bool) {
	sn.statesMu.Lock()
	defer sn.statesMu.Unlock()
	v, ok := sn.states[t]
	if ok {
		v = v.Ref()
	}
	return v, ok
}

// NewPins returns the pins of a store.
func NewPins(t *Timeline) *Pins {
	return &Pins{timeline: t, at: map[mvcc.Timestamp]int{}, floors: map[uint32]mvcc.Timestamp{},
		snapshots: map[*Snapshot]bool{}}
}

// lowest returns the lowest pinned timestamp, or Max without pins. The caller has locked mu. There
// are as many pins as running reads and snapshots, so only compactions and reads beyond the
// retention call it.
func (p *Pins) lowest() mvcc.Timestamp {
	low := mvcc.Max
	for ts := range p.at {
		low = min(low, ts)
	}
	return low
}

// Oldest returns the timestamp at which a table's history begins by its age.
func (p *Pins) Oldest(t *tablet.Tablet) mvcc.Timestamp {
	return p.timeline.Oldest(t.Metadata().HistorySec)
}

// Choose returns the history floor for a rewrite of a table: oldest, which follows from the age of
// the history, or the lowest pin if that is lower.
func (p *Pins) Choose(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	floor := min(oldest, p.lowest())
	p.floors[table] = max(p.floors[table], floor)
	return floor
}

// Begins returns the lowest timestamp at which the table can be read.
func (p *Pins) Begins(t *tablet.Tablet) mvcc.Timestamp {
	return max(t.Metadata().HistoryFloor, p.begins(t.Number, p.Oldest(t)))
}

// UndoBytes returns the size of a table's undo files that only pins keep.
func (p *Pins) UndoBytes(t *tablet.Tablet) int64 {
	oldest := p.Oldest(t)
	return t.UndoBytes(p.begins(t.Number, oldest), oldest)
}

func (p *Pins) begins(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beginsLocked(table, oldest)
}

// beginsLocked is begins for a caller that has locked mu.
func (p *Pins) beginsLocked(table uint32, oldest mvcc.Timestamp) mvcc.Timestamp {
	return max(p.floors[table], min(oldest, p.lowest()))
}

// Pin pins ts for a read of a table. Errors: ErrTooOld.
func (p *Pins) Pin(t *tablet.Tablet, ts mvcc.Timestamp) error {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ts < oldest || ts < p.floors[t.Number] {
		if begins := p.beginsLocked(t.Number, oldest); ts < begins {
			return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
		}
	}
	p.at[ts]++
	return nil
}

// PinLatest pins the newest state of a table for a read, and returns its timestamp. That may be a
// floor above visible: nothing was published in between.
func (p *Pins) PinLatest(table uint32, visible mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := max(visible, p.floors[table])
	p.at[ts]++
	return ts
}

// PinOldest pins all that is left of a table's history for a read, and returns the timestamp at
// which the history begins.
func (p *Pins) PinOldest(t *tablet.Tablet) mvcc.Timestamp {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := p.beginsLocked(t.Number, oldest)
	p.at[ts]++
	return ts
}

// PinSnapshot pins the timestamp of a snapshot for a read of a table. Errors: ErrClosed, ErrTooOld.
func (p *Pins) PinSnapshot(table uint32, sn *Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch floor := p.floors[table]; {
	case sn.closed:
		return fmt.Errorf("snapshot %q: %w", sn.Name(), fault.ErrClosed)
	case sn.TS < floor:
		return fmt.Errorf("history begins at %v: %w", floor, fault.ErrTooOld)
	}
	p.at[sn.TS]++
	return nil
}

// Unpin ends a pin of a read.
func (p *Pins) Unpin(ts mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unpinLocked(ts)
}

func (p *Pins) unpinLocked(ts mvcc.Timestamp) {
	if p.at[ts]--; p.at[ts] == 0 {
		delete(p.at, ts)
	}
}

// Open pins a snapshot above which no table has dropped history.
func (p *Pins) Open(sn *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open(sn)
}

func (p *Pins) open(sn *Snapshot) {
	p.at[sn.TS]++
	p.snapshots[sn] = true
}

// OpenAbove pins a snapshot unless a table's history may begin above it, and reports whether it did.
func (p *Pins) OpenAbove(sn *Snapshot, tables []*tablet.Tablet) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tables {
		if sn.TS < p.floors[t.Number] || sn.TS < t.Metadata().HistoryFloor {
			return false
		}
	}
	p.open(sn)
	return true
}

// OpenPast pins a snapshot if there are no tables or at least one can still be read at it. Errors:
// ErrTooOld.
func (p *Pins) OpenPast(sn *Snapshot, tables []*tablet.Tablet) error {
	begins := mvcc.Max
	for _, t := range tables {
		begins = min(begins, p.Begins(t))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(tables) > 0 && sn.TS < begins {
		return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
	}
	p.open(sn)
	return nil
}

// Close unpins a snapshot. Further calls have no effect.
func (p *Pins) Close(sn *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sn.closed {
		return
	}
	sn.closed = true
	delete(p.snapshots, sn)
	p.unpinLocked(sn.TS)
}

// Count returns the number of open reads and snapshots, and their oldest timestamp, 0 if there are
// none.
func (p *Pins) Count() (reads, snapshots int, oldest mvcc.Timestamp) {
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

// Snapshots returns the open snapshots, oldest first.
func (p *Pins) Snapshots() []*Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*Snapshot
	for sn := range p.snapshots {
		out = append(out, sn)
	}
	slices.SortFunc(out, func(a, b *Snapshot) int {
		return cmp.Or(cmp.Compare(a.TS, b.TS),
			cmp.Compare(a.Name(), b.Name()))
	})
	return out
}
