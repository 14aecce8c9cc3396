package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/faults"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Each disk operation of a trace fails, one per run, in the ways that disks fail: before, after or
// during the operation, once or permanently, for lack of space, with the loss of unsynced bytes,
// and on reads. See faults.Trace.Run for the conditions that it checks.
func TestFaultsLoseNoAcknowledgedBatch(t *testing.T) {
	seed := seedtest.Seed(t)
	trace, err := faults.Small(seed).Trace()
	must.Do(t, err, "-seed", seed)
	list := trace.Rotated(seed)
	rand.New(rand.NewPCG(seed, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	all, most := len(list), 40
	switch {
	case *forFlag > 0:
		most = 400
	case testing.Short():
		most = 30
	}
	list = list[:min(all, most)] // a poisoned store leaks some megabytes
	var total faults.Counts
	for _, f := range list {
		script, counts, err := trace.Run(f)
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, err, script))
		}
	}
	t.Logf("of %d: %+v", all, total)
}
