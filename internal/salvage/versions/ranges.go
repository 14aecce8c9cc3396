package versions

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// LoggedRange is an operation of the log that deletes all rows with keys in [Lower, Upper). It comes
// before the operations on rows of its write batch.
type LoggedRange struct {
	Lower, Upper []byte // an empty Upper = no bound
	TS           mvcc.Timestamp
	LSN          lsn.LSN
}

// Ranges finds the ranges that have a key. Merges use it one after the other, in key order. It takes
// time in proportion to the ranges and the keys, with a logarithmic factor, however much ranges overlap.
type Ranges struct {
	rest   []LoggedRange              // which begin after the last key, by Lower
	begun  rangeHeap                  // which have begun and not ended, the first end at the top
	active *btree.BTreeG[LoggedRange] // the same, by LSN
}

const rangeTreeDegree = 32

// NewRanges returns the Ranges of deletes of the log, which it sorts.
func NewRanges(all []LoggedRange) *Ranges {
	slices.SortFunc(all, func(a, b LoggedRange) int { return bytes.Compare(a.Lower, b.Lower) })
	return &Ranges{rest: all, active: btree.NewG(rangeTreeDegree, func(a, b LoggedRange) bool {
		return cmp.Or(cmp.Compare(a.LSN, b.LSN), bytes.Compare(a.Lower, b.Lower), bytes.Compare(a.Upper, b.Upper)) < 0
	})}
}

// move moves to a key, which is not below the one before.
func (r *Ranges) move(key []byte) {
	for len(r.rest) > 0 && bytes.Compare(r.rest[0].Lower, key) <= 0 {
		heap.Push(&r.begun, r.rest[0])
		r.active.ReplaceOrInsert(r.rest[0])
		r.rest = r.rest[1:]
	}
	for len(r.begun) > 0 && len(r.begun[0].Upper) > 0 && bytes.Compare(r.begun[0].Upper, key) <= 0 {
		r.active.Delete(heap.Pop(&r.begun).(LoggedRange))
	}
}

// add adds to ops, the operations on a key, the deletes of ranges that may have an effect on one of rows:
// the first one after each operation, and the first one that each row does not contain. A row that was
// deleted by it is absent until the next operation.
func (r *Ranges) add(key []byte, ops []LoggedOp, rows []*history) []LoggedOp {
	if r == nil {
		return ops
	}
	if r.move(key); r.active.Len() == 0 {
		return ops
	}
	var deletes []LoggedOp
	first := func(after lsn.LSN) {
		r.active.AscendGreaterOrEqual(LoggedRange{LSN: after + 1}, func(d LoggedRange) bool {
			deletes = append(deletes, LoggedOp{Kind: change.Delete, Key: key, TS: d.TS, LSN: d.LSN})
			return false
		})
	}
	for _, row := range rows {
		first(row.set.IncludedLSN)
	}
	for i := range ops {
		first(ops[i].LSN)
	}
	if len(deletes) == 0 {
		return ops
	}
	all := append(deletes, ops...) // a delete comes before the operations of its write batch
	slices.SortStableFunc(all, func(a, b LoggedOp) int { return cmp.Compare(a.LSN, b.LSN) })
	return all
}

// rangeHeap has the range that ends first at the top.
type rangeHeap []LoggedRange

func (h rangeHeap) Len() int { return len(h) }
func (h rangeHeap) Less(i, j int) bool {
	a, b := h[i].Upper, h[j].Upper
	return len(a) > 0 && (len(b) == 0 || bytes.Compare(a, b) < 0)
}
func (h rangeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *rangeHeap) Push(x any)   { *h = append(*h, x.(LoggedRange)) }
func (h *rangeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
