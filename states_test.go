package oribi_test

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// Histories of synced and unsynced batches over two tables, amid flushes, compactions of all kinds, ingests and changes of schemas: at random
// changes of the disk what crashes may leave of it is opened, each unsynced change lost or kept alone, torn writes, lost names, disks
// that forgot a flush. All acknowledged batches are there, a prefix of the rest, no part of one; the store finds itself whole.
func TestCrashStatesHoldAcknowledgedBatches(t *testing.T) {
	seed := proofSeed(t)
	end := time.Now().Add(proofTime(1500*time.Millisecond, 12*time.Second))
	var total prooftest.StateCounts
	for ; time.Now().Before(end); seed++ {
		s := prooftest.RandomStates(seed)
		script, counts, err := s.Run(func(prooftest.StateCounts) bool { return time.Now().Before(end) })
		total.Add(counts)
		if err != nil {
			t.Fatalf("-proof.seed=%d: %v\n%s", seed, err, kept(script))
		}
	}
	t.Logf("%+v", total)
}
