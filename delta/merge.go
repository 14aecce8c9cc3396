package delta

import (
	"cmp"
	"container/heap"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// MergeRedos hands every delta of files of redos, which come oldest first, to use in the order of
// one such file: by row, then by timestamp, those of one row and timestamp in the order of the
// files and of the changes in each. One cblock a file is in memory. A delta holds during the call,
// its list as long as it is referenced. Lists are checked against s as in Tracker.Schema. The first
// error of use ends it and is returned. Errors: ErrCorrupt. Source: tablet spec §14.1.
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

// mergeHead is a file of a merge; delta pos of its block is its next one.
type mergeHead struct {
	cursor
	age int // index of the file: of equal keys the older file's comes first
}

// step goes on to the file's next delta. Errors: ErrCorrupt, also where the file is not in order.
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

// head is the delta key of the next one.
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
