package memrowset

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
)

// walker returns the rows of one snapshot of the tree, in ascending or descending order.
type walker struct {
	m            *MemRowSet
	tree         *tree
	lower, upper probe // keys in [lower, upper); a nil key = no bound
	descending   bool

	snap mvcc.Snapshot // passes over nodes without a row that snap sees; mvcc.Nothing = none
	look look

	// The position: the next row is item at of leaf, or the first one after it, if there is none.
	placed bool // the position is valid
	path   []branch
	leaf   *leaf // nil at the end of the tree
	at     int
}

// look is what a walk has seen of its leaf.
type look struct {
	learns bool // the walk looks at all rows that next returns, and calls looked
	gaps   bool // it sets gaps
	dead   bool // all rows from the beginning of the leaf to the position are dead
	newest mvcc.Timestamp
	known  gap // the leaf's, before the walk looked at a row
}

// learn makes the walk set gaps, once it has seen that all rows of a leaf are dead.
func (k *look) learn(m *MemRowSet) { k.learns, k.gaps = true, m.gaps.Load() }

// newWalker returns a walker over the rows with keys in [lower, upper), which belong to it. snap is
// walker.snap; it was taken before.
func (m *MemRowSet) newWalker(snap mvcc.Snapshot, lower, upper []byte, descending bool) walker {
	return walker{m: m, tree: m.snapshot(), snap: snap, lower: newProbe(lower), upper: newProbe(upper),
		descending: descending}
}

// next returns the next rows, up to limit of them and all of one leaf, none at the end. They are in
// ascending order, also if the walk descends, and memory of the tree.
func (w *walker) next(limit int) []arena.Ref {
	w.settle()
	l, from, end := w.leaf, w.at, w.at+1
	switch {
	case l == nil:
		return nil
	case w.descending:
		from = max(0, end-limit)
		if w.lower.key != nil && w.m.before(l.item(from), w.lower) {
			first, _ := l.search(w.m, w.lower)
			from = min(first, end)
		}
		w.at = from - 1
	default:
		end = min(l.n, from+limit)
		if w.upper.key != nil && !w.m.before(l.item(end-1), w.upper) {
			first, _ := l.search(w.m, w.upper)
			end = max(first, from)
		}
		w.at = end
	}
	w.m.linkDeaths(l)
	return l.refs[from:end]
}

// settle makes the position an item, if there is one left.
func (w *walker) settle() {
	if !w.placed {
		w.place()
	}
	for w.leaf != nil && (w.at < 0 || w.at >= w.leaf.n) {
		w.leave()
		w.nextLeaf()
	}
}

// place moves to the beginning of the walk.
func (w *walker) place() {
	w.placed, w.path = true, w.path[:0]
	c, p, before := w.tree.root, w.lower, 0
	if w.descending {
		p, before = w.upper, 1
	}
	if p.key == nil {
		w.descend(c)
		return
	}
	for c.inner != nil {
		i := c.inner.search(w.m, p)
		w.path = append(w.path, branch{c.inner, i})
		c = c.inner.children[i]
	}
	at, _ := c.leaf.search(w.m, p)
	w.enter(c.leaf, at-before)
	if c.leaf.gap.covers(w.snap) {
		w.nextLeaf()
	}
}

// descend moves to the first leaf of the walk below c.
func (w *walker) descend(c child) {
	switch {
	case c.inner != nil && w.descending:
		w.path = append(w.path, branch{c.inner, c.inner.n})
	case c.inner != nil:
		w.path = append(w.path, branch{c.inner, -1})
	case w.descending:
		w.enter(c.leaf, c.leaf.n-1)
		return
	default:
		w.enter(c.leaf, 0)
		return
	}
	w.nextLeaf()
}

// nextLeaf moves to the next leaf after the path that no gap covers.
func (w *walker) nextLeaf() {
	w.leaf = nil
	for w.leaf == nil && len(w.path) > 0 {
		s := &w.path[len(w.path)-1]
		if s.at++; w.descending {
			s.at -= 2
		}
		switch {
		case s.at < 0 || s.at >= s.node.n:
			if w.look.gaps {
				s.node.learn()
			}
			w.path = w.path[:len(w.path)-1]
		case !s.node.children[s.at].gap().covers(w.snap):
			w.descend(s.node.children[s.at])
		}
	}
}

// enter moves to item at of a leaf.
func (w *walker) enter(l *leaf, at int) {
	w.leaf, w.at = l, at
	if w.look.learns {
		w.look.known, w.look.newest = l.gap.load(), 0
		w.look.dead = l.n > 0 && (at == 0 || w.descending) && (at == l.n-1 || !w.descending)
	}
}

// leave sets the gap of the leaf if all its rows are dead.
func (w *walker) leave() {
	switch k := &w.look; {
	case k.dead && k.gaps:
		w.leaf.gap.set(k.known, k.newest)
	case k.dead:
		w.m.gaps.Store(true)
		k.gaps = true // for the leaves that the walk has not looked at
	}
}

// looked records that the last rows of next are all dead in the walker's snapshot, or that one is not.
func (w *walker) looked(rows []arena.Ref, dead bool) {
	k := &w.look
	if k.dead = k.dead && dead; !k.dead {
		return
	}
	for _, ref := range rows {
		ts, ok := w.m.deadSince(ref, w.snap)
		if !ok { // it is not inserted yet
			k.dead = false
			return
		}
		k.newest = max(k.newest, ts)
	}
}

// until moves the end of the walk to key; nil means no end. The key belongs to w.
func (w *walker) until(key []byte) {
	if w.descending {
		w.lower = newProbe(key)
	} else {
		w.upper = newProbe(key)
	}
}

// seek skips rows before key, in the walker's order, that were not returned yet.
func (w *walker) seek(key []byte) {
	p, bound := newProbe(bytes.Clone(key)), &w.lower
	if w.descending {
		p, bound = newProbe(append(bytes.Clone(key), 0)), &w.upper // the least key above key
	}
	if w.placed {
		w.settle()
		if w.leaf == nil || w.m.before(w.leaf.item(w.at), p) == w.descending {
			return
		}
	} else if bound.key != nil && bytes.Compare(bound.key, p.key) <= 0 == w.descending {
		return
	}
	*bound, w.placed = p, false
}
