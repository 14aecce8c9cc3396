package arena

import (
	"math/bits"
	"testing"
)

// Skip finds each element of a list from its last one, in few steps.
func TestSkipFindsEachElement(t *testing.T) {
	const n = 5000
	list := make([]Skips, n+1) // by Ref; 0 is none
	of := func(r Ref) Skips { return list[r] }
	for r := Ref(1); r <= n; r++ {
		b := make([]byte, SkipsLen)
		SkipsAfter(r-1, of).Put(b)
		list[r] = SkipsIn(b)
	}
	for from := Ref(1); from <= n; from += 97 {
		for want := Ref(1); want <= from; want++ {
			steps := 0
			got := Skip(from, func(r Ref) Skips { steps++; return list[r] }, func(r Ref) bool { return r >= want })
			if limit := 3 * (bits.Len(uint(from-want)) + 1); got != want || steps > limit {
				t.Fatalf("from %d: element %d in %d steps, want %d in at most %d", from, got, steps, want, limit)
			}
		}
	}
}
