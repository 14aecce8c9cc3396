package history

import (
	"sync"
	"time"

	"github.com/oribi-db/oribi/mvcc"
)

// Wall is a clock on the wall that stands still until it is moved, and remembers how far the clocks
// of stores under it have come.
type Wall struct {
	mu      sync.Mutex
	now     time.Time
	highest mvcc.Timestamp // at least every timestamp that a clock has handed out or passed, or nearly
}

// NewWall is a wall clock at a fixed time.
func NewWall() *Wall { return &Wall{now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)} }

func (w *Wall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Clone is another wall clock at the same time.
func (w *Wall) Clone() *Wall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &Wall{now: w.now, highest: w.highest}
}

// pass notes that a store's clock may be past ts.
func (w *Wall) pass(ts mvcc.Timestamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest = max(w.highest, ts)
}

// passed is how far a store's clock may have come.
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
