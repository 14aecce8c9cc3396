package memrowset

import (
	"math/bits"

	"github.com/oribi-db/oribi/internal/arena"
)

// tree contains the items of a set in the order of MemRowSet.less. It is a B+ tree: leaves have the
// items, inner nodes their children and the least item of each:
//
//	              ┌───┬────┬────┐
//	inner         │ – │ 40 │ 70 │          children: below 40, from 40 on, from 70 on
//	              └─┬─┴──┬─┴──┬─┘
//	      ┌─────────┘    │    └─────────┐
//	┌──┬──┴──┬──┐  ┌──┬──┴──┬──┐  ┌──┬──┴──┐
//	│ 3│ 9│12│31│  │40│44│ … │69│  │70│81│ …│
//
// Items that come after all others, as in loads in key order, fill their leaf: a full last node is
// followed by a new one instead of being divided.
//
// A snapshot shares the nodes. Each node has the generation of the tree in which it was made; a
// snapshot begins a new one, and an insert copies the nodes of older generations on its way. Inserts
// need a lock that excludes reads of the tree, but not reads of its snapshots.
type tree struct {
	set        *MemRowSet // whose less is the order
	root       *node
	len        int
	generation uint64
}

// nodeItems is the number of items of a full node, which takes 1 KiB, the header of the allocator
// included.
const nodeItems = 62

// node is a node of a tree.
type node struct {
	children   *[nodeItems]*node // nil in a leaf
	generation uint64
	n          int // items or children
	// Items ascend. Those of an inner node divide its children: all items below children[i] are at
	// or above item i, and those below children[i-1] are below it. Item 0 is not used. The prefixes
	// are by themselves, so that a search reads few cache lines.
	prefixes [nodeItems]uint64
	refs     [nodeItems]arena.Ref
}

func (n *node) item(i int) item { return item{n.prefixes[i], n.refs[i]} }

func (n *node) setItem(i int, it item) { n.prefixes[i], n.refs[i] = it.prefix, it.ref }

func newTree(set *MemRowSet) *tree { return &tree{set: set, root: new(node)} }

// snapshot returns a tree that later inserts into t do not change.
func (t *tree) snapshot() *tree {
	s := *t
	t.generation++
	return &s
}

// max returns the greatest item.
func (t *tree) max() (it item, ok bool) {
	n := t.root
	for n.children != nil {
		n = n.children[n.n-1]
	}
	if n.n == 0 {
		return item{}, false
	}
	return n.item(n.n - 1), true
}

// get returns the item that is equal to it.
func (t *tree) get(it item) (found item, ok bool) {
	n := t.root
	for n.children != nil {
		n = n.children[n.childOf(t.set, it)]
	}
	if i, equal := n.search(t.set, 0, it); equal {
		return n.item(i), true
	}
	return item{}, false
}

// insert adds an item. It reports false, and does nothing, if the tree has an equal one.
func (t *tree) insert(it item) bool {
	root, right, low, ok := t.insertBelow(t.root, it, true)
	if !ok {
		return false
	}
	if t.root = root; right != nil {
		t.root = &node{children: &[nodeItems]*node{root, right}, generation: t.generation, n: 2}
		t.root.setItem(1, low)
	}
	t.len++
	return true
}

// insertBelow adds an item below a node. It returns the node that takes its place, a copy if it is of
// an older generation, and, if it was full, a new node to the right of it with a lower bound of its
// items. last is set for nodes to the right of which there is none.
func (t *tree) insertBelow(n *node, it item, last bool) (same, right *node, low item, ok bool) {
	if n.children == nil {
		i, equal := n.search(t.set, 0, it)
		if equal {
			return n, nil, low, false
		}
		same, right, low = t.put(n, i, it, nil, last)
		return same, right, low, true
	}
	i := n.childOf(t.set, it)
	child, added, bound, ok := t.insertBelow(n.children[i], it, last && i == n.n-1)
	if !ok {
		return n, nil, low, false
	}
	if child != n.children[i] {
		n = t.mutable(n)
		n.children[i] = child
	}
	if added == nil {
		return n, nil, low, true
	}
	same, right, low = t.put(n, i+1, bound, added, last)
	return same, right, low, true
}

