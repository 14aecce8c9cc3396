package keyindex

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

func TestRangesAreUnionsOfWhatWasAdded(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 500 {
		var rs Ranges
		var in [12]bool
		for range rng.IntN(8) {
			from, to := rng.IntN(10), rng.IntN(14)
			upper := fmt.Appendf(nil, "%02d", to)
			if to >= 12 {
				upper = nil
			}
			before := fmt.Sprint(rs)
			next := rs.With(fmt.Appendf(nil, "%02d", from), upper)
			must.Equal(t, fmt.Sprint(rs), before, "ranges that another range was added to")
			rs = next
			for k := from; k < min(to, len(in)); k++ {
				in[k] = true
			}
		}
		for k := range in {
			must.Equal(t, rs.Contain(fmt.Appendf(nil, "%02d", k)), in[k], "key", k, "in", rs)
		}
		var without [][]byte
		for k := range in {
			if in[k] && rng.IntN(3) == 0 {
				without, in[k] = append(without, fmt.Appendf(nil, "%02d", k)), false
			}
		}
		rs = rs.Without(without)
		for k := range in {
			must.Equal(t, rs.Contain(fmt.Appendf(nil, "%02d", k)), in[k], "key", k, "in", rs)
			must.Equal(t, rs.Contain(fmt.Appendf(nil, "%02d\x00", k)), in[k] || slices.ContainsFunc(without, func(w []byte) bool {
				return string(w) == fmt.Sprintf("%02d", k)
			}), "the key after", k, "in", rs)
		}
		for i := 1; i < len(rs); i++ {
			if rs[i-1].Upper == nil || bytes.Compare(rs[i-1].Upper, rs[i].Lower) >= 0 {
				t.Fatalf("%q are not disjoint", rs)
			}
		}
	}
}
