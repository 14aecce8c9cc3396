package rowset

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/parallel"
)

// parts are pieces of work that are done in parallel, again and again. Those that have taken
// longest so far begin first, so that none is left alone at the end.
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
	onCPUs(len(p.order), func(k int) error {
		i, start := p.order[k], time.Now()
		p.errs[i] = f(i)
		p.took[i] += time.Since(start)
		return nil // so that f is called for all, whatever their order
	})
	return cmp.Or(p.errs...)
}

// onCPUs calls f for 0 to n-1 in as many goroutines as there are CPUs and returns the error with
// the lowest index.
//
// A goroutine that commits a write batch and has been preempted, or has returned from a system
// call, would wait for one of these to be preempted in turn, after 10 ms. So they let others run
// before each call of f, most of which take less than a millisecond.
func onCPUs(n int, f func(i int) error) error {
	return parallel.Each(n, runtime.GOMAXPROCS(0), func(_, i int) error {
		runtime.Gosched()
		return f(i)
	})
}
