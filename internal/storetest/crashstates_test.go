package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/crash"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Histories of synced and unsynced batches over two tables, amid flushes, compactions of all kinds,
// ingests and changes of schemas: at random changes of the disk what crashes may leave of it is
// opened, each unsynced change lost or kept alone, torn writes, lost names, disks that forgot a
// flush. All acknowledged batches are there, a prefix of the rest, no part of one; the store finds
// itself whole.
func TestCrashStatesHoldAcknowledgedBatches(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(time.Second, 4*time.Second))
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

// The recovery of a crashed store is cut at every change that it makes of the disk, and the
// recovery from that, and from that. What a power cut has left stays; what a kill has left stays
// but for what was not durable, and all of it is durable when the store is open.
func TestRecoveryCutAnywhereLosesNothing(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(time.Second, 2*time.Second))
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
// deleted, with a crash at every change of the disk: as many as there is time for, the campaign
// goes through those of three.
func TestSequencesOfOperationsSurviveCrashes(t *testing.T) {
	seed := seedtest.Seed(t)
	end := time.Now().Add(proofTime(time.Second, 3*time.Second))
	q, err := crash.NewSequences(2, 4)
	if err != nil {
		t.Fatal(err)
	}
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
