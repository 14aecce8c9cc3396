package compaction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestHeightsAgreeWithCounting compares Heights with counting the rowsets over each key.
func TestHeightsAgreeWithCounting(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var l Layout
		for id := range uint64(random.IntN(40)) {
			first := random.IntN(30)
			last := first + random.IntN(1+random.IntN(30))
			l.RowSets = append(l.RowSets,
				RowSetInfo{ID: id, MinKey: fmt.Appendf(nil, "%02d", first), MaxKey: fmt.Appendf(nil, "%02d", last)})
		}
		slices.SortStableFunc(l.RowSets, func(a, b RowSetInfo) int { return slices.Compare(a.MinKey, b.MinKey) })
		got := Heights(l)
		for i, r := range l.RowSets {
			want := 0
			for key := range 60 {
				k, n := fmt.Sprintf("%02d", key), 0
				if k < string(r.MinKey) || k > string(r.MaxKey) {
					continue
				}
				for _, o := range l.RowSets {
					if string(o.MinKey) <= k && k <= string(o.MaxKey) {
						n++
					}
				}
				want = max(want, n)
			}
			must.Equal(t, got[i], want, "rowset", i, "of", l.RowSets, "height")
		}
	}
}

func TestHeightsOfMalformedRowSets(t *testing.T) {
	l := Layout{RowSets: []RowSetInfo{{MinKey: []byte("b"), MaxKey: []byte("a")},
		{MinKey: []byte("c"), MaxKey: []byte("d")}}}
	if got := Heights(l); got[0] != 0 || got[1] != 1 {
		t.Error(got)
	}
}
