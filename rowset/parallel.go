package rowset

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// parts are pieces of work that are done in parallel, again and again. Those that have taken longest
// so far begin first, so that none is left alone at the end.
type parts struct {
	took  []time.Duration
	order []int
	errs  []error
}

func newParts(n int) parts {
	p := parts{took: make([]time.Duration, n), order: make([]int, n), errs: make([]error, n)}
	for i := range p.order {
		p.order[i] = i
	}
	return p
}

// run calls f for each part, in parallel, and returns the error of the first part that has one.
func (p *parts) run(f func(i int) error) error {
	slices.SortStableFunc(p.order, func(i, j int) int { return cmp.Compare(p.took[j], p.took[i]) })
	parallel(len(p.order), func(k int) error {
		i, start := p.order[k], time.Now()
		p.errs[i] = f(i)
		p.took[i] += time.Since(start)
		return nil
	})
	return cmp.Or(p.errs...)
}

// parallel calls f for 0 to n-1 on as many goroutines as there are CPUs and returns the error with
// the lowest index.
func parallel(n int, f func(i int) error) error { return spread(n, runtime.GOMAXPROCS(0), f) }

// spread is parallel with at most the given number of goroutines.
func spread(n, workers int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			errs[i] = f(i)
		}
	}
	var wg sync.WaitGroup
	for range min(n, workers) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
