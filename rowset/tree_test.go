package rowset

import (
	"bytes"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// bounded is a rowset with bounds and nothing else.
func bounded(id uint64, first, last []byte) *DiskRowSet {
	d := &DiskRowSet{}
	d.state.Store(&State{Meta: &Metadata{ID: id, MinKey: first, MaxKey: last}})
	return d
}

func numbers(sets []*DiskRowSet) []uint64 {
	out := []uint64{}
	for _, d := range sets {
		out = append(out, d.Metadata().ID)
	}
	return out
}

func TestTreeMatchesLinearSearch(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Needed(2000, 300)
	// Keys of one or two bytes, some a prefix of others; the empty key is one too.
	key := func(span int) []byte {
		k := []byte{}
		for range r.IntN(3) {
			k = append(k, byte(r.IntN(span)))
		}
		return k
	}
	for range rounds {
		span := 2 + r.IntN(30)
		var sets []*DiskRowSet
		for i := range r.IntN(12) {
			a, b := key(span), key(span)
			if bytes.Compare(a, b) > 0 {
				a, b = b, a
			}
			sets = append(sets, bounded(uint64(i), a, b))
		}
		given := numbers(sets)
		tree := NewTree(sets)
		must.Equal(t, numbers(sets), given, "the caller's list was sorted")
		if !slices.IsSortedFunc(tree.Sets,
			func(a, b *DiskRowSet) int { return bytes.Compare(a.Metadata().MinKey, b.Metadata().MinKey) }) {
			t.Fatal("the rowsets are not by first key")
		}
		var last []byte
		for _, d := range sets {
			if bytes.Compare(d.Metadata().MaxKey, last) > 0 {
				last = d.Metadata().MaxKey
			}
		}
		must.Equal(t, tree.Last(), last, "last key")
		kept := bounded(99, nil, nil)
		for range 10 {
			k := key(span)
			got := tree.Candidates([]*DiskRowSet{kept}, k)
			must.Equal(t, got[0] == kept, true, "Candidates does not append")
			ids := numbers(got[1:])
			slices.Sort(ids)
			want := []uint64{}
			for _, d := range sets {
				if m := d.Metadata(); bytes.Compare(m.MinKey, k) <= 0 && bytes.Compare(k, m.MaxKey) <= 0 {
					want = append(want, m.ID)
				}
			}
			must.Equal(t, ids, want, "key", k, "rowsets")
			lower, upper := key(span), key(span)
			if r.IntN(4) == 0 {
				lower = nil
			}
			if r.IntN(4) == 0 {
				upper = nil
			}
			want = []uint64{}
			for _, d := range tree.Sets {
				if m := d.Metadata(); (lower == nil || bytes.Compare(m.MaxKey, lower) >= 0) && (upper == nil ||
					bytes.Compare(m.MinKey, upper) < 0) {
					want = append(want, m.ID)
				}
			}
			must.Equal(t, numbers(tree.Range(nil, lower, upper)), want, "range", lower, upper, "rowsets")
			some, ok := tree.Disjoint(lower, upper)
			if ok && !slices.Equal(numbers(some), want) {
				t.Fatalf("disjoint rowsets of [%x, %x): %v, want %v", lower, upper, numbers(some), want)
			}
			must.Equal(t, ok, disjoint(tree.Sets), "disjoint")
		}
	}
}

// disjoint compares each rowset with each other.
func disjoint(sets []*DiskRowSet) bool {
	for i, a := range sets {
		for _, b := range sets[i+1:] {
			if bytes.Compare(a.Metadata().MinKey, b.Metadata().MaxKey) <= 0 &&
				bytes.Compare(b.Metadata().MinKey, a.Metadata().MaxKey) <= 0 {
				return false
			}
		}
	}
	return true
}

// Rowsets that do not overlap are looked up by binary search: only the rowset whose bounds,
// inclusive, contain the key is a candidate.
func TestTreeBoundsAreInclusive(t *testing.T) {
	tree := NewTree([]*DiskRowSet{bounded(1, []byte("m"), []byte("p")), bounded(0, []byte("a"), []byte("f"))})
	for key, want := range map[string][]uint64{"a": {0}, "f": {0}, "f\x00": {}, "l": {}, "m": {1}, "o": {1},
		"p": {1}, "p\x00": {}, "": {}, "z": {}} {
		must.Equal(t, numbers(tree.Candidates(nil, []byte(key))), want, key)
	}
	must.Equal(t, numbers(tree.Range(nil, []byte("f"), []byte("m"))), []uint64{0}, "f, m")
}

// The rowset with the greatest first key need not have the greatest last key.
func TestTreeLastIsTheGreatestMaxKey(t *testing.T) {
	if last := NewTree(nil).Last(); last != nil {
		t.Errorf("of no rowset: %q", last)
	}
	tree := NewTree([]*DiskRowSet{bounded(0, []byte("b"), []byte("c")), bounded(1, []byte("a"), []byte("x")),
		bounded(2, []byte("d"), []byte("e"))})
	must.Equal(t, string(tree.Last()), "x", "the last key")
}
