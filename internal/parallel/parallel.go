// Package parallel divides work among goroutines, of which the caller's is one.
package parallel

import (
	"cmp"
	"sync"
	"sync/atomic"
)

// Run calls f in up to n goroutines at the same time: f(0, help) in the caller's, and each of f(1,
// nil) to f(n−1, nil) in one of its own, which begins after f(0, help) has called help. It returns
// when all calls have returned. Goroutines that have not begun when f(0, help) returns do not call
// f at all: it must return, unless it panics, only when no work is left to begin.
//
// So a call whose work takes less time than waking a processor does not wait for one. help itself
// takes some microseconds if it wakes one. It does nothing when called again.
func Run(n int, f func(worker int, help func())) {
	c := &crew{f: f, n: n}
	defer c.wait() // also if f panics
	f(0, c.start)
}

// crew is the goroutines of one Run.
type crew struct {
	f func(worker int, help func())
	n int // 1 or less: there are no others, or they were started

	mu      sync.Mutex
	over    bool // no goroutine begins any longer
	working sync.WaitGroup
}

// start starts the goroutines.
func (c *crew) start() {
	if c.n <= 1 {
		return
	}
	for worker := 1; worker < c.n; worker++ {
		go c.help(worker)
	}
	c.n = 1
	// The goroutine that was started last is the next one of this processor. Others take it only
	// after a sleep of some 50 µs, in case this one blocks soon. Here, that is one with nothing to
	// do.
	go func() {}()
}

// help is the goroutine of a worker.
func (c *crew) help(worker int) {
	if c.begin() {
		defer c.working.Done()
		c.f(worker, nil)
	}
}

// begin reports whether a goroutine may still begin.
func (c *crew) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.working.Add(1)
	}
	return !c.over
}

// wait waits for the goroutines that have begun.
func (c *crew) wait() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.working.Wait()
}

// Each calls f(worker, i) for each i in [0, n), in ascending order, in up to the given number of
// goroutines at the same time, of which the caller's is worker 0. Calls with the same worker, in
// [0, workers), never overlap. After an error no call begins. Each returns the error of the lowest
// i that has one, which is the same however many workers there are: the calls before it had begun.
func Each(n, workers int, f func(worker, i int) error) error {
	return EachLate(n, workers, func(help func()) { help() }, f)
}

// EachLate is Each with other goroutines that begin after worker 0 has called help. It first calls
// begin, which may call help or keep it for later.
func EachLate(n, workers int, begin func(help func()), f func(worker, i int) error) error {
	var next atomic.Int64
	errs := make([]error, n)
	Run(min(n, workers), func(worker int, help func()) {
		defer next.Store(int64(n)) // after an error or a panic; otherwise no call is left anyway
		if worker == 0 {
			begin(help)
		}
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			if errs[i] = f(worker, i); errs[i] != nil {
				return
			}
		}
	})
	return cmp.Or(errs...)
}
