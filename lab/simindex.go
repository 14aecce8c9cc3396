package lab

import (
	"slices"
	"sort"
)

// simIndex finds the rowsets over a key. It is a tree over the first keys of the rowsets: the
// leaves are the intervals between two of them, and a rowset is in the largest nodes of which it
// spans each leaf, at most two of a level. So the rowsets over a key are those of the nodes on the
// way from its leaf to the root, except for some that end within the leaf.
type simIndex struct {
	firsts []int64     // ascending
	nodes  []indexNode // node i is above nodes 2i and 2i+1; the leaves are the second half
}

type indexNode struct {
	sets []*simSet
	sums []float64 // of the weights of sets up to this one
}

func newSimIndex(sets []*simSet) *simIndex {
	x := new(simIndex)
	for _, set := range sets {
		x.firsts = append(x.firsts, keyFrom(set.min))
	}
	x.firsts = slices.Compact(x.firsts)
	x.nodes = make([]indexNode, 2*len(x.firsts))
	for _, set := range sets {
		if set.live == 0 {
			continue
		}
		min, max := keyFrom(set.min), keyFrom(set.max)
		weight := float64(set.live) / float64(max-min+1)
		from, to := x.leaf(min)+len(x.firsts), x.leaf(max)+len(x.firsts)+1
		for ; from < to; from, to = from/2, to/2 {
			if from%2 == 1 {
				x.nodes[from].add(set, weight)
				from++
			}
			if to%2 == 1 {
				to--
				x.nodes[to].add(set, weight)
			}
		}
	}
	return x
}

func (n *indexNode) add(set *simSet, weight float64) {
	n.sets, n.sums = append(n.sets, set), append(n.sums, n.sum()+weight)
}

func (n *indexNode) sum() float64 {
	if len(n.sums) == 0 {
		return 0
	}
	return n.sums[len(n.sums)-1]
}

// leaf returns the index of the last first key that is not above key; 0 if there is none.
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
		total += x.nodes[i].sum()
	}
	var set *simSet
	// A rowset that ends before the key is in its leaf too. After some draws it will do.
	for range 8 {
		if set = x.draw(leaf, r.Float64()*total); set != nil && keyFrom(set.max) >= key {
			break
		}
	}
	return set
}

// draw returns the rowset at a point of the sums of weights from a leaf to the root.
func (x *simIndex) draw(leaf int, at float64) *simSet {
	var last *simSet
	for i := leaf; i > 0; i /= 2 {
		n := &x.nodes[i]
		if len(n.sets) == 0 {
			continue
		}
		if k := sort.SearchFloat64s(n.sums, at); k < len(n.sets) {
			return n.sets[k]
		}
		at -= n.sum()
		last = n.sets[len(n.sets)-1]
	}
	return last // at is above all sums by a rounding error
}
