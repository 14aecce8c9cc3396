package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/crash"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Histories of synced and unsynced batches over two tables run with flushes, compactions of all
// kinds, ingests and schema alterations. At random file operations the test opens the states that a
// crash may leave: each unsynced operation lost or kept independently, torn writes, lost names,
// disks that ignored a sync. All acknowledged batches are present, then a prefix of the rest, each
// batch whole, and the store passes its own check.
func TestCrashStatesContainAcknowledgedBatches(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(400 * time.Millisecond))
	var total crash.StateCounts
	for ; time.Now().Before(end); seed++ {
		s := crash.RandomStates(seed)
		script, counts, err := s.Run(end)
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, err, script))
		}
	}
	t.Logf("%+v", total)
}

// The recovery of a crashed store is interrupted at every file operation, and so are the recovery
// from that state and the next one. Data that a power cut left remains. Data that a kill left
// remains too, except data that was not yet durable; all of it is durable once the store is open.
func TestInterruptedRecoveryLosesNothing(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(300 * time.Millisecond))
	var total crash.RecoveryCounts
	for ; time.Now().Before(end); seed++ {
		script, counts, err := crash.RandomRecoveries(seed).Run(end)
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, err, script))
		}
	}
	t.Logf("%+v", total)
}

// All sequences of two operations on a table of three keys, one on disk, one in memory, one
// deleted, with a crash at every file operation: as many as time allows. The campaign covers the
// sequences of three.
func TestSequencesOfOperationsSurviveCrashes(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(400 * time.Millisecond))
	q := must.Get(crash.NewSequences(2, 4))(t)
	var total crash.StateCounts
	done := 0
	for _, i := range rand.New(rand.NewPCG(seed, 5)).Perm(q.Count()) {
		if time.Now().After(end) {
			break
		}
		script, counts, err := q.Run(i)
		total.Add(counts)
		if err != nil {
			t.Fatal(failure(seed, fmt.Errorf("sequence %d: %w", i, err), script))
		}
		done++
	}
	t.Logf("%d of %d sequences: %+v", done, q.Count(), total)
}
