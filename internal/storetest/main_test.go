package storetest

import (
	"os"
	"testing"

	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/maintest"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
)

func TestMain(m *testing.M) {
	if followers.Child() {
		return
	}
	os.Exit(maintest.Run(m))
}

// notWithRace skips a test of much data that one goroutine reads: with the race detector it takes half a
// minute, and races nowhere.
func notWithRace(t *testing.T) {
	t.Helper()
	if invariant.Race {
		t.Skip("much data, one goroutine")
	}
}
