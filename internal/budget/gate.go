package budget

import "sync"

// Gate bounds the memory of short operations that run concurrently, for instance of reads between
// the disk and the cache. An operation waits in Acquire until there is room for its bytes; waiting
// operations proceed in their order. To exclude deadlocks, an operation acquires once, before it
// allocates, and releases before it acquires again.
//
// All methods are safe for concurrent use. On a nil *Gate they do nothing.
type Gate struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiting []waiter // oldest first
}

type waiter struct {
	bytes int64
	ready chan struct{} // closed when the bytes are counted
}

// NewGate returns a Gate with a limit in bytes, at least 1.
func NewGate(limit int64) *Gate { return &Gate{limit: max(limit, 1)} }

// Acquire waits until n bytes more are within the limit, and counts them. If n alone is above the
// limit, it waits until nothing else is counted.
func (g *Gate) Acquire(n int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	if len(g.waiting) == 0 && g.fits(n) {
		g.used += n
		g.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	g.waiting = append(g.waiting, waiter{n, ready})
	g.mu.Unlock()
	<-ready
}

// Add counts n bytes more for an operation that has acquired too little. It does not wait.
func (g *Gate) Add(n int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.used += n
	g.mu.Unlock()
}

// Release counts n bytes less.
func (g *Gate) Release(n int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used -= n; g.used < 0 {
		panic("budget: a gate below zero bytes")
	}
	for len(g.waiting) > 0 && g.fits(g.waiting[0].bytes) {
		g.used += g.waiting[0].bytes
		close(g.waiting[0].ready)
		g.waiting[0] = waiter{}
		g.waiting = g.waiting[1:]
	}
}

// Used returns the bytes that are counted.
func (g *Gate) Used() int64 {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

func (g *Gate) fits(n int64) bool { return g.used == 0 || g.used+n <= g.limit }
