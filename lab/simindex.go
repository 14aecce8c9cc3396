package lab

import (
	"slices"
	"sort"
)

// simIndex finds the rowsets over a key. It is a tree over the first keys of the rowsets: the
// leaves are the intervals between two of them, and a rowset is in the largest nodes of which it
// spans each leaf, at most two of a level. So the rowsets over a key are in the nodes on the way
// from its leaf to the root, except for some that end within the leaf.
//
//	node 1: a                           a is over all keys, b over keys before the third first
//	node 2: b       node 3              key, c over the interval after it. The rowsets over a
//	node 4  node 5  node 6: c  node 7   key of leaf 5 is in the nodes 5, 2 and 1: b and a
//
// Of many rowsets, a few newer ones are not in the tree, so that not each flush makes a new one.
type simIndex struct {
	firsts []int64 // ascending
	// node i has sets[nodes[i]:nodes[i+1]] and is above nodes 2i and 2i+1; the leaves are the
	// second half
	nodes []int32
	sets  []*simSet  // by node
	sums  []float64  // of the weights of the sets of a node up to this one
	spans []leafSpan // memory of build
	newer []*simSet
}

// leafSpan is the nodes of the leaves of a rowset.
type leafSpan struct{ from, to int32 }

// perNewer is the number of rowsets in the tree for each rowset outside of it.
const perNewer = 256

// build makes the tree of all rowsets, which are ordered by first key.
func (x *simIndex) build(sets []*simSet) {
	x.firsts, x.spans, x.newer = x.firsts[:0], x.spans[:0], x.newer[:0]
	for _, set := range sets {
		first := keyFrom(set.min)
		if n := len(x.firsts); n == 0 || x.firsts[n-1] != first {
			x.firsts = append(x.firsts, first)
		}
		x.spans = append(x.spans, leafSpan{from: int32(len(x.firsts) - 1)})
	}
	x.nodes = append(x.nodes[:0], make([]int32, 2*len(x.firsts)+1)...)
	for i, set := range sets {
		if set.live == 0 {
			continue // its span is empty
		}
		s := &x.spans[i]
		s.from, s.to = s.from+int32(len(x.firsts)), int32(x.leaf(keyFrom(set.max))+len(x.firsts)+1)
		s.nodes(func(node int32) { x.nodes[node+1]++ })
	}
	for i := range x.nodes[1:] {
		x.nodes[i+1] += x.nodes[i]
	}
	n := int(x.nodes[len(x.nodes)-1])
	x.sets, x.sums = slices.Grow(x.sets[:0], n)[:n], slices.Grow(x.sums[:0], n)[:n]
	used := make([]int32, len(x.nodes))
	for i, set := range sets {
		weight := set.weight()
		x.spans[i].nodes(func(node int32) {
			at := x.nodes[node] + used[node]
			x.sets[at], x.sums[at] = set, weight
			if used[node] > 0 {
				x.sums[at] += x.sums[at-1]
			}
			used[node]++
		})
	}
}

// nodes calls fn for the largest nodes above all leaves of a span.
func (s leafSpan) nodes(fn func(node int32)) {
	for from, to := s.from, s.to; from < to; from, to = from/2, to/2 {
		if from%2 == 1 {
			fn(from)
			from++
		}
		if to%2 == 1 {
			to--
			fn(to)
		}
	}
}

// add adds rowsets next to the tree. ok is false if they would be too many, and a new tree is
// needed.
func (x *simIndex) add(sets []*simSet) (ok bool) {
	if len(x.newer)+len(sets) > len(x.spans)/perNewer {
		return false
	}
	x.newer = append(x.newer, sets...)
	return true
}

// weight returns the rows of a rowset for each key.
func (s *simSet) weight() float64 { return float64(s.live) / float64(keyFrom(s.max)-keyFrom(s.min)+1) }

// leaf returns the index of the last first key that is not above key. It returns 0 if all first
// keys are above key.
func (x *simIndex) leaf(key int64) int {
	return max(0, sort.Search(len(x.firsts), func(i int) bool { return x.firsts[i] > key })-1)
}

// rowset draws the rowset that has the row of a key: nil if no rowset is near it.
func (x *simIndex) rowset(key int64, r *random) *simSet {
	if len(x.firsts) == 0 {
		return nil
	}
	total := 0.0
	leaf := x.leaf(key) + len(x.firsts)
	for i := leaf; i > 0; i /= 2 {
		_, sums := x.node(i)
		total += last(sums)
	}
	for _, set := range x.newer {
		total += set.weightOver(key)
	}
	var set *simSet
	// A rowset that ends before the key is in its leaf too. After some draws it will do.
	for range 8 {
		if set = x.draw(leaf, key, r.Float64()*total); set != nil && keyFrom(set.max) >= key {
			break
		}
	}
	return set
}

func (x *simIndex) node(i int) (sets []*simSet, sums []float64) {
	from, to := x.nodes[i], x.nodes[i+1]
	return x.sets[from:to], x.sums[from:to]
}

func last(sums []float64) float64 {
	if len(sums) == 0 {
		return 0
	}
	return sums[len(sums)-1]
}

// weightOver returns the weight of a rowset that is over a key, 0 if it is not.
func (s *simSet) weightOver(key int64) float64 {
	if keyFrom(s.min) > key || keyFrom(s.max) < key {
		return 0
	}
	return s.weight()
}

// draw returns the rowset at a point of the sums of weights from a leaf to the root and over the
// newer rowsets.
func (x *simIndex) draw(leaf int, key int64, at float64) *simSet {
	var latest *simSet
	for i := leaf; i > 0; i /= 2 {
		sets, sums := x.node(i)
		if len(sets) == 0 {
			continue
		}
		if k := sort.SearchFloat64s(sums, at); k < len(sets) {
			return sets[k]
		}
		at -= last(sums)
		latest = sets[len(sets)-1]
	}
	for _, set := range x.newer {
		if w := set.weightOver(key); w > 0 {
			if at <= w {
				return set
			}
			at -= w
			latest = set
		}
	}
	return latest // at is above all sums by a rounding error
}
