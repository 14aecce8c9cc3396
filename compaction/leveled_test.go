package compaction

import (
	"math"
	"slices"
	"testing"
)

func TestLeveledMergesWhatOverlapsInALevel(t *testing.T) {
	for _, test := range []struct {
		name, layout string
		policy       Leveled
		budget       int64
		want         []uint64
		quality      float64
	}{
		{"no rowset", "", Leveled{}, 100, nil, 0},
		{"side by side", "1:a-c=10 2:d-f=10 3:g-i=10", Leveled{}, 100, nil, 0},
		{"overlap before a neighbor", "1:a-e=10 2:a-e=10 3:e-i=10", Leveled{}, 100, []uint64{1, 2}, 2. / 3},
		{"two of a level", "1:a-z=10 2:a-z=10", Leveled{}, 100, []uint64{1, 2}, 1},
		{"two levels", "1:a-z=95 2:a-z=5", Leveled{}, 100, nil, 0},
		{"two levels for a smaller ratio", "1:a-z=80 2:a-z=20", Leveled{Ratio: 4}, 100, nil, 0},
		{"the small ones first", "1:a-z=45 2:a-z=46 3:a-z=4 4:a-z=5", Leveled{}, 100, []uint64{3, 4}, 1},
		{"the widest with all that it overlaps", "1:a-e=10 2:e-i=10 3:i-m=10 4:c-k=20 5:n-p=10", Leveled{}, 100,
			[]uint64{4, 1, 2, 3}, 2. / 3},
		{"within the budget, by first key", "1:a-e=10 2:e-i=10 3:i-m=10 4:c-k=20 5:n-p=10", Leveled{}, 40,
			[]uint64{4, 1, 2}, 3. / 6},
		{"no two within the budget", "1:a-z=10 2:a-z=10", Leveled{}, 19, nil, 0},
		{"one key in common", "1:a-e=10 2:e-i=10 3:e-e=10", Leveled{}, 100, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.policy.Pick(layoutOf(test.layout), test.budget)
			if !slices.Equal(got.RowSets, test.want) || (got.Why == "") != (test.want == nil) ||
				math.Abs(got.Quality-test.quality) > 1e-9 {
				t.Errorf("%+v, want %v with %v", got, test.want, test.quality)
			}
		})
	}
}
