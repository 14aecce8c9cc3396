package memrowset

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
)

// gap is what a node remembers of deleted rows: that all rows below it are dead as of a timestamp, so
// that reads at or after it pass over the node. A queue leaves a million dead rows before its first
// live one; they are passed over in a few dozen steps, since an inner node has a gap too.
//
//	root     ·   ·   ·   x        x: gap
//	inner    x x x   x x x   x x · ·
//	leaves                       x x · · ·
//
// An odd gap is such a timestamp, rounded up to an odd number; an even one means that nothing is
// known.
//
// A walk that has looked at all rows of a leaf, and found the newest change of each to be a delete that
// its snapshot sees, sets the gap of the leaf; and one that leaves an inner node sets the gap of that
// node, if all its children have one. Later snapshots see these deletes as well, unless a row comes back:
//
//   - An insert changes the tree. Walks only read snapshots of the tree, so an insert into a node that
//     a walk may have seen copies the node, and the copy has no gap.
//   - A REINSERT does not change the tree, and ends the gaps of the nodes above its row, from the leaf up.
//
// A walk and a REINSERT at ts may run at the same time:
//
//	walk        loads the gap    looks at the row                           sets the gap if it is unchanged
//	REINSERT                                        links    ends the gap
//
// The gap has changed: each REINSERT sets an even number that no gap ever was. If the walk loads the
// gap after its end, it sees the link. If it sets the gap before, the gap ends before ts is published,
// and only later snapshots see ts. An inner node's gap is loaded before the gaps of its children; if it
// is loaded after its end, so are they, since they ended before.
//
// A copy that an insert makes leaves the old node to walks of older trees. Their snapshots do not
// see ts, since the tree of a walk is taken after its snapshot.
type gap uint64

// load returns the gap.
func (g *gap) load() gap { return gap(atomic.LoadUint64((*uint64)(g))) }

// covers reports whether a walk at snap may pass over the node.
func (g *gap) covers(snap mvcc.Snapshot) bool {
	v := g.load()
	return v&1 != 0 && snap.Sees(mvcc.Timestamp(v))
}

// set makes the rows below the node dead as of ts, if the gap is still known, which load returned before
// the rows were looked at.
func (g *gap) set(known gap, ts mvcc.Timestamp) {
	atomic.CompareAndSwapUint64((*uint64)(g), uint64(known), uint64(ts)|1)
}

// end ends the gap. number is even, and was never a gap.
func (g *gap) end(number uint64) { atomic.StoreUint64((*uint64)(g), number) }

func (c child) gap() *gap {
	if c.leaf != nil {
		return &c.leaf.gap
	}
	return &c.inner.gap
}

// learn sets the gap of a node whose children all have one.
func (n *inner) learn() {
	known, newest := n.gap.load(), gap(0)
	if known&1 != 0 {
		return
	}
	for _, c := range n.children[:n.n] {
		g := c.gap().load()
		if g&1 == 0 {
			return
		}
		newest = max(newest, g)
	}
	n.gap.set(known, mvcc.Timestamp(newest))
}

// endGaps ends the gaps of the nodes above a row that was reinserted, if walks set any.
func (m *MemRowSet) endGaps(key []byte) {
	if !m.gaps.Load() {
		return // a walk that will set one has not looked at a row yet
	}
	m.mu.RLock()
	m.tree.root.endGaps(m, newProbe(key), m.ended.Add(2))
	m.mu.RUnlock()
}

func (c child) endGaps(m *MemRowSet, p probe, number uint64) {
	if c.inner != nil {
		c.inner.children[c.inner.search(m, p)].endGaps(m, p, number)
	}
	c.gap().end(number)
}

// deadSince returns the timestamp of the newest change of a row, if that is a delete that snap sees.
func (m *MemRowSet) deadSince(ref arena.Ref, snap mvcc.Snapshot) (ts mvcc.Timestamp, ok bool) {
	newest := m.newest(ref)
	if newest == 0 {
		return 0, false
	}
	l := m.link(newest)
	return l.ts(), l.kind() == change.Delete && snap.Sees(l.ts())
}
