package memrowset

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/keyenc"
)

// tree contains the items of a set in the order of their keys: a B+ tree.
//
//	inner            –           40         70        keys below 40, from 40 on, from 70 on
//	                 │           │          │
//	leaves   3 9 12 31    40 44 … 69    70 81 …
//
// An item after all others is appended to the last leaf without a search, as in loads in key order,
// and a full last node is followed by a new one instead of being divided. Nothing is ever removed.
//
// A snapshot shares the nodes. Each node has the generation of the tree in which it was made; a
// snapshot begins a new one, and an insert copies nodes of an older generation. Inserts need a lock
// that excludes reads of the tree, but not reads of its snapshots.
type tree struct {
	set        *MemRowSet
	root       child
	last       *leaf
	len        int
	generation uint64
}

// child is a node below an inner node, or the root: one of the two.
type child struct {
	leaf  *leaf
	inner *inner
}

// item is one row in the tree. The prefix decides most comparisons; the arena is read only if two
// prefixes are equal.
type item struct {
	prefix uint64    // first 8 bytes of the key as a big-endian integer, padded with zeros
	ref    arena.Ref // of the row's header
}

// probe is a key that is searched for.
type probe struct {
	prefix uint64 // as in item
	key    []byte
}

func newProbe(key []byte) probe { return probe{keyenc.Head(key), key} }

// before reports whether the key of it precedes the key of p.
func (m *MemRowSet) before(it item, p probe) bool {
	if it.prefix != p.prefix {
		return it.prefix < p.prefix
	}
	return bytes.Compare(m.header(it.ref).key(), p.key) < 0
}

// The numbers of items of a full leaf, and of children of a full inner node. Both nodes take 1 KiB, the
// header of the allocator included, which a leaf does not have since it has no pointers.
const (
	leafItems     = 62
	innerChildren = 31
)

// leaf has items in ascending order. The prefixes are by themselves, so that a search reads few cache
// lines.
type leaf struct {
	generation uint64
	gap        gap
	death      death
	n          int
	prefixes   [leafItems]uint64
	refs       [leafItems]arena.Ref
}

// inner has children in ascending order. lows[i] is the least item below children[i], except that
// children[0] may have lesser ones: a search does not look at lows[0].
type inner struct {
	generation uint64
	gap        gap
	n          int
	lows       [innerChildren]item
	children   [innerChildren]child
}

func (l *leaf) item(i int) item { return item{l.prefixes[i], l.refs[i]} }

// noItems is the leaf of all empty trees, which an insert copies: thousands of tables may have no row.
var noItems leaf

func newTree(set *MemRowSet) *tree {
	return &tree{set: set, root: child{leaf: &noItems}, last: &noItems, generation: noItems.generation + 1}
}

// snapshot returns a tree that later inserts into t do not change.
func (t *tree) snapshot() *tree {
	s := *t
	t.generation++
	return &s
}

// max returns the greatest item.
func (t *tree) max() (it item, ok bool) {
	if t.len == 0 {
		return item{}, false
	}
	return t.last.item(t.last.n - 1), true
}

// get returns the row with the key of p, or 0. toChange says that the caller will change the row.
func (t *tree) get(p probe, toChange bool) arena.Ref {
	c := t.root
	for c.inner != nil {
		c = c.inner.children[c.inner.search(t.set, p)]
	}
	l := c.leaf
	i, equal := l.search(t.set, p)
	if !equal {
		return 0
	}
	ref := l.refs[i]
	switch d := l.death.load(); {
	case d.pending():
		t.set.linkDeath(ref, d)
	case d == unchanged && toChange:
		l.death.become(unchanged, changed)
	}
	return ref
}

// each calls visit with the rows below c, in order.
func (c child) each(visit func(ref arena.Ref)) {
	if c.leaf != nil {
		for _, ref := range c.leaf.refs[:c.leaf.n] {
			visit(ref)
		}
		return
	}
	for _, below := range c.inner.children[:c.inner.n] {
		below.each(visit)
	}
}

// branch is an inner node on the path to a leaf, and the index of the next node of the path.
type branch struct {
	node *inner
	at   int
}

// usualDepth is the number of inner nodes on the path to a leaf for which searches have memory on the
// stack: enough for 15 million items in random order.
const usualDepth = 5

// insert adds an item with the key of p. It reports false, and does nothing, if the tree has one.
func (t *tree) insert(ref arena.Ref, p probe) bool {
	it := item{p.prefix, ref}
	if last, ok := t.max(); ok && t.last.generation == t.generation && t.last.n < leafItems && t.set.before(last, p) {
		t.last.insertAt(t.last.n, it)
		t.len++
		return true
	}
	var branches [usualDepth]branch
	path, at, last := branches[:0], &t.root, true
	for at.inner != nil {
		n := t.ownInner(at)
		i := n.search(t.set, p)
		last = last && i == n.n-1
		path = append(path, branch{n, i})
		at = &n.children[i]
	}
	l := t.ownLeaf(at)
	i, equal := l.search(t.set, p)
	if !equal {
		t.len++
		if right := l.put(i, it, last); right != nil {
			t.addChild(path, right.item(0), child{leaf: right}, last)
			l = right
		}
	}
	if last {
		t.last = l
	}
	return !equal
}

