package lsn

import (
	"sync"
	"testing"
)

func TestAtomicSwapsOnlyTheExpectedLSN(t *testing.T) {
	var a Atomic
	if a.CompareAndSwap(1, 2) || a.Load() != 0 {
		t.Errorf("swapped an LSN that was not there: %d", a.Load())
	}
	if !a.CompareAndSwap(0, 2) || a.Load() != 2 {
		t.Errorf("LSN %d, want 2", a.Load())
	}
	if a.Store(Max); a.Load() != Max {
		t.Errorf("LSN %d, want %d", a.Load(), Max)
	}
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
	if got := a.Load(); got != goroutines*swaps {
		t.Errorf("LSN %d after %d increments", got, goroutines*swaps)
	}
}
