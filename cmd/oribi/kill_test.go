package main

import (
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/kill"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The command is killed repeatedly on one store while it creates, fills, flushes, compacts and
// recovers it. Every acknowledged batch is there, and of the others a prefix; no batch is there in
// part.
func TestKilledCommandsLeaveAcknowledgedBatches(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test needs the exit status of a killed process, as on Unix")
	}
	t.Parallel()
	k := kill.Life{Seed: seedtest.Seed(t), Dir: t.TempDir(), Binary: binary, Kills: 6}
	if testing.Short() {
		k.Kills = 4
	}
	if missing := kill.TracerMissing(k.Dir); missing != "" {
		t.Log(missing)
	}
	counts := must.Get(k.Run())(t)
	t.Logf("%+v", counts)
}
