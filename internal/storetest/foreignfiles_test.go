package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// One file of a closed or killed store is missing, truncated, longer, older, replaced by another
// file of its kind or by a file of another store, unreadable for lack of permission, or a
// directory. See damage.Foreign.Try for the conditions that it checks. Half of the cases are tried,
// chosen at random; with -proof.for all.
func TestForeignFilesNeverGiveWrongAnswers(t *testing.T) {
	seed := seedtest.Seed(t)
	x, err := damage.NewForeign(seed)
	must.Do(t, err, "-seed", seed)
	must.Do(t, x.Whole(), "-seed", seed, "the older copy of everything")
	all := must.Get(x.All())(t)
	if *forFlag == 0 {
		one := 2 // of how many is tried
		if testing.Short() {
			one = 5
		}
		rand.New(rand.NewPCG(seed, 5)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:len(all)/one]
	}
	var total damage.ForeignCounts
	var failed failures
	for _, h := range all {
		var counts damage.ForeignCounts
		within(t, minute, func() { counts, err = x.Try(h) })
		total.Add(counts)
		failed.check(t, seed, h, err)
	}
	t.Logf("%d harms: %+v", len(all), total)
}
