package kv_test

import (
	"runtime/debug"
	"testing"
)

// TestMain has less garbage collected: the heap of the tests is small, and most of it is garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}
