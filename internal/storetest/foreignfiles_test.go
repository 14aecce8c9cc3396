package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// One file of a store, closed or killed, is gone, cut at some place, longer, older, in the place of
// another of its kind, that of another store, may not be opened, or is a directory. See
// damage.Foreign.Try for what must hold.
func TestForeignFilesNeverGiveWrongAnswers(t *testing.T) {
	seed := seedtest.Seed(t)
	x, err := damage.NewForeign(seed)
	if err != nil {
		t.Fatalf("-seed=%d: %v", seed, err)
	}
	if err := x.Whole(); err != nil {
		t.Errorf("-seed=%d: the older copy of everything: %v", seed, err)
	}
	all, err := x.All()
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		rand.New(rand.NewPCG(seed, 5)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:len(all)/5]
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
