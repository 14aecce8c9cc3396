package compaction

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestTieredMergesRowSetsOfSimilarShares(t *testing.T) {
	for _, test := range []struct {
		name, layout string
		policy       Tiered
		budget       int64
		want         []uint64
	}{
		{"no rowset", "", Tiered{}, 100, nil},
		{"three of a tier", "1:a-z=10 2:a-z=10 3:a-z=10", Tiered{}, 100, nil},
		{"four of a tier", "1:a-z=10 2:a-z=10 3:a-z=10 4:a-z=10", Tiered{}, 100, []uint64{1, 2, 3, 4}},
		{"three are enough", "1:a-z=10 2:a-z=10 3:a-z=10", Tiered{Runs: 3}, 100, []uint64{1, 2, 3}},
		{"the large one is another tier", "1:a-z=90 2:a-z=3 3:a-z=3 4:a-z=3", Tiered{Runs: 3}, 100, []uint64{2, 3, 4}},
		{"the large ones are another tier", "1:a-z=40 2:a-z=40 3:a-z=3 4:a-z=2", Tiered{Runs: 3}, 100, nil},
		{"the small ones first", "1:a-z=40 2:a-z=40 3:a-z=3 4:a-z=2", Tiered{Runs: 2}, 100, []uint64{4, 3}},
		{"of a level for the ratio 100", "1:a-z=40 2:a-z=40 3:a-z=3 4:a-z=2", Tiered{Runs: 4, Ratio: 100}, 100,
			[]uint64{4, 3, 1, 2}},
		{"a run in pieces", "1:a-h=30 2:i-p=30 3:q-z=30 4:a-h=1 5:a-h=1 6:i-z=2 7:i-z=2 8:i-z=2",
			Tiered{Runs: 3}, 100, []uint64{6, 7, 8}},
		{"as many as the budget allows", "1:a-z=10 2:a-z=12 3:a-z=10 4:a-z=11 5:a-z=40", Tiered{}, 32,
			[]uint64{1, 3, 4}},
		{"no two within the budget", "1:a-z=10 2:a-z=12 3:a-z=10 4:a-z=11", Tiered{}, 19, nil},
		{"one key", "1:c-c=10 2:c-c=10 3:c-c=10 4:c-c=10", Tiered{}, 100, []uint64{1, 2, 3, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.policy.Pick(layoutOf(test.layout), test.budget)
			if !slices.Equal(got.RowSets, test.want) || (got.Why == "") != (test.want == nil) ||
				got.Quality != float64(max(len(test.want)-1, 0)) {
				t.Errorf("%+v, want %v", got, test.want)
			}
		})
	}
}

func TestLevelsAreSharesOfTheDataBetweenTheKeys(t *testing.T) {
	for layout, want := range map[string][]int{
		"1:a-z=10":                      {0},
		"1:a-z=91 2:a-z=9":              {0, 1},
		"1:a-z=90 2:a-z=10":             {0, 0},
		"1:a-z=9890 2:a-z=100 3:a-z=10": {0, 1, 2},
		"1:a-m=445 2:n-z=445 3:a-z=110": {0, 0, 0},
		"1:a-m=455 2:n-z=455 3:a-z=90":  {0, 1, 0},
		"1:a-z=99 2:c-c=1 3:d-d=0":      {0, 0, 0},
		"1:a-z=10 2:z-a=10":             {0, -1},
	} {
		l := layoutOf(layout)
		got, count := levels(l, Spans(l), 10)
		must.Equal(t, got, want, layout)
		must.Equal(t, count, max(0, slices.Max(got)+1), layout, "levels")
	}
}

// Rounding does not put a share that is exactly at a limit below it.
func TestLevelsOfSharesAtTheLimit(t *testing.T) {
	for ratio := int64(2); ratio <= 30; ratio++ {
		for want, all := 0, ratio; want < 4; want, all = want+1, all*ratio {
			l := layoutOf(fmt.Sprintf("1:a-z=%d 2:a-z=1", all-1))
			if got, _ := levels(l, Spans(l), float64(ratio)); got[1] != want {
				t.Errorf("a share of 1/%d is level %d for the ratio %d, want %d", all, got[1], ratio, want)
			}
		}
	}
}

func TestTieredAndLeveledValidateTheirOptions(t *testing.T) {
	l := layoutOf("1:a-z=10 2:a-z=10 3:a-z=10 4:a-z=10")
	for _, p := range []Policy{Tiered{Runs: 1}, Tiered{Runs: -3}, Tiered{Ratio: 1.2}, Tiered{Ratio: -4},
		Tiered{Ratio: math.NaN()}, Tiered{Ratio: math.Inf(1)},
		Leveled{Ratio: 1}, Leveled{Ratio: math.NaN()}, Leveled{Ratio: 1001}} {
		must.Refuse(t, Validate(p), p, "is valid")
		if c := p.Pick(l, 100); len(c.RowSets) > 0 {
			t.Errorf("%+v picks %v", p, c.RowSets)
		}
	}
	for _, p := range []Policy{None{}, Overlap{}, Tiered{}, Tiered{Runs: 2, Ratio: 1.5}, Leveled{},
		Leveled{Ratio: 1000}} {
		must.Do(t, Validate(p), p)
	}
}
