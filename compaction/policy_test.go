package compaction

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/rowset"
)

// layoutOf reads "id:first-last=bytes …"; keys are single letters. The rowsets come by first key.
func layoutOf(text string) Layout {
	l := Layout{Table: "t"}
	for _, field := range strings.Fields(text) {
		var r RowSetInfo
		var first, last string
		if _, err := fmt.Sscanf(strings.NewReplacer(":", " ", "-", " ", "=", " ").Replace(field), "%d %s %s %d",
			&r.ID, &first, &last, &r.Bytes); err != nil {
			panic(field + ": " + err.Error())
		}
		r.MinKey, r.MaxKey = []byte(first), []byte(last)
		l.RowSets = append(l.RowSets, r)
	}
	slices.SortStableFunc(l.RowSets, func(a, b RowSetInfo) int { return bytes.Compare(a.MinKey, b.MinKey) })
	return l
}

func TestDefaultSizeOfRowSetsIsThatOfTheirWriter(t *testing.T) {
	if defaultRowSetBytes != rowset.DefaultTargetBytes {
		t.Errorf("%d bytes, want %d", defaultRowSetBytes, rowset.DefaultTargetBytes)
	}
}

func TestOverlapMergesTheSmallestAboveTheDeepestKey(t *testing.T) {
	for _, test := range []struct {
		name, layout string
		depth        int
		budget       int64
		want         []uint64
	}{
		{"no rowset", "", 2, 100, nil},
		{"one rowset", "1:a-z=10", 1, 100, nil},
		{"side by side", "1:a-c=10 2:d-f=10 3:g-i=10", 2, 100, nil},
		{"shallower than asked", "1:a-m=10 2:b-n=10 3:c-o=10", 4, 100, nil},
		{"as deep as asked", "1:a-m=10 2:b-n=10 3:c-o=10", 3, 100, []uint64{1, 2, 3}},
		{"depth 0 means 4", "1:a-m=10 2:b-n=10 3:c-o=10", 0, 100, nil},
		{"depth 0 means 4, there", "1:a-m=10 2:b-n=10 3:c-o=10 4:d-p=10", 0, 100, []uint64{1, 2, 3, 4}},
		{"bounds are inclusive", "1:a-c=10 2:c-f=10", 2, 100, []uint64{1, 2}},
		{"smallest first", "1:a-m=30 2:b-n=10 3:c-o=20", 2, 1000, []uint64{2, 3, 1}},
		{"within the budget", "1:a-m=30 2:b-n=10 3:c-o=20 4:c-o=25", 2, 54, []uint64{2, 3}},
		{"exactly the budget", "1:a-m=30 2:b-n=10 3:c-o=20", 2, 60, []uint64{2, 3, 1}},
		{"two even above the budget", "1:a-m=30 2:b-n=10 3:c-o=20", 2, 5, []uint64{2, 3}},
		{"the deepest place", "1:a-c=1 2:b-d=1 3:m-z=5 4:n-z=5 5:o-z=5", 2, 100, []uint64{3, 4, 5}},
		{"a rowset that spans all", "1:a-z=50 2:b-c=1 3:e-f=1 4:h-i=1", 3, 100, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Overlap{Depth: test.depth}.Pick(layoutOf(test.layout), test.budget)
			must.Equal(t, got.RowSets, test.want, "rowsets")
			must.Equal(t, got.Why == "", len(got.RowSets) == 0, "rowsets", got.RowSets, "because", got.Why)
		})
	}
}

func TestNoneNeverMerges(t *testing.T) {
	if got := (None{}).Pick(layoutOf("1:a-z=10 2:a-z=10 3:a-z=10 4:a-z=10 5:a-z=10"), 1<<40); len(got.RowSets) != 0 {
		t.Errorf("rowsets %v", got.RowSets)
	}
}

