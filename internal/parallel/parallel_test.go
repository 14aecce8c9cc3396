package parallel

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestEachCallsEachIndexOnce(t *testing.T) {
	for n := range 20 {
		for workers := range 6 {
			seen := make([]int, n)
			calls := make([]int, max(workers, 1)) // by worker: the race detector sees calls of one worker that overlap
			err := Each(n, workers, func(worker, i int) error {
				seen[i]++
				calls[worker]++
				return nil
			})
			total := 0
			for _, c := range calls {
				total += c
			}
			must.Do(t, err)
			must.Equal(t, total, n, n, "calls", workers, "workers")
			for i, times := range seen {
				must.Equal(t, times, 1, n, "calls", workers, "workers: index", i, "times")
			}
		}
	}
}

func TestEachReturnsErrorOfLowestIndexAndStops(t *testing.T) {
	const n = 1000
	for workers := range 5 {
		for _, first := range []int{0, 1, 7} {
			var calls atomic.Int64
			want := fmt.Errorf("index %d", first)
			err := Each(n, workers, func(_, i int) error {
				switch calls.Add(1); {
				case i == first:
					return want
				case i > first:
					return errors.New("a later one")
				}
				return nil
			})
			must.Fail(t, err, want, workers, "workers")
			if got := calls.Load(); got > int64(first+max(workers, 1)) {
				t.Errorf("%d workers: %d calls, the first error at index %d", workers, got, first)
			}
		}
	}
}

// TestRunWaitsOnlyForGoroutinesThatHaveBegun returns from f(0) before or after other goroutines
// have begun.
func TestRunWaitsOnlyForGoroutinesThatHaveBegun(t *testing.T) {
	for meet := range 4 {
		var begun sync.WaitGroup
		begun.Add(meet)
		var working, ended atomic.Int64
		Run(4, func(worker int, help func()) {
			working.Add(1)
			defer ended.Add(1)
			if worker == 0 {
				help()
				help()
				begun.Wait()
			} else if worker <= meet {
				begun.Done()
			}
		})
		if b, e := working.Load(), ended.Load(); b != e || b < int64(meet)+1 || b > 4 {
			t.Errorf("%d goroutines have begun, %d ended, want %d to 4", b, e, meet+1)
		}
	}
}

func TestEachLateBeginsOthersWithHelp(t *testing.T) {
	for after := range 5 {
		begun := make(chan struct{})
		var help func()
		workers := make([]int, 10) // by index
		err := EachLate(len(workers), 2, func(h func()) { help = h }, func(worker, i int) error {
			workers[i] = worker
			switch {
			case worker == 1:
				close(begun)
				return errors.New("enough")
			case i == after:
				help()
				<-begun
			}
			return nil
		})
		must.Refuse(t, err, "no error of worker 1")
		for i, worker := range workers {
			must.Equal(t, worker == 1, i == after+1, "help in call", after, "call", i, "has worker", worker)
		}
	}
}

func TestRunWaitsForOthersAfterPanic(t *testing.T) {
	begun, panicked := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	func() {
		defer func() {
			if v := recover(); v != "panicked" || !ended.Load() {
				t.Errorf("recovered %v, the other goroutine ended: %v", v, ended.Load())
			}
		}()
		Run(2, func(worker int, help func()) {
			if worker == 0 {
				help()
				<-begun
				defer close(panicked)
				panic("panicked")
			}
			close(begun)
			<-panicked
			ended.Store(true)
		})
	}()
}
