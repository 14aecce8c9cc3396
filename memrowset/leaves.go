package memrowset

import (
	"math/bits"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/internal/arena"
)

// tree contains the items of a set in the order of MemRowSet.less: in leaves, which a B-tree finds by
// a lower bound of their items.
//
//	B-tree      –         40         70          below 40, from 40 on, from 70 on
//	            │          │          │
//	leaves   3 9 12 31   40 44 … 69   70 81 …
//
// An item after all others is appended to the last leaf without a search, as in loads in key order,
// and a full last leaf is followed by a new one instead of being divided.
//
// A snapshot shares the leaves. Each leaf has the generation of the tree in which it was made; a
// snapshot begins a new one, and an insert copies a leaf of an older generation. Inserts need a lock
// that excludes reads of the tree, but not reads of its snapshots.
type tree struct {
	set        *MemRowSet // whose less is the order
	leaves     *btree.BTreeG[bounded]
	last       *leaf
	len        int
	generation uint64
}

// treeDegree is the degree of the B-tree: its nodes have up to 64 leaves, twice the degree.
const treeDegree = 32

// bounded is a leaf with a lower bound of its items, which the zero item is for all.
type bounded struct {
	low item
	*leaf
}

// leafItems is the number of items of a full leaf, which takes 1 KiB, the header of the allocator
// included.
const leafItems = 62

// leaf has items in ascending order. The prefixes are by themselves, so that a search reads few cache
// lines.
type leaf struct {
	generation uint64
	n          int
	prefixes   [leafItems]uint64
	refs       [leafItems]arena.Ref
}

func (l *leaf) item(i int) item { return item{l.prefixes[i], l.refs[i]} }

// noItems is the leaf of all empty trees, which an insert copies: thousands of tables may have no row.
var noItems leaf

func newTree(set *MemRowSet) *tree {
	t := &tree{set: set, last: &noItems, generation: noItems.generation + 1}
	t.leaves = btree.NewG(treeDegree, func(a, b bounded) bool {
		return b.low.ref != 0 && (a.low.ref == 0 || set.less(a.low, b.low))
	})
	t.leaves.ReplaceOrInsert(bounded{leaf: t.last})
	return t
}

// snapshot returns a tree that later inserts into t do not change.
func (t *tree) snapshot() *tree {
	s := *t
	s.leaves = t.leaves.Clone()
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

// leafOf returns the leaf that has an item if any has.
func (t *tree) leafOf(it item) bounded {
	var at bounded
	t.leaves.DescendLessOrEqual(bounded{low: it}, func(b bounded) bool {
		at = b
		return false
	})
	return at
}

// get returns the item that is equal to it.
func (t *tree) get(it item) (found item, ok bool) {
	l := t.leafOf(it)
	if i, equal := l.search(t.set, it); equal {
		return l.item(i), true
	}
	return item{}, false
}

// insert adds an item. It reports false, and does nothing, if the tree has an equal one.
func (t *tree) insert(it item) bool {
	if last, ok := t.max(); ok && t.last.generation == t.generation && t.last.n < leafItems && t.set.less(last, it) {
		t.last.insertAt(t.last.n, it)
		t.len++
		return true
	}
	b := t.leafOf(it)
	i, equal := b.search(t.set, it)
	if equal {
		return false
	}
	t.put(b, i, it)
	t.len++
	return true
}

// put adds an item at index i of a leaf.
func (t *tree) put(b bounded, i int, it item) {
	last := b.leaf == t.last
	if b.generation != t.generation { // a snapshot may have it
		c := *b.leaf
		c.generation = t.generation
		b.leaf = &c
		t.leaves.ReplaceOrInsert(b)
	}
	left, right := b.leaf, b.leaf
	if left.n == leafItems {
		from := leafItems / 2
		if last && i == leafItems {
			from = leafItems
		}
		right = &leaf{generation: t.generation}
		right.n = copy(right.prefixes[:], left.prefixes[from:])
		copy(right.refs[:], left.refs[from:])
		left.n = from
	}
	if i < left.n || left == right {
		left.insertAt(i, it)
	} else {
		right.insertAt(i-left.n, it)
	}
	if left != right {
		t.leaves.ReplaceOrInsert(bounded{right.item(0), right})
	}
	if last {
		t.last = right
	}
}

// insertAt inserts an item at index i of a leaf that is not full.
func (l *leaf) insertAt(i int, it item) {
	copy(l.prefixes[i+1:l.n+1], l.prefixes[i:l.n])
	copy(l.refs[i+1:l.n+1], l.refs[i:l.n])
	l.prefixes[i], l.refs[i] = it.prefix, it.ref
	l.n++
}

// search returns the index of the first item that is not below it, or l.n if all are, and whether
// the two are equal.
func (l *leaf) search(set *MemRowSet, it item) (i int, equal bool) {
	if l.n == 0 || l.prefixes[l.n-1] < it.prefix {
		return l.n, false
	}
	// The search is branch-free: with random keys every other branch would be mispredicted.
	i = -1 // the prefixes of items [0, i] are below it.prefix
	for left := l.n - i; left > 1; {
		half := left >> 1
		_, below := bits.Sub64(l.prefixes[i+half], it.prefix, 0) // 1 if that prefix is below, else 0
		i += half & -int(below)
		left -= half
	}
	if i++; l.prefixes[i] != it.prefix {
		return i, false
	}
	return l.searchSame(set, i, it)
}

// searchSame is search from item lo on, the first with the prefix of it.
func (l *leaf) searchSame(set *MemRowSet, lo int, it item) (i int, equal bool) {
	hi := l.n
	if l.prefixes[hi-1] == it.prefix && set.less(l.item(hi-1), it) {
		return hi, false
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if l.prefixes[mid] == it.prefix && set.less(l.item(mid), it) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < l.n && l.prefixes[lo] == it.prefix && !set.less(it, l.item(lo))
}

// ascend calls take with all items in ascending order until it returns false.
func (t *tree) ascend(take func(it item) bool) {
	t.leaves.Ascend(func(b bounded) bool { return b.ascend(0, take) })
}

// ascendFrom is ascend for the items from one on.
func (t *tree) ascendFrom(from item, take func(it item) bool) {
	first := t.leafOf(from)
	t.leaves.AscendGreaterOrEqual(first, func(b bounded) bool {
		i := 0
		if b.leaf == first.leaf {
			i, _ = b.search(t.set, from)
		}
		return b.ascend(i, take)
	})
}

// ascend calls take with the items from index i on. It returns false if take did.
func (l *leaf) ascend(i int, take func(it item) bool) bool {
	for ; i < l.n; i++ {
		if !take(l.item(i)) {
			return false
		}
	}
	return true
}

// descend calls take with all items in descending order until it returns false.
func (t *tree) descend(take func(it item) bool) {
	t.leaves.Descend(func(b bounded) bool { return b.descend(b.n-1, take) })
}

// descendFrom is descend for the items from one down.
func (t *tree) descendFrom(from item, take func(it item) bool) {
	first := t.leafOf(from)
	t.leaves.DescendLessOrEqual(first, func(b bounded) bool {
		i := b.n - 1
		if b.leaf == first.leaf {
			end, equal := b.search(t.set, from)
			if i = end; !equal {
				i--
			}
		}
		return b.descend(i, take)
	})
}

// descend calls take with the items from index i down. It returns false if take did.
func (l *leaf) descend(i int, take func(it item) bool) bool {
	for ; i >= 0; i-- {
		if !take(l.item(i)) {
			return false
		}
	}
	return true
}
