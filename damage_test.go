package oribi_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// One byte of one file of a closed store is changed, anywhere. What the store then answers is right, or it says that it is damaged: no
// wrong answer, no panic, no other error, whether it is opened to read or to write.
func TestFlippedBytesNeverGiveWrongAnswers(t *testing.T) {
	seed := proofSeed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	least := int64(1500)
	if testing.Short() {
		least = 200
	}
	var total prooftest.DamageCounts
	for begin := time.Now(); total.Flips < least || time.Since(begin) < *forFlag; seed++ {
		d, err := prooftest.NewDamage(seed, 40)
		if err != nil {
			t.Fatalf("-proof.seed=%d: %v", seed, err)
		}
		for range 100 {
			flip, err := d.RandomFlip(rng)
			if err != nil {
				t.Fatal(err)
			}
			readOnly := rng.IntN(2) == 0
			var counts prooftest.DamageCounts
			within(t, minute, func() { counts, err = d.Try(flip, readOnly) })
			total.Add(counts)
			if err != nil {
				t.Errorf("-proof.seed=%d: %v: %v", seed, flip, err)
			}
		}
	}
	t.Logf("%+v", total)
}
