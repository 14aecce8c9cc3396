package encoding

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/schema"
)

// Whatever is guessed, the search finds the first value that is not below the target.
func TestSearchNearFindsTheFirstFromAnyGuess(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n++ {
		values := make([]int, n)
		for i := range values {
			values[i] = 2 * r.IntN(2*n)
		}
		slices.Sort(values)
		for target := -1; target <= 4*n; target++ {
			want, exact := slices.BinarySearch(values, target)
			for guess := range n {
				probes := 0
				i, same := searchNear(n, guess, func(i int) int {
					probes++
					return values[i] - target
				})
				if i != want || same != exact {
					t.Fatalf("%d in %v from %d: got %d, %t, want %d, %t", target, values, guess, i, same, want, exact)
				}
				if near := guess == want || guess == want-1; near && probes > 2 || probes > 10 {
					t.Fatalf("%d in %v from %d: %d comparisons", target, values, guess, probes)
				}
			}
		}
	}
}

// Integers with equal distances are where they are guessed; any others are guessed to be in range.
func TestGuessIsExactForEqualDistances(t *testing.T) {
	le := binary.LittleEndian
	cells := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = le.AppendUint64(b, v)
		}
		return b
	}
	const n = 1024
	var values []uint64
	for i := range uint64(n) {
		values = append(values, 3*i-900)
	}
	for i, v := range values {
		if got := guess(schema.Int64, cells(values...), n, cells(v)); got != i {
			t.Fatalf("guess %d, want %d", got, i)
		}
	}
	extreme := []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	for _, typ := range []schema.Type{schema.Int64, schema.Uint64, schema.Timestamp, schema.Double} {
		for _, a := range extreme {
			for _, b := range extreme {
				for _, x := range extreme {
					if got := guess(typ, cells(a, b), 2, cells(x)); got < 0 || got > 1 {
						t.Fatalf("%s: guess %d of %x in %x, %x", typ, got, x, a, b)
					}
				}
			}
		}
	}
}
