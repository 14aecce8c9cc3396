package oribi_test

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// smallHistory makes settings under which a history is quickly gone through: few keys, few rows.
func smallHistory(seed uint64) prooftest.Settings {
	o := prooftest.RandomSettings(seed)
	o.Keys = 4 + int(seed%40)
	o.Background = seed%4 == 0
	return o
}

// A history is cut at random changes of the disk, in the middle of writes too, by kills, power cuts and torn power cuts: while the
// store is opened, written, flushed, compacted, closed and recovered. What is left must open, to read without a change of
// any file and to write, and hold all acknowledged batches, a prefix of the rest, no part of one.
func TestCrashesAnywhereLeaveAcknowledgedBatches(t *testing.T) {
	seed := proofSeed(t)
	end := time.Now().Add(proofTime(2*time.Second, 12*time.Second))
	var total prooftest.CrashCounts
	for ; time.Now().Before(end); seed++ {
		c := prooftest.Crashes{Settings: smallHistory(seed), Steps: 80, Every: 40, After: 12}
		script, counts, err := c.Run()
		total.Add(counts)
		if err != nil {
			t.Fatalf("-proof.seed=%d: %v\n%s", seed, err, kept(script))
		}
	}
	t.Logf("%+v", total)
}
