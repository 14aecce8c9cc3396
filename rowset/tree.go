package rowset

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/oribi-db/oribi/keyenc"
)

// Tree finds rowsets by key. It is immutable: a change of the set makes a new one.
//
// Rowsets are ordered by first key. Next to each is the greatest last key of it and all rowsets
// before it. A lookup finds the last rowset that begins at or before the key by binary search, then
// walks back while that greatest last key reaches the key. This takes one step where rowsets do not
// overlap, otherwise as many as overlap. This is simpler than Kudu's interval tree and as fast on
// layouts after compactions.
type Tree struct {
	Sets     []*DiskRowSet // by first key, those with equal ones by ID
	Bytes    int64         // of the files of Sets, without row files
	first    [][]byte      // first[i] is the first key of Sets[i]
	heads    []uint64      // of first: most comparisons need no more
	last     [][]byte      // last[i] is the last key of Sets[i]
	reach    [][]byte      // reach[i] is the greatest last key of Sets[:i+1]
	overlaps bool          // some of Sets overlap
}

// NewTree orders rowsets. It takes no references.
func NewTree(sets []*DiskRowSet) *Tree {
	t := &Tree{Sets: append([]*DiskRowSet(nil), sets...), reach: make([][]byte, len(sets))}
	slices.SortFunc(t.Sets, func(a, b *DiskRowSet) int {
		x, y := a.Metadata(), b.Metadata()
		return cmp.Or(bytes.Compare(x.MinKey, y.MinKey), cmp.Compare(x.ID, y.ID))
	})
	var last []byte
	for i, d := range t.Sets {
		m := d.Metadata()
		t.overlaps = t.overlaps || i > 0 && bytes.Compare(m.MinKey, last) <= 0
		if i == 0 || bytes.Compare(m.MaxKey, last) > 0 {
			last = m.MaxKey
		}
		t.reach[i] = last
		t.Bytes += m.Bytes - m.RowFileBytes
		t.first, t.last = append(t.first, m.MinKey), append(t.last, m.MaxKey)
		t.heads = append(t.heads, keyenc.Head(m.MinKey))
	}
	return t
}

// Last returns the greatest key of all rowsets, or nil without rowsets.
func (t *Tree) Last() []byte {
	if len(t.reach) == 0 {
		return nil
	}
	return t.reach[len(t.reach)-1]
}

// Candidates appends the rowsets whose bounds, both inclusive, contain key.
func (t *Tree) Candidates(dst []*DiskRowSet, key []byte) []*DiskRowSet {
	for i := t.begun(key) - 1; i >= 0 && bytes.Compare(t.reach[i], key) >= 0; i-- {
		if bytes.Compare(t.last[i], key) >= 0 {
			dst = append(dst, t.Sets[i])
		}
	}
	return dst
}

// begun returns the number of rowsets whose first key is at or before key.
func (t *Tree) begun(key []byte) int {
	head := keyenc.Head(key)
	lo, hi := 0, len(t.heads)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if h := t.heads[mid]; h < head || h == head && bytes.Compare(t.first[mid], key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Range appends the rowsets whose bounds intersect [lower, upper), in the order of their first
// keys; a nil bound is open.
func (t *Tree) Range(dst []*DiskRowSet, lower, upper []byte) []*DiskRowSet {
	for _, d := range t.Sets {
		if upper != nil && bytes.Compare(d.Metadata().MinKey, upper) >= 0 {
			break
		}
		if lower == nil || bytes.Compare(d.Metadata().MaxKey, lower) >= 0 {
			dst = append(dst, d)
		}
	}
	return dst
}

// Disjoint returns what Range does, as a part of Sets, if no rowsets of the tree overlap; otherwise
// ok is false.
func (t *Tree) Disjoint(lower, upper []byte) (sets []*DiskRowSet, ok bool) {
	if t.overlaps {
		return nil, false
	}
	from, to := 0, len(t.Sets)
	if lower != nil {
		from = sort.Search(to, func(i int) bool { return bytes.Compare(t.reach[i], lower) >= 0 })
	}
	if upper != nil {
		to = max(from, sort.Search(to, func(i int) bool {
			return bytes.Compare(t.Sets[i].Metadata().MinKey, upper) >= 0
		}))
	}
	return t.Sets[from:to:to], true
}
