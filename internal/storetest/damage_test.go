package storetest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// One byte of one file of a closed store is changed, anywhere. What the store then answers is
// right, or it says that it is damaged: no wrong answer, no panic, no other error, whether it is
// opened to read or to write.
func TestFlippedBytesNeverGiveWrongAnswers(t *testing.T) {
	seed := seedtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	least := int64(500)
	if testing.Short() {
		least = 200
	}
	var total damage.Counts
	var failed failures
	for begin := time.Now(); total.Flips < least || time.Since(begin) < *forFlag; seed++ {
		d, err := damage.New(seed, 40)
		if err != nil {
			t.Fatalf("-seed=%d: %.3000v", seed, err)
		}
		for range 100 {
			flip, err := d.RandomFlip(rng)
			if err != nil {
				t.Fatal(err)
			}
			readOnly := rng.IntN(2) == 0
			var counts damage.Counts
			within(t, minute, func() { counts, err = d.Try(flip, readOnly) })
			total.Add(counts)
			failed.check(t, seed, flip, err)
		}
	}
	t.Logf("%+v", total)
}

// Every bit of a small store counts: one that is flipped is found, by Open, by a read or by Verify,
// or put right, or used by nobody. The bits are taken slice by slice, each in a random order; a
// campaign takes them all.
func TestEveryFlippedBitIsFoundRepairedOrUnused(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(time.Second, 4*time.Second))
	var total damage.BitCounts
	var b *damage.Bits
	for last := uint64(math.MaxUint64); time.Now().Before(end); seed++ {
		store, slice := damage.BitSlice(seed)
		var err error
		if store != last {
			b, err = damage.NewBits(store)
			last = store
		}
		if err != nil {
			t.Fatalf("-seed=%d: %.3000v", seed, err)
		}
		var counts damage.BitCounts
		within(t, 10*minute, func() {
			counts, err = b.Slice(slice, func(damage.BitCounts) bool { return time.Now().Before(end) })
		})
		total.Add(counts)
		if err != nil {
			t.Fatalf("-seed=%d: %.3000v", seed, err)
		}
	}
	t.Logf("%+v", total)
	if total.Flips > 2000 && (total.Refused == 0 || total.Repaired == 0 || total.Found == 0 || total.Unused == 0) {
		t.Error("one of these never came about")
	}
}
