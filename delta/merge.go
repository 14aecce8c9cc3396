package delta

import (
	"cmp"
	"container/heap"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// MergeRedos calls use for every delta of several redo files, given oldest first, in the order of
// one merged file: by row, then by timestamp; deltas of one row and timestamp in the order of the
// files and within them. It keeps one cblock per file in memory. A delta is valid during the call,
// its list as long as it is referenced. Lists are checked against s as described at Tracker.Schema.
// MergeRedos stops at the first error of use and returns it. Errors: ErrCorrupt. Source: tablet
// spec §14.1.
func MergeRedos(files []*File, s *schema.Schema, use func(d change.Delta) error) error {
	if s == nil {
		s = noSchema
	}
	heads := make(mergeHeap, 0, len(files))
	for i, f := range files {
		h := &mergeHead{cursor: cursor{file: f, schema: s}, age: i}
		more, err := h.load()
		if err != nil {
			return err
		}
		if more {
			heads = append(heads, h)
		}
	}
	heap.Init(&heads)
	for len(heads) > 0 {
		h := heads[0]
		if err := use(h.block.delta(h.pos)); err != nil {
			return err
		}
		more, err := h.step()
		switch {
		case err != nil:
			return err
		case more:
			heap.Fix(&heads, 0)
		default:
			heap.Pop(&heads)
		}
	}
	return nil
}

// mergeHead is a file of a merge; its next delta is delta pos of its block.
type mergeHead struct {
	cursor
	age int // index of the file: of equal keys, that of the older file comes first
}

// step advances to the next delta of the file. Errors: ErrCorrupt, also if the file is not in
// order.
func (h *mergeHead) step() (more bool, err error) {
	row, ts := h.head()
	if h.pos++; h.pos == len(h.block.rows) {
		if more, err = h.load(); !more || err != nil {
			return false, err
		}
	}
	if r, t := h.head(); r == row && t < ts {
		return false, h.file.damaged(fault.Corruptf("row %d: change at %d after one at %d", row, uint64(t), uint64(ts)))
	}
	return true, nil
}

// head returns the delta key of the next delta.
func (h *mergeHead) head() (uint32, mvcc.Timestamp) { return h.block.rows[h.pos], h.block.ts[h.pos] }

// mergeHeap has the file with the next delta on top.
type mergeHeap []*mergeHead

func (m mergeHeap) Len() int { return len(m) }

func (m mergeHeap) Less(i, j int) bool {
	rowA, a := m[i].head()
	rowB, b := m[j].head()
	return cmp.Or(cmp.Compare(rowA, rowB), cmp.Compare(a, b), cmp.Compare(m[i].age, m[j].age)) < 0
}

func (m mergeHeap) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

func (m *mergeHeap) Push(x any) { *m = append(*m, x.(*mergeHead)) }

func (m *mergeHeap) Pop() any {
	old := *m
	last := len(old) - 1
	h := old[last]
	old[last] = nil
	*m = old[:last]
	return h
}
