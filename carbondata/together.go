package carbondata

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	maxProcs  = 4       // goroutines that read or write columns of one page, or read pages, at most
	manyBytes = 1 << 16 // of a page that is read compressed; less is not worth a goroutine
)

// parallel returns how many goroutines may work at once.
func parallel() int { return min(runtime.GOMAXPROCS(0), maxProcs) }

// together calls f for each i in [0, n), in some goroutines, of which the caller's is one. Calls with
// the same worker, in [0, workers), never overlap.
func together(n, workers int, f func(worker, i int)) {
	var taken atomic.Int64
	work := func(worker int) {
		for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
			f(worker, i)
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < min(workers, n); worker++ {
		others.Go(func() { work(worker) })
	}
	work(0)
	others.Wait()
}