func TestGroupsAreClosedUnderOverlap(t *testing.T) {
	for layout, want := range map[string]string{
		"":                                        "[]",
		"1:a-c=1":                                 "[[1]]",
		"1:a-c=1 2:d-f=1":                         "[[1] [2]]",
		"1:a-c=1 2:c-f=1":                         "[[1 2]]",
		"1:a-d=1 2:b-c=1 3:d-e=1":                 "[[1 2 3]]",
		"1:a-m=1 2:b-c=1 3:n-p=1":                 "[[1 2] [3]]",
		"1:a-b=1 2:c-z=1 3:d-e=1":                 "[[1] [2 3]]",
		"1:a-c=1 2:b-e=1 3:d-g=1":                 "[[1 2 3]]",
		"1:a-a=1 2:a-a=1 3:b-b=1":                 "[[1 2] [3]]",
		"1:a-z=1 2:b-c=1 3:y-z=1":                 "[[1 2 3]]",
		"1:a-c=1 2:d-f=1 3:g-h=1":                 "[[1] [2] [3]]",
		"1:a-e=1 2:b-f=1 3:g-k=1 4:h-i=1 5:l-m=1": "[[1 2] [3 4] [5]]",
	} {
		var got [][]uint64
		for _, g := range Groups(layoutOf(layout)) {
			var ids []uint64
			for _, r := range g {
				ids = append(ids, r.ID)
			}
			got = append(got, ids)
		}
		must.Equal(t, fmt.Sprint(got), want, layout, "groups")
	}
}

func randomLayout(t *testing.T) []Layout {
	r := seedtest.Rand(t)
	layouts := make([]Layout, 300)
	for i := range layouts {
		var fields []string
		for id := range r.IntN(12) {
			a, b := r.IntN(26), r.IntN(26)
			if width := r.IntN(26); b > a+width {
				b = a + width
			}
			fields = append(fields, fmt.Sprintf("%d:%c-%c=%d", id, 'a'+min(a, b), 'a'+max(a, b), r.IntN(40)))
		}
		layouts[i] = layoutOf(strings.Join(fields, " "))
	}
	return layouts
}

// covers returns which rowsets are over a key.
func covers(l Layout, key byte) (ids []uint64) {
	for _, r := range l.RowSets {
		if r.MinKey[0] <= key && key <= r.MaxKey[0] {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func TestOverlapDepthMatchesBruteForce(t *testing.T) {
	for _, l := range randomLayout(t) {
		deepest := 0
		for key := byte('a'); key <= 'z'; key++ {
			deepest = max(deepest, len(covers(l, key)))
		}
		got := Overlap{Depth: 2}.Pick(l, 1<<40).RowSets
		want := deepest
		if deepest < 2 {
			want = 0
		}
		must.Equal(t, len(got), want, l, "rowsets", got)
		slices.Sort(got)
		found := len(got) == 0
		for key := byte('a'); key <= 'z'; key++ {
			ids := covers(l, key)
			slices.Sort(ids)
			found = found || slices.Equal(ids, got)
		}
		must.Equal(t, found, true, l, got, "are over no key all together")
	}
}

// Two rowsets are in one group exactly if a chain of overlaps leads from one to the other.
func TestGroupsMatchChainsOfOverlaps(t *testing.T) {
	for _, l := range randomLayout(t) {
		group := map[uint64]uint64{} // to the lowest number of its group
		for _, r := range l.RowSets {
			group[r.ID] = r.ID
		}
		for range l.RowSets {
			for key := byte('a'); key <= 'z'; key++ {
				ids := covers(l, key)
				for _, a := range ids {
					for _, b := range ids {
						low := min(group[a], group[b])
						group[a], group[b] = low, low
					}
				}
			}
		}
		n := 0
		for _, g := range Groups(l) {
			for _, r := range g {
				n++
				must.Equal(t, group[r.ID], group[g[0].ID], l, r.ID, "and", g[0].ID, "are in one group")
			}
		}
		distinct := map[uint64]bool{}
		for _, g := range group {
			distinct[g] = true
		}
		must.Equal(t, n, len(l.RowSets), "rowsets")
		must.Equal(t, len(Groups(l)), len(distinct), "groups")
	}
}
