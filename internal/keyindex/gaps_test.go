package keyindex

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// TestGapsHideNoRow adds the gaps that scans of a set of rows find, and compares the first row of a
// narrowed range with the answer of the range.
func TestGapsHideNoRow(t *testing.T) {
	rng := seedtest.Rand(t)
	narrowed := 0
	for range 200 {
		var g Gaps
		rows := map[string]bool{}
		first := func(lower, upper []byte, descending bool) []byte {
			var found []byte
			for r := range rows {
				k := []byte(r)
				if bytes.Compare(k, lower) >= 0 && below(k, upper) &&
					(found == nil || bytes.Compare(k, found) < 0 != descending) {
					found = k
				}
			}
			return found
		}
		for range 100 {
			key := fmt.Appendf(nil, "%02d", rng.IntN(100))
			if rng.IntN(2) == 0 {
				delete(rows, string(key))
			} else {
				rows[string(key)] = true
				g.Fill(key)
			}
			lower, upper, descending := []byte(nil), []byte(nil), rng.IntN(2) == 0
			if rng.IntN(2) == 0 {
				lower = fmt.Appendf(nil, "%02d", rng.IntN(100))
			}
			if rng.IntN(2) == 0 {
				upper = fmt.Appendf(nil, "%02d", rng.IntN(100))
			}
			want := first(lower, upper, descending)
			l, u := g.Narrow(lower, upper, descending)
			must.Equal(t, string(first(l, u, descending)), string(want), "first row of", lower, upper, "as", l, u)
			if !bytes.Equal(l, lower) || !bytes.Equal(u, upper) {
				narrowed++
			}
			switch {
			case want == nil:
				g.Add(lower, upper)
			case descending:
				g.Add(append(bytes.Clone(want), 0), upper)
			default:
				g.Add(lower, want)
			}
			if len(g.list) > mostGaps {
				t.Fatalf("%d gaps", len(g.list))
			}
		}
	}
	if narrowed < 1000 {
		t.Errorf("%d ranges were narrowed", narrowed)
	}
}
