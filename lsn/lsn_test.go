package lsn

import (
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestAtomicSwapsOnlyTheExpectedLSN(t *testing.T) {
	var a Atomic
	if a.CompareAndSwap(1, 2) || a.Load() != 0 {
		t.Errorf("swapped an LSN that was not there: %d", a.Load())
	}
	if !a.CompareAndSwap(0, 2) || a.Load() != 2 {
		t.Errorf("LSN %d, want 2", a.Load())
	}
	a.Store(Max)
	must.Equal(t, a.Load(), Max, "LSN")
}

func TestAtomicLosesNoConcurrentSwap(t *testing.T) {
	const goroutines, swaps = 4, 1000
	var a Atomic
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range swaps {
				for l := a.Load(); !a.CompareAndSwap(l, l+1); l = a.Load() {
				}
			}
		})
	}
	wg.Wait()
	must.Equal(t, a.Load(), goroutines*swaps, "LSN")
}
