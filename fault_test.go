package oribi_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// maxFaults bounds the runs of a process: a poisoned store abandons its metadata store, which keeps some megabytes.
const maxFaults = 1500

// runFaults fails changes of the disk, one a run, in histories with rising seeds until the time is over: all of a history's changes
// in a random order, as far as its share of the time goes.
func runFaults(t *testing.T, full bool) {
	seed := proofSeed(t)
	end := time.Now().Add(proofTime(400*time.Millisecond, 3*time.Second))
	var total prooftest.FaultCounts
	for ; time.Now().Before(end) && total.Runs < maxFaults; seed++ {
		f := prooftest.Faults{Settings: prooftest.SmallSettings(seed), Steps: 50, Full: full}
		f.Settings.Background = false
		changes, err := f.Changes()
		if err != nil {
			t.Fatalf("-proof.seed=%d: %v", seed, err)
		}
		for i, n := range rand.New(rand.NewPCG(seed, 2)).Perm(changes) {
			if i >= 100 || !time.Now().Before(end) || total.Runs >= maxFaults {
				break
			}
			script, counts, err := f.Run(n)
			total.Add(counts)
			if err != nil {
				t.Fatalf("-proof.seed=%d: fault at change %d: %v\n%s", seed, n, err, kept(script))
			}
		}
	}
	t.Logf("%+v", total)
}

// After a write, sync, rename or removal that failed the store answers reads as before, takes no writes if it is poisoned, and has
// all acknowledged batches when it is opened again.
func TestFailedWritesLoseNothingThatWasAcknowledged(t *testing.T) { runFaults(t, false) }

// A full disk fails the call that meets it, which may be made again once there is space, or poisons the store.
func TestFullDiskLosesNothingThatWasAcknowledged(t *testing.T) { runFaults(t, true) }
