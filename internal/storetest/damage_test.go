package storetest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/damage"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// One byte of one file of a closed store is changed, anywhere. Each answer of the store is then
// correct, or an error reports the damage: no wrong answer, no panic, no other error, whether the
// store is opened for reading or for writing.
func TestFlippedBytesNeverGiveWrongAnswers(t *testing.T) {
	seed := seedtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	least := int64(200)
	var total damage.Counts
	var failed failures
	for begin := time.Now(); total.Flips < least || time.Since(begin) < *forFlag; seed++ {
		d, err := damage.New(seed, 40)
		must.Do(t, err, "-seed", seed)
		for range 100 {
			flip, err := d.RandomFlip(rng)
			must.Do(t, err)
			readOnly := rng.IntN(2) == 0
			var counts damage.Counts
			within(t, minute, func() { counts, err = d.Try(flip, readOnly) })
			total.Add(counts)
			failed.check(t, seed, flip, err)
		}
	}
	t.Logf("%+v", total)
}

// A bit that flips in the files of an open store is found by the reads by key that would use it, although
// they read parts of cblocks by marks that were made before.
func TestBitsThatFlipAfterMarksWereMadeAreFound(t *testing.T) {
	m := must.Get(damage.NewMarked(seedtest.Seed(t)))(t)
	end := time.Now().Add(proofTime(400 * time.Millisecond))
	counts, err := m.Flip(math.MaxInt, func() bool { return time.Now().Before(end) })
	must.Do(t, err)
	t.Logf("%+v", counts)
	if counts.Flips > 30 && counts.Errors == 0 {
		t.Error("no flip was found")
	}
	must.Do(t, m.Close())
}

// A flipped bit of a small store is found by Open, by a read or by Verify, or it is repaired, or it
// is unused. Each group of bits is tried in random order; a campaign tries them all.
func TestEveryFlippedBitIsFoundRepairedOrUnused(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(400 * time.Millisecond))
	var total damage.BitCounts
	var b *damage.Bits
	for last := uint64(math.MaxUint64); time.Now().Before(end); seed++ {
		store, slice := damage.BitSlice(seed)
		var err error
		if store != last {
			b, err = damage.NewBits(store)
			last = store
		}
		must.Do(t, err, "-seed", seed)
		var counts damage.BitCounts
		within(t, 10*minute, func() {
			counts, err = b.Slice(slice, func(damage.BitCounts) bool { return time.Now().Before(end) })
		})
		total.Add(counts)
		must.Do(t, err, "-seed", seed)
	}
	t.Logf("%+v", total)
	if total.Flips > 2000 && (total.Refused == 0 || total.Repaired == 0 || total.Found == 0 || total.Unused == 0) {
		t.Error("one of these outcomes never occurred")
	}
}
