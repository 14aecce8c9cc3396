package main

import (
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/internal/prooftest/kill"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The command is killed again and again over one store, while it makes, fills, flushes, compacts
// and recovers it: what it acknowledged is there, a prefix of the rest, no part of a batch.
func TestKilledCommandsLeaveAcknowledgedBatches(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("how a process ended is told as on unix")
	}
	t.Parallel()
	k := kill.Life{Seed: seedtest.Seed(t), Dir: t.TempDir(), Binary: binary, Kills: 10}
	if testing.Short() {
		k.Kills = 4
	}
	if missing := kill.TracerMissing(k.Dir); missing != "" {
		t.Log(missing)
	}
	counts, err := k.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", counts)
}
