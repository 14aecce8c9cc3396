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
//	compaction: chooses floor 9, no points                    drops what is below the floor
//	read:                                 pin 5, allowed ───▶ reads at 5, part of which was dropped
//
// What is retained is recorded when it is chosen, so the read has either pinned its timestamp
// before, or is refused.
//
// A pin retains one state, and what is between it and the floor is dropped. Some also retain all
// later states: then the floor does not pass them.
type Pins struct {
	timeline *Timeline

	mu        sync.Mutex
	at        map[mvcc.Timestamp]int   // all pins
	whole     map[mvcc.Timestamp]int   // those that retain all later states
	retained  map[uint32]mvcc.Retained // by table number: the last choice
	snapshots map[*Snapshot]bool
}

// Snapshot pins a state of all tables from OpenSnapshot or OpenSnapshotAt until CloseSnapshot. It is
// safe for concurrent use.
type Snapshot struct {
	TS    mvcc.Timestamp
	Whole bool // it also pins all later states

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
	return &Pins{timeline: t, at: map[mvcc.Timestamp]int{}, whole: map[mvcc.Timestamp]int{},
		retained: map[uint32]mvcc.Retained{}, snapshots: map[*Snapshot]bool{}}
}

// lowest returns the lowest timestamp of pins, or Max without any. There are as many pins as running
// reads and snapshots, so only compactions and reads beyond the retention call it.
func lowest(pins map[mvcc.Timestamp]int) mvcc.Timestamp {
	low := mvcc.Max
	for ts := range pins {
		low = min(low, ts)
	}
	return low
}

// Oldest returns the timestamp at which a table's history begins by its age.
func (p *Pins) Oldest(t *tablet.Tablet) mvcc.Timestamp {
	row := t.Metadata()
	return p.timeline.Oldest(row.HistorySec, row.Created)
}

// Choose returns what a rewrite of a table retains: the states from oldest on, which follows from
// the age of the history, and the pinned ones, as far as they can still be read.
func (p *Pins) Choose(t *tablet.Tablet, oldest mvcc.Timestamp) mvcc.Retained {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.choice(t)
	next := mvcc.Retained{Floor: max(was.Floor, min(oldest, lowest(p.whole)))}
	for ts := range p.at {
		if ts < next.Floor && was.Has(ts) {
			next.Points = append(next.Points, ts)
		}
	}
	slices.Sort(next.Points)
	p.retained[t.Number] = next
	return next
}

// Retains reports whether compactions of a table retain the state at a timestamp below the floor,
// since it is pinned.
func (p *Pins) Retains(table uint32, ts mvcc.Timestamp) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.retained[table].Points, ts)
}

// choice returns what the rewrites of a table retain.
func (p *Pins) choice(t *tablet.Tablet) mvcc.Retained {
	r := p.retained[t.Number]
	r.Floor = max(r.Floor, t.Metadata().HistoryFloor)
	return r
}

// Begins returns the timestamp from which on the table can be read. A snapshot may be older.
func (p *Pins) Begins(t *tablet.Tablet) mvcc.Timestamp {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begins(t, oldest)
}

// UndoBytes returns the size of a table's undo files that only pins keep.
func (p *Pins) UndoBytes(t *tablet.Tablet) int64 {
	oldest := p.Oldest(t)
	p.mu.Lock()
	first := min(oldest, lowest(p.at))
	p.mu.Unlock()
	return t.UndoBytes(first, oldest)
}

// begins is Begins for a caller that has locked mu.
func (p *Pins) begins(t *tablet.Tablet, oldest mvcc.Timestamp) mvcc.Timestamp {
	return max(p.choice(t).Floor, min(oldest, lowest(p.whole)))
}

// check returns an error if a read of a table cannot pin ts. The caller has locked mu.
func (p *Pins) check(t *tablet.Tablet, ts, oldest mvcc.Timestamp) error {
	r := p.choice(t)
	if ts >= oldest && ts >= r.Floor || p.at[ts] > 0 && r.Has(ts) {
		return nil
	}
	if begins := p.begins(t, oldest); ts < begins {
		return fmt.Errorf("history begins at %v: %w", begins, fault.ErrTooOld)
	}
	return nil
}

