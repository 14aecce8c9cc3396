package history

import (
	"sync"
	"time"

	"github.com/oribi-db/oribi/mvcc"
)

// Wall is a manual wall clock. It also records how far the clocks of stores that use it may have
// advanced.
type Wall struct {
	mu      sync.Mutex
	now     time.Time
	highest mvcc.Timestamp // approximate upper bound of the timestamps that a clock assigned or passed
}

// NewWall returns a wall clock at a fixed time.
func NewWall() *Wall { return &Wall{now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)} }

func (w *Wall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Clone returns a copy of the clock.
func (w *Wall) Clone() *Wall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Wall{now: w.now, highest: w.highest}
}

// pass records that a store's clock may be past ts.
func (w *Wall) pass(ts mvcc.Timestamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest = max(w.highest, ts)
}

// passed returns the maximum timestamp that a store's clock may have reached.
func (w *Wall) passed() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest.Time()
}

func (w *Wall) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}