// put adds an item at index i, in an inner node with a child. Results and last are those of
// insertBelow.
func (t *tree) put(n *node, i int, it item, child *node, last bool) (same, right *node, low item) {
	same = t.mutable(n)
	if n.n < nodeItems {
		same.insertAt(i, it, child)
		return same, nil, low
	}
	right = &node{generation: t.generation}
	if child != nil {
		right.children = new([nodeItems]*node)
	}
	from := nodeItems / 2
	if last && i == nodeItems {
		from = nodeItems
	}
	same.n, right.n = from, copy(right.prefixes[:], same.prefixes[from:])
	copy(right.refs[:], same.refs[from:])
	if child != nil {
		copy(right.children[:], same.children[from:])
		clear(same.children[from:])
	}
	if i < from {
		same.insertAt(i, it, child)
	} else {
		right.insertAt(i-from, it, child)
	}
	return same, right, right.item(0)
}

// mutable returns n, or a copy of it if a snapshot may have it.
func (t *tree) mutable(n *node) *node {
	if n.generation == t.generation {
		return n
	}
	c := *n
	c.generation = t.generation
	if n.children != nil {
		children := *n.children
		c.children = &children
	}
	return &c
}

// insertAt inserts an item, and in an inner node a child, at index i of a node that is not full.
func (n *node) insertAt(i int, it item, child *node) {
	copy(n.prefixes[i+1:n.n+1], n.prefixes[i:n.n])
	copy(n.refs[i+1:n.n+1], n.refs[i:n.n])
	n.setItem(i, it)
	if child != nil {
		copy(n.children[i+1:n.n+1], n.children[i:n.n])
		n.children[i] = child
	}
	n.n++
}

// childOf returns the index of the child that has an item, if any has.
func (n *node) childOf(set *MemRowSet, it item) int {
	i, equal := n.search(set, 1, it)
	if equal {
		return i
	}
	return i - 1
}

// search returns the index of the first of the items from index from on that is not below it, n if
// there is none, and whether the two are equal.
func (n *node) search(set *MemRowSet, from int, it item) (i int, equal bool) {
	if from == n.n || n.prefixes[n.n-1] < it.prefix {
		return n.n, false
	}
	// The search is branch-free: with random keys every other branch would be mispredicted.
	i = from - 1 // the prefixes of items [from, i] are below that of it
	for left := n.n - i; left > 1; {
		half := left >> 1
		_, below := bits.Sub64(n.prefixes[i+half], it.prefix, 0) // 1 if that prefix is below, else 0
		i += half & -int(below)
		left -= half
	}
	if i++; n.prefixes[i] != it.prefix {
		return i, false
	}
	return n.searchSame(set, i, it)
}

// searchSame is search from item lo on, the first with the prefix of it.
func (n *node) searchSame(set *MemRowSet, lo int, it item) (i int, equal bool) {
	hi := n.n
	if n.prefixes[hi-1] == it.prefix && set.less(n.item(hi-1), it) {
		return hi, false
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if n.prefixes[mid] == it.prefix && set.less(n.item(mid), it) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < n.n && n.prefixes[lo] == it.prefix && !set.less(it, n.item(lo))
}

// ascend calls take with all items in ascending order until it returns false.
func (t *tree) ascend(take func(it item) bool) { t.root.ascend(t.set, nil, take) }

// ascendFrom is ascend for the items from one on.
func (t *tree) ascendFrom(from item, take func(it item) bool) { t.root.ascend(t.set, &from, take) }

// ascend calls take with the items below n, if from is not nil only with those not below it. It
// returns false if take did.
func (n *node) ascend(set *MemRowSet, from *item, take func(it item) bool) bool {
	i := 0
	if n.children == nil {
		if from != nil {
			i, _ = n.search(set, 0, *from)
		}
		for ; i < n.n; i++ {
			if !take(n.item(i)) {
				return false
			}
		}
		return true
	}
	if from != nil {
		i = n.childOf(set, *from)
	}
	for ; i < n.n; i++ {
		if !n.children[i].ascend(set, from, take) {
			return false
		}
		from = nil
	}
	return true
}

// descend calls take with all items in descending order until it returns false.
func (t *tree) descend(take func(it item) bool) { t.root.descend(t.set, nil, take) }

// descendFrom is descend for the items from one down.
func (t *tree) descendFrom(from item, take func(it item) bool) { t.root.descend(t.set, &from, take) }

// descend calls take with the items below n, if from is not nil only with those not above it. It
// returns false if take did.
func (n *node) descend(set *MemRowSet, from *item, take func(it item) bool) bool {
	i := n.n - 1
	if n.children == nil {
		if from != nil {
			end, equal := n.search(set, 0, *from)
			if i = end; !equal {
				i--
			}
		}
		for ; i >= 0; i-- {
			if !take(n.item(i)) {
				return false
			}
		}
		return true
	}
	if from != nil {
		i = n.childOf(set, *from)
	}
	for ; i >= 0; i-- {
		if !n.children[i].descend(set, from, take) {
			return false
		}
		from = nil
	}
	return true
}
