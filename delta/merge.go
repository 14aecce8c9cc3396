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
			h.begin()
			heads = append(heads, h)
		}
	}
	heap.Init(&heads)
	for len(heads) > 0 {
		h := heads[0]
		if err := use(change.Delta{Row: h.row, TS: h.ts, List: h.block.list(h.delta)}); err != nil {
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

// mergeHead is a file of a merge.
type mergeHead struct {
	cursor
	age   int // index of the file: of equal keys, the older file's comes first
	delta int // the next one, in entry pos of the block
	end   int // of the entry
	row   uint32
	ts    mvcc.Timestamp
}

// begin moves to the first delta of entry pos.
func (h *mergeHead) begin() {
	h.delta, h.end = h.block.of(h.pos)
	h.row, h.ts = h.block.row(h.pos), h.block.ts(h.delta)
}

// step advances to the next delta of the file. Errors: ErrCorrupt, also if the file is not in
// order.
func (h *mergeHead) step() (more bool, err error) {
	row, ts := h.row, h.ts
	if h.delta++; h.delta < h.end {
		h.ts = h.block.ts(h.delta)
	} else {
		if h.pos++; h.pos == h.block.entries {
			if more, err = h.load(); !more || err != nil {
				return false, err
			}
		}
		h.begin()
	}
	if h.row == row && h.ts < ts {
		return false, h.file.damaged(fault.Corruptf("row %d: change at %d after one at %d", row, uint64(h.ts),
			uint64(ts)))
	}
	return true, nil
}

// mergeHeap has the file with the next delta on top.
type mergeHeap []*mergeHead

func (m mergeHeap) Len() int { return len(m) }

func (m mergeHeap) Less(i, j int) bool {
	a, b := m[i], m[j]
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.ts, b.ts), cmp.Compare(a.age, b.age)) < 0
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
