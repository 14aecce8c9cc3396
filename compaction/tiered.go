package compaction

import (
	"errors"
	"fmt"
	"slices"
)

// Tiered merges rowsets of similar size when several cover one key: size-tiered compaction, as in
// Cassandra and in the universal compaction of RocksDB. Size is meant per key: rowsets are of one
// tier if their shares of the data between their keys are similar.
//
// A byte is rewritten about once for each tier, so this policy writes least. A read by key looks
// into up to Runs-1 rowsets of each tier. It suits tables that are mostly written and scanned. The
// zero value is ready to use.
type Tiered struct {
	// Runs is the number of rowsets of a tier over one key from which they are merged. Default: 4.
	Runs int
	// Ratio is the ratio between the sizes of two tiers: 1.5 to 1000. Default: 4.
	Ratio float64
}

func (t Tiered) filled() Tiered {
	if t.Runs == 0 {
		t.Runs = 4
	}
	if t.Ratio == 0 {
		t.Ratio = 4
	}
	return t
}

// Validate reports everything that is wrong with the options.
func (t Tiered) Validate() error {
	t = t.filled()
	var errs []error
	if t.Runs < 2 {
		errs = append(errs, fmt.Errorf("Runs is %d, want at least 2", t.Runs))
	}
	if !validRatio(t.Ratio) {
		errs = append(errs, fmt.Errorf("Ratio is %v, want 1.5 to 1000", t.Ratio))
	}
	return errors.Join(errs...)
}

// Pick begins with the tier of the smallest rowsets per key. It takes those over the key that most
// of the tier cover, the smallest first, within the budget; none if the options are not valid. The
// quality is the number of rowsets less over that key. It takes time O(n log n), and O(n) for each
// tier of which several rowsets are over one key but too large for the budget.
func (t Tiered) Pick(layout Layout, budget int64) Choice {
	if t.Validate() != nil {
		return Choice{}
	}
	t = t.filled()
	of, count := levels(layout, Spans(layout), t.Ratio)
	tiers := make([]int, len(of))
	for _, i := range layout.usable(budget) {
		tiers[i] = 1 + of[i]
	}
	for tier, place := range slices.Backward(layout.deepest(tiers, 1+count)[1:]) {
		if place.depth < t.Runs {
			continue
		}
		cover := layout.cover(tiers, 1+tier, place)
		slices.SortStableFunc(cover, layout.smaller)
		if sets := within(layout, cover, budget); len(sets) >= 2 {
			c := layout.choice(sets)
			c.Quality = float64(len(sets) - 1)
			c.Why = fmt.Sprintf("%d rowsets of tier %d cover one key", len(cover), tier)
			return c
		}
	}
	return Choice{}
}
