package rewrite

import (
	"bytes"
	"math"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/rowset"
)

// head is an input and the position in its current rows.
type head struct {
	in     Input
	storer Storer             // in, if it is one
	keeps  int                // see Keeper
	first  []byte             // of a bounded input until it is read
	rows   *change.Rows       // nil: not read yet
	stored *rowset.StoredRows // rows, if their cells are not read yet
	row    int                // the next row; len(rows.Keys): the next rows must be read
	undo   int                // index in rows.Undo of the first undo of row or a later one
	redo   int
	bytes  int   // of the byte strings of an average row
	used   int64 // the number of the last window of the output that refers to rows
	part   int   // index of the part of rows in that window
	before int64 // the number of the last window that refers to earlier rows
}

// ended reports whether the next rows must be read to know the next key.
func (h *head) ended() bool { return h.rows != nil && h.row == len(h.rows.Keys) }

// key returns the next key of a head that has not ended.
func (h *head) key() []byte {
	if h.rows == nil {
		return h.first
	}
	return h.rows.Keys[h.row]
}

// tree finds the input with the lowest next key: it is a loser tree. Leaf i is heads[i], at
// position len(heads)+i; node n > 0 is the parent of positions 2n and 2n+1. Each node contains the
// head that lost there, so the next winner is found in one comparison for each level. Most
// comparisons are of the first 8 bytes of keys.
//
//	node   1            the winner over all is in losers[0]
//	      / \
//	     2   3
//	    / \ / \
//	    4 5 6 7         leaves 0 to 3
type tree struct {
	heads  []*head
	prefix []uint64 // by head: keyenc.Head of its next key; all ones if it has ended
	losers []int32  // by node
	won    []int32  // memory of build
}

// build makes the tree of the heads after one was added, removed or read.
func (t *tree) build() {
	k := len(t.heads)
	t.prefix, t.losers, t.won = t.prefix[:0], append(t.losers[:0], make([]int32, k)...),
		append(t.won[:0], make([]int32, 2*k)...)
	if k == 0 {
		return
	}
	for i, h := range t.heads {
		t.prefix = append(t.prefix, prefixOf(h))
		t.won[k+i] = int32(i)
	}
	for n := k - 1; n > 0; n-- {
		a, b := t.won[2*n], t.won[2*n+1]
		if t.less(b, a) {
			a, b = b, a
		}
		t.won[n], t.losers[n] = a, b
	}
	t.losers[0] = t.won[1]
}

func prefixOf(h *head) uint64 {
	if h.ended() {
		return math.MaxUint64
	}
	return keyenc.Head(h.key())
}

// first returns the index of the head with the lowest next key; the first one of several.
func (t *tree) first() int32 { return t.losers[0] }

// advance moves the first head, t.heads[i], past its next row.
func (t *tree) advance(i int32) {
	h := t.heads[i]
	h.row++
	t.prefix[i] = prefixOf(h)
	for n := (len(t.heads) + int(i)) / 2; n > 0; n /= 2 {
		if t.less(t.losers[n], i) {
			t.losers[n], i = i, t.losers[n]
		}
	}
	t.losers[0] = i
}

// second returns the head with the lowest next key of all but the first, nil if no other has one.
func (t *tree) second() *head {
	best := int32(-1)
	for n := (len(t.heads) + int(t.losers[0])) / 2; n > 0; n /= 2 {
		if best < 0 || t.less(t.losers[n], best) {
			best = t.losers[n]
		}
	}
	if best < 0 || t.heads[best].ended() {
		return nil
	}
	return t.heads[best]
}

func (t *tree) less(a, b int32) bool {
	if x, y := t.prefix[a], t.prefix[b]; x != y {
		return x < y
	}
	return t.lessKey(a, b)
}

// lessKey compares whole keys. Heads without a next key are last.
func (t *tree) lessKey(a, b int32) bool {
	x, y := t.heads[a], t.heads[b]
	if x.ended() || y.ended() {
		return !x.ended()
	}
	if c := bytes.Compare(x.key(), y.key()); c != 0 {
		return c < 0
	}
	return a < b
}
