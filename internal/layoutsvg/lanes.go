package layoutsvg

import "bytes"

// laneTree finds the lowest lane that is free. It is a complete binary tree over lanes: each node
// has the smallest last key in its lanes.
type laneTree struct {
	ends  []end // from 1 on; node i has the children 2i and 2i+1
	lanes int   // a power of two
}

// end is the last key of the boxes in a lane; an unused lane ends before every key.
type end struct {
	key  []byte
	used bool
}

func (e end) before(key []byte) bool { return !e.used || bytes.Compare(e.key, key) < 0 }

// newLaneTree returns a tree of at least n lanes, all unused.
func newLaneTree(n int) *laneTree {
	t := &laneTree{lanes: 1}
	for t.lanes < n {
		t.lanes *= 2
	}
	t.ends = make([]end, 2*t.lanes)
	return t
}

// lowest returns the lowest lane that ends before a key. There is one.
func (t *laneTree) lowest(key []byte) int {
	i := 1
	for i < t.lanes {
		if i *= 2; !t.ends[i].before(key) {
			i++
		}
	}
	return i - t.lanes
}

// set makes a lane end with a key.
func (t *laneTree) set(lane int, key []byte) {
	i := lane + t.lanes
	t.ends[i] = end{key, true}
	for i /= 2; i > 0; i /= 2 {
		t.ends[i] = t.ends[2*i]
		if right := t.ends[2*i+1]; !right.used || t.ends[i].used && bytes.Compare(right.key, t.ends[i].key) < 0 {
			t.ends[i] = right
		}
	}
}