// ownLeaf returns the leaf at, which is replaced by a copy if a snapshot may have it. A copy has no
// gap, and no pending death.
func (t *tree) ownLeaf(at *child) *leaf {
	if l := at.leaf; l.generation != t.generation {
		t.set.linkDeaths(l)
		at.leaf = &leaf{generation: t.generation, death: l.death.load(), n: l.n, prefixes: l.prefixes, refs: l.refs}
	}
	return at.leaf
}

// ownInner is ownLeaf for an inner node.
func (t *tree) ownInner(at *child) *inner {
	if n := at.inner; n.generation != t.generation {
		at.inner = &inner{generation: t.generation, n: n.n, lows: n.lows, children: n.children}
	}
	return at.inner
}

// addChild adds a node after the nodes of a path, which the tree owns. Full ones are divided, up to the
// root. last reports whether they are the last nodes of the tree.
func (t *tree) addChild(path []branch, low item, c child, last bool) {
	for _, s := range slices.Backward(path) {
		right := s.node.put(s.at+1, low, c, last)
		if right == nil {
			return
		}
		low, c = right.lows[0], child{inner: right}
	}
	root := &inner{generation: t.generation, n: 2}
	root.children[0] = t.root
	root.lows[1], root.children[1] = low, c
	t.root = child{inner: root}
}

// divide returns how many of the n items or children of a full node stay in it when it is divided, since
// one more comes at index i. last reports whether the node is one of the last nodes of the tree.
func divide(i, n int, last bool) int {
	if last && i == n {
		return n
	}
	return n / 2
}

// put adds an item at index i. A full leaf is divided, and put returns the new right leaf, else nil.
func (l *leaf) put(i int, it item, last bool) (right *leaf) {
	if l.n < leafItems {
		l.insertAt(i, it)
		return nil
	}
	from := divide(i, leafItems, last)
	right = &leaf{generation: l.generation, n: leafItems - from}
	if right.n > 0 {
		right.death = l.death.load()
	}
	copy(right.prefixes[:], l.prefixes[from:])
	copy(right.refs[:], l.refs[from:])
	l.n = from
	if i < from {
		l.insertAt(i, it)
	} else {
		right.insertAt(i-from, it)
	}
	return right
}

// put adds a child at index i. A full node is divided, and put returns the new right node, else nil.
func (n *inner) put(i int, low item, c child, last bool) (right *inner) {
	if n.n < innerChildren {
		n.insertAt(i, low, c)
		return nil
	}
	from := divide(i, innerChildren, last)
	right = &inner{generation: n.generation, n: innerChildren - from}
	copy(right.lows[:], n.lows[from:])
	copy(right.children[:], n.children[from:])
	clear(n.children[from:])
	n.n = from
	if i < from {
		n.insertAt(i, low, c)
	} else {
		right.insertAt(i-from, low, c)
	}
	return right
}

// insertAt inserts an item at index i of a leaf that is not full.
func (l *leaf) insertAt(i int, it item) {
	copy(l.prefixes[i+1:l.n+1], l.prefixes[i:l.n])
	copy(l.refs[i+1:l.n+1], l.refs[i:l.n])
	l.prefixes[i], l.refs[i] = it.prefix, it.ref
	l.n++
}

// insertAt inserts a child at index i of a node that is not full.
func (n *inner) insertAt(i int, low item, c child) {
	copy(n.lows[i+1:n.n+1], n.lows[i:n.n])
	copy(n.children[i+1:n.n+1], n.children[i:n.n])
	n.lows[i], n.children[i] = low, c
	n.n++
}

// search returns the index of the last child below which an item with the key of p would be.
func (n *inner) search(set *MemRowSet, p probe) int {
	lo, hi := 0, n.n // lows[lo] is at or before p, lows[hi] after it
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if low := n.lows[mid]; low.prefix < p.prefix ||
			low.prefix == p.prefix && bytes.Compare(set.header(low.ref).key(), p.key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// search returns the index of the first item that is not before p, or l.n if all are, and whether
// the item has the key of p.
func (l *leaf) search(set *MemRowSet, p probe) (i int, equal bool) {
	if l.n == 0 || l.prefixes[l.n-1] < p.prefix {
		return l.n, false
	}
	// The search is branch-free: with random keys every other branch would be mispredicted.
	i = -1 // the prefixes of items [0, i] are below p.prefix
	for left := l.n - i; left > 1; {
		half := left >> 1
		_, below := bits.Sub64(l.prefixes[i+half], p.prefix, 0) // 1 if that prefix is below, else 0
		i += half & -int(below)
		left -= half
	}
	if i++; l.prefixes[i] != p.prefix {
		return i, false
	}
	return l.searchSame(set, i, p)
}

// searchSame is search from item lo on, the first with the prefix of p.
func (l *leaf) searchSame(set *MemRowSet, lo int, p probe) (i int, equal bool) {
	hi := l.n
	if set.before(l.item(hi-1), p) {
		return hi, false
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if set.before(l.item(mid), p) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < l.n && l.prefixes[lo] == p.prefix && bytes.Equal(set.header(l.refs[lo]).key(), p.key)
}
