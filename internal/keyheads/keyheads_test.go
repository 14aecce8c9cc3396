package keyheads

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
)

// randomKeys returns n ascending keys. They begin alike, are spread evenly or in clumps, and have many
// equal heads if tail is long.
func randomKeys(r *rand.Rand, n int) (keys [][]byte) {
	common := bytes.Repeat([]byte{'p'}, r.IntN(12))
	spread, tail := 1+r.IntN(9), r.IntN(6)
	for range n {
		k := bytes.Clone(common)
		for range r.IntN(spread) + 1 {
			k = append(k, byte(r.IntN(1+r.IntN(256))))
		}
		if tail > 0 {
			k = append(k, "--------"[:8-r.IntN(2)]...)
			for range r.IntN(tail) {
				k = append(k, byte(r.IntN(3)))
			}
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// Find agrees with a search that compares whole keys, and compares keys only if their heads are equal.
func TestFindReturnsTheLastKeyAtOrBefore(t *testing.T) {
	r := seedtest.Rand(t)
	for _, n := range []int{1, 2, 3, 17, 63, 64, 65, 200, 3000} {
		for range 40 {
			keys := randomKeys(r, n)
			h := Make(n, func(i int) []byte { return keys[i] })
			if r.IntN(2) == 0 {
				h.Detach()
			}
			for range 50 {
				probe := bytes.Clone(keys[r.IntN(n)])
				switch r.IntN(4) {
				case 0:
					probe = probe[:r.IntN(len(probe)+1)]
				case 1:
					probe = append(probe, byte(r.IntN(256)))
				case 2:
					probe[r.IntN(len(probe))] += byte(1 + r.IntN(255))
				}
				if bytes.Compare(probe, keys[0]) < 0 {
					probe = keys[0]
				}
				got, err := h.Find(probe, func(i int) (bool, error) { return bytes.Compare(keys[i], probe) <= 0, nil })
				must.Do(t, err)
				want := sort.Search(n, func(i int) bool { return bytes.Compare(keys[i], probe) > 0 }) - 1
				if got != want {
					t.Fatalf("%d keys: %q is at %d, want %d", n, probe, got, want)
				}
			}
		}
	}
}

func TestFindOfHeadsWithoutKeys(t *testing.T) {
	var keys [][]byte
	var heads []uint64
	for i := range 300 {
		k := []byte{byte(i >> 6), byte(i << 2), 0, 0, 0, 0, 0, 0, byte(i)}
		keys, heads = append(keys, k), append(heads, keyenc.Head(k))
	}
	h := Of(heads)
	for i, k := range keys {
		got, err := h.Find(k, func(i int) (bool, error) { return bytes.Compare(keys[i], k) <= 0, nil })
		must.Do(t, err)
		must.Equal(t, got, i, "key")
	}
}

func TestFindReturnsTheErrorOfAComparison(t *testing.T) {
	failed := errors.New("failed")
	keys := []string{"a", "b.......1", "b.......2", "c"}
	h := Make(len(keys), func(i int) []byte { return []byte(keys[i]) })
	_, err := h.Find([]byte("b.......2"), func(int) (bool, error) { return false, failed })
	must.Equal(t, errors.Is(err, failed), true, "the error")
}
