package splice

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Edit returns the same list as a loop that copies elements into a new list, and does not touch
// elements outside of its window.
func TestEdit(t *testing.T) {
	r := seedtest.Rand(t)
	for range 2000 {
		n := r.IntN(12)
		list := make([]int, n, n+r.IntN(4))
		for i := range list {
			list[i] = i
		}
		var gone, at, added []int
		for i := range n + 1 {
			for r.IntN(4) == 0 {
				at, added = append(at, i), append(added, 100+len(added))
			}
			if i < n && r.IntN(4) == 0 {
				gone = append(gone, i)
			}
		}
		var want []int
		for i, k := 0, 0; i <= n; i++ {
			for ; k < len(at) && at[k] == i; k++ {
				want = append(want, added[k])
			}
			if i < n && !slices.Contains(gone, i) {
				want = append(want, list[i])
			}
		}
		from, to := Window(n, gone, at)
		must.Equal(t, Edit(slices.Clone(list), gone, added, at), want,
			list, "without", gone, "and with", added, "at", at)
		if moved := len(want) - n; from > to || !slices.Equal(want[:from], list[:from]) ||
			!slices.Equal(want[to+moved:], list[to:]) {
			t.Fatalf("%v without %v and with %v at %v: window %d to %d", list, gone, added, at, from, to)
		}
	}
}