// Pin pins ts for a read of a table. Errors: ErrTooOld.
func (p *Pins) Pin(t *tablet.Tablet, ts mvcc.Timestamp) error {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.check(t, ts, oldest)
	if err == nil {
		p.at[ts]++
	}
	return err
}

// PinEqual pins ts for a read of a table, or a later timestamp at which the state is the same, which
// it returns: a floor may be above the newest batch. Errors: ErrTooOld.
func (p *Pins) PinEqual(t *tablet.Tablet, ts mvcc.Timestamp) (mvcc.Timestamp, error) {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ts >= p.timeline.Visible() { // all up to the floor was published when it was chosen
		ts = max(ts, p.choice(t).Floor)
	} else if err := p.check(t, ts, oldest); err != nil {
		return 0, err
	}
	p.at[ts]++
	return ts, nil
}

// PinLatest pins the newest state of a table and of its indexes for a read, and returns its timestamp. That
// may be a floor above visible: nothing was published in between, or the read sees that too.
func (p *Pins) PinLatest(t *tablet.Tablet, visible mvcc.Timestamp) mvcc.Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := max(visible, p.retained[t.Number].Floor)
	for _, x := range t.Indexes() {
		ts = max(ts, p.retained[x.Number].Floor)
	}
	p.at[ts]++
	return ts
}

// PinOldest pins all that is left of a table's history, and returns the timestamp at which the
// history begins. The caller calls UnpinOldest.
func (p *Pins) PinOldest(t *tablet.Tablet) mvcc.Timestamp {
	oldest := p.Oldest(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := p.begins(t, oldest)
	p.pin(ts, true)
	return ts
}

// UnpinOldest ends a pin of PinOldest.
func (p *Pins) UnpinOldest(ts mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unpin(ts, true)
}

// PinSnapshot pins the timestamp of a snapshot for a read of a table. Errors: ErrClosed, ErrTooOld.
func (p *Pins) PinSnapshot(table uint32, sn *Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r := p.retained[table]; {
	case sn.closed:
		return fmt.Errorf("snapshot %q: %w", sn.Name(), fault.ErrClosed)
	case sn.TS < r.Floor && (sn.Whole || !r.Has(sn.TS)):
		return fmt.Errorf("history begins at %v: %w", r.Floor, fault.ErrTooOld)
	}
	p.at[sn.TS]++
	return nil
}

// Unpin ends a pin of a read.
func (p *Pins) Unpin(ts mvcc.Timestamp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unpin(ts, false)
}

func (p *Pins) pin(ts mvcc.Timestamp, whole bool) {
	p.at[ts]++
	if whole {
		p.whole[ts]++
	}
}

func (p *Pins) unpin(ts mvcc.Timestamp, whole bool) {
	if p.at[ts]--; p.at[ts] == 0 {
		delete(p.at, ts)
	}
	if !whole {
		return
	}
	if p.whole[ts]--; p.whole[ts] == 0 {
		delete(p.whole, ts)
	}
}

// Open pins a snapshot above which no table has dropped history.
func (p *Pins) Open(sn *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open(sn)
}

func (p *Pins) open(sn *Snapshot) {
	p.pin(sn.TS, sn.Whole)
	p.snapshots[sn] = true
}

// OpenAbove pins a snapshot unless a table's history may begin above it, and reports whether it did.
func (p *Pins) OpenAbove(sn *Snapshot, tables []*tablet.Tablet) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tables {
		if sn.TS < p.choice(t).Floor {
			return false
		}
	}
	p.open(sn)
	return true
}

// OpenPast pins a snapshot if there are no tables or at least one can still be read at it. Errors:
// ErrTooOld.
func (p *Pins) OpenPast(sn *Snapshot, tables []*tablet.Tablet) error {
	oldest := make([]mvcc.Timestamp, len(tables))
	for i, t := range tables {
		oldest[i] = p.Oldest(t)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	begins, pinned := mvcc.Max, false
	for i, t := range tables {
		begins = min(begins, p.begins(t, oldest[i]))
		pinned = pinned || !sn.Whole && p.check(t, sn.TS, oldest[i]) == nil
	}
	if len(tables) > 0 && sn.TS < begins && !pinned {
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
	p.unpin(sn.TS, sn.Whole)
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
		oldest = lowest(p.at)
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
