package mvcc

import (
	"fmt"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// MaxAhead is how far Advance moves a physical clock ahead of the wall clock. It is Kudu's bound: a
// Kudu server stops at a log entry that is further ahead of its own clock.
const MaxAhead = 10 * time.Second

// Clock returns timestamps. Implementations are safe for concurrent use. Source: tablet spec
// §4.2.
type Clock interface {
	// Now returns a timestamp greater than all returned before, at most Last. If no timestamp is
	// left, it returns an error, also on later calls; a real clock reaches that in the year 2112.
	Now() (Timestamp, error)

	// Pass makes Now return only timestamps above ts, so that later batches do not change the
	// result of a read at ts. For a ts above both the wall clock's microsecond and all timestamps
	// that the clock has passed, it returns ErrFuture and does not change the clock.
	Pass(ts Timestamp) error

	// Advance is Pass for a ts up to MaxAhead ahead of the wall clock.
	Advance(ts Timestamp) error

	// Restore is Advance without the bound: the store already has batches up to ts, whatever the
	// wall clock says now. The caller has checked that ts, which comes from disk, is at most Last.
	Restore(ts Timestamp)

	// Physical reports whether timestamps are times of a wall clock, so that history has an age.
	Physical() bool
}

// counter is the state that both clocks share: the lowest unused timestamp.
type counter struct {
	mu   sync.Mutex
	next Timestamp // at least First
}

// take returns the lowest unused timestamp that is not below floor.
func (c *counter) take(floor Timestamp) (Timestamp, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ts := max(c.next, floor)
	if ts > Last {
		return 0, fmt.Errorf("mvcc: the clock is past the last timestamp, %v", Last.Time())
	}
	c.next = ts + 1
	return ts, nil
}

// pass makes next greater than ts, unless next would exceed limit + 1.
func (c *counter) pass(ts, limit Timestamp) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ts < c.next {
		return nil // however far ahead: the clock has passed it already
	}
	if ts > limit {
		return fmt.Errorf("the newest allowed now is %v: %w", limit, fault.ErrFuture)
	}
	c.next = ts + 1
	return nil
}

// HybridClock follows the wall clock and increments by one while that stops or goes back.
type HybridClock struct {
	wall func() time.Time
	counter
}

// NewHybridClock returns a clock on top of wall; nil means time.Now.
func NewHybridClock(wall func() time.Time) *HybridClock {
	if wall == nil {
		wall = time.Now
	}
	return &HybridClock{wall: wall, counter: counter{next: First}}
}

// Now returns the wall clock's microsecond, or one more than the last timestamp if that is greater.
// The logical part overflows into the physical part.
func (c *HybridClock) Now() (Timestamp, error) { return c.take(FromTime(c.wall())) }

// Pass refuses a ts above the wall clock's microsecond, unless the next timestamp is above it
// anyway.
func (c *HybridClock) Pass(ts Timestamp) error { return c.pass(ts, min(EndOf(c.wall()), Last-1)) }

// Advance refuses a ts more than MaxAhead ahead of the wall clock, unless the next timestamp is
// above it anyway.
func (c *HybridClock) Advance(ts Timestamp) error {
	return c.pass(ts, min(EndOf(c.wall().Add(MaxAhead)), Last-1))
}

// Restore makes Now return only timestamps above ts.
func (c *HybridClock) Restore(ts Timestamp) { c.restore(ts) }

// Physical returns true.
func (c *HybridClock) Physical() bool { return true }

func (c *counter) restore(ts Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = max(c.next, min(ts, Last)+1)
}

// LogicalClock counts 1, 2, 3, …. It is for tests and for stores without a reliable wall clock. Its
// timestamps have no age, so no history is ever dropped.
type LogicalClock struct{ counter }

// NewLogicalClock returns a clock whose first timestamp is start, or First if that is greater.
func NewLogicalClock(start Timestamp) *LogicalClock {
	return &LogicalClock{counter{next: max(start, First)}}
}

// Now returns the next number.
func (c *LogicalClock) Now() (Timestamp, error) { return c.take(First) }

// Pass refuses a ts only if no timestamp would be left, since there is no wall clock to compare
// with.
func (c *LogicalClock) Pass(ts Timestamp) error { return c.pass(ts, Last-1) }

// Advance refuses a ts only if no timestamp would be left, since there is no wall clock to compare
// with.
func (c *LogicalClock) Advance(ts Timestamp) error { return c.pass(ts, Last-1) }

// Restore makes Now return only timestamps above ts.
func (c *LogicalClock) Restore(ts Timestamp) { c.restore(ts) }

// Physical returns false.
func (c *LogicalClock) Physical() bool { return false }
