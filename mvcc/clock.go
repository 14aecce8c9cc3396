package mvcc

import (
	"fmt"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// MaxAhead is how far Advance moves a physical clock ahead of the wall clock. It is Kudu's bound:
// a Kudu server ends at a log entry that is further ahead of its own clock.
const MaxAhead = 10 * time.Second

// Clock returns timestamps. Implementations are safe for concurrent use. Source: tablet spec
// §4.2.
type Clock interface {
	// Now returns a timestamp greater than every one returned before, at most Last. When there is
	// none left it returns an error, and keeps returning it: a real clock reaches that in the year
	// 2112.
	Now() (Timestamp, error)

	// Pass makes Now return only timestamps above ts, so that later batches do not change what a
	// read at ts returned. A ts above both the wall clock's microsecond and all timestamps that the
	// clock is past is ErrFuture, and leaves the clock as it was.
	Pass(ts Timestamp) error

	// Advance is Pass for a ts up to MaxAhead ahead of the wall clock.
	Advance(ts Timestamp) error

	// Restore is Advance without the bound: the store was written up to ts already, whatever the
	// wall clock says today. The caller has checked that ts, which comes from disk, is at most
	// Last.
	Restore(ts Timestamp)

	// Physical reports whether timestamps are times of a wall clock, so that history can have an
	// age.
	Physical() bool
}

// counter is the state both clocks share: the lowest timestamp that was not handed out.
type counter struct {
	mu   sync.Mutex
	next Timestamp // at least First
}

// take returns the lowest free timestamp that is not below floor.
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

// pass makes next greater than ts, unless next would have to go beyond limit + 1.
func (c *counter) pass(ts, limit Timestamp) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ts < c.next {
		return nil // however far ahead: the clock is there already
	}
	if ts > limit {
		return fmt.Errorf("the newest allowed now is %v: %w", limit, fault.ErrFuture)
	}
	c.next = ts + 1
	return nil
}

// HybridClock follows the wall clock and counts on by one while that stops or goes back.
type HybridClock struct {
	wall func() time.Time
	counter
}

// NewHybridClock returns a clock on top of wall, nil for time.Now.
func NewHybridClock(wall func() time.Time) *HybridClock {
	if wall == nil {
		wall = time.Now
	}
	return &HybridClock{wall: wall, counter: counter{next: First}}
}

// Now returns the wall clock's microsecond, or one more than the last timestamp where that is
// greater. The logical part runs over into the physical one by itself.
func (c *HybridClock) Now() (Timestamp, error) { return c.take(FromTime(c.wall())) }

// Pass refuses what is above the wall clock's microsecond, unless Now is above it anyway.
func (c *HybridClock) Pass(ts Timestamp) error { return c.pass(ts, min(EndOf(c.wall()), Last-1)) }

// Advance refuses what is more than MaxAhead ahead of the wall clock, unless Now is above it
// anyway.
func (c *HybridClock) Advance(ts Timestamp) error {
	return c.pass(ts, min(EndOf(c.wall().Add(MaxAhead)), Last-1))
}

// Restore makes Now return only timestamps above ts.
func (c *HybridClock) Restore(ts Timestamp) { c.restore(ts) }

// Physical is true.
func (c *HybridClock) Physical() bool { return true }

func (c *counter) restore(ts Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = max(c.next, min(ts, Last)+1)
}

// LogicalClock counts: 1, 2, 3 … It serves tests and stores without a trustworthy wall clock.
// History under it has no age, so nothing of it is ever dropped.
type LogicalClock struct{ counter }

// NewLogicalClock returns a clock whose first timestamp is start, or First if that is greater.
func NewLogicalClock(start Timestamp) *LogicalClock {
	return &LogicalClock{counter{next: max(start, First)}}
}

// Now returns the next number.
func (c *LogicalClock) Now() (Timestamp, error) { return c.take(First) }

// Pass has no wall clock to measure against; it refuses only what would leave no timestamp.
func (c *LogicalClock) Pass(ts Timestamp) error { return c.pass(ts, Last-1) }

// Advance has no wall clock to measure against; it refuses only what would leave no timestamp.
func (c *LogicalClock) Advance(ts Timestamp) error { return c.pass(ts, Last-1) }

// Restore makes Now return only timestamps above ts.
func (c *LogicalClock) Restore(ts Timestamp) { c.restore(ts) }

// Physical is false.
func (c *LogicalClock) Physical() bool { return false }
