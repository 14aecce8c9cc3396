package memrowset

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/arena"
)

// death is what a leaf remembers of the changes of its rows, so that a delete of a range touches no row:
//
//	unchanged   no row was changed since its insertion
//	changed     rows may have been changed
//	pending     one delete concerns all rows, and is the first change of each; it is the ref of its link
//
// While it is pending, the rows do not have the link yet. Whoever takes rows from the leaf links them
// first, the one row for a lookup, else all of them:
//
//	DeleteRange   unchanged → pending   leaves of which all rows are in the range
//	get           links its row; for a change, unchanged → changed
//	walk          links all rows, then pending → changed
//	insert        the same, before it copies the leaf; a pending one is in a snapshot, of DeleteRange
//
// So nothing else knows of pending deaths. Most walks pass over them, since DeleteRange sets the gap of
// the leaf as well. Linking takes the place of no link but 0, so it may be done by many at a time, and
// late: a row that came back since has a newer link, which leads to this one.
//
// A change makes the leaf changed before it is linked, under the tree's lock. Snapshots from before an insert
// that copied the leaf do not note it; DeleteRange reads one that is as new as the tree.
type death uint64

const (
	unchanged death = 0
	changed   death = 1 // no ref, since these are multiples of 8
)

// load returns the death.
func (d *death) load() death { return death(atomic.LoadUint64((*uint64)(d))) }

// pending reports whether d is the ref of a link.
func (d death) pending() bool { return d > changed }

// become replaces old, if the death is still that.
func (d *death) become(old, new death) {
	atomic.CompareAndSwapUint64((*uint64)(d), uint64(old), uint64(new))
}

// linkDeath links the row to a pending death of its leaf, unless it is linked.
func (m *MemRowSet) linkDeath(row arena.Ref, d death) {
	if newest := m.newestWord(row); newest.Load() == 0 {
		newest.CompareAndSwap(0, uint64(d))
	}
}

// linkDeaths links all rows of a leaf to its death, if that is pending.
func (m *MemRowSet) linkDeaths(l *leaf) {
	if d := l.death.load(); d.pending() {
		for _, row := range l.refs[:l.n] {
			m.linkDeath(row, d)
		}
		l.death.become(d, changed)
	}
}
