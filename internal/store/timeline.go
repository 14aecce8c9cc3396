package store

import (
	"context"
	"sync"
	"time"

	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Timeline is the order of a store's write batches: the clock that assigns their timestamps, and the
// publisher that makes them visible. It is safe for concurrent use after Begin.
type Timeline struct {
	Clock mvcc.Clock
	*mvcc.Publisher

	last lsn.Atomic

	// mu is the critical section of a commit, which assigns timestamp, LSN, frame and publication
	// order.
	mu   sync.Mutex
	seen mvcc.Timestamp // of a follower: no batch up to here will come that it has not seen
}

// NewTimeline returns a timeline on which Begin must be called.
func NewTimeline(clock mvcc.Clock) *Timeline { return &Timeline{Clock: clock} }

// Begin begins the timeline after the newest write batch and the last LSN of the log. No batch up to
// seen, which is for followers, will come that is not in the log.
func (t *Timeline) Begin(newest mvcc.Timestamp, last lsn.LSN, seen mvcc.Timestamp) {
	t.seen = seen
	t.Clock.Restore(newest)
	t.last.Store(last)
	t.Publisher = mvcc.NewPublisher(newest, last)
}

// Advance makes visible what a follower has read of the log: the write batches up to newest and
// last. No batch up to seen will come that is not among them.
func (t *Timeline) Advance(newest mvcc.Timestamp, last lsn.LSN, seen mvcc.Timestamp) {
	t.Clock.Restore(newest)
	t.last.Store(last)
	t.Publisher.Advance(newest, last)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = max(t.seen, seen)
}

// LastLSN returns the LSN of the last record in the log.
func (t *Timeline) LastLSN() lsn.LSN { return t.last.Load() }

// InFlight reports whether there are write batches between the log and their publication.
func (t *Timeline) InFlight() bool { return t.FirstUnpublished() <= t.LastLSN() }

// WaitPublished waits until all batches at or below ts, which the clock has passed, are published.
// Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (t *Timeline) WaitPublished(ctx context.Context, ts mvcc.Timestamp) error {
	// A commit that took its timestamp before the clock passed ts may still be on its way to the
	// publisher. It has arrived once this goroutine has entered and left the critical section.
	t.mu.Lock()
	t.mu.Unlock() //lint:ignore SA2001 see above
	return t.WaitTimestamp(ctx, ts)
}

// Reached returns the highest timestamp at which a follower can be read: no batch up to it will come
// that is not visible.
func (t *Timeline) Reached() mvcc.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.Visible(), t.seen)
}

// Present returns the highest timestamp at which a writer can be read without waiting for write
// batches in flight: if there are none, the present time, which later ones are above.
func (t *Timeline) Present() mvcc.Timestamp {
	t.mu.Lock() // no write batch is between its timestamp and the publisher
	defer t.mu.Unlock()
	ts, pending := t.Complete()
	if pending {
		return ts
	}
	if now, err := t.Clock.Now(); err == nil {
		return now
	}
	return ts
}

// Now returns a timestamp that no batch has, and the LSN of the last batch with a lower one.
func (t *Timeline) Now() (ts mvcc.Timestamp, last lsn.LSN, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ts, err = t.Clock.Now()
	return ts, t.LastLSN(), err
}

// PhysicalTime returns the time of a physical clock, else 0.
func (t *Timeline) PhysicalTime() mvcc.Timestamp {
	if !t.Clock.Physical() {
		return 0
	}
	now, err := t.Clock.Now()
	if err != nil {
		return 0
	}
	return now
}

// Oldest returns the timestamp at which the history of a table begins now, which is kept for so many
// seconds. It is Min if history is kept forever, which a negative number means, if the clock is not a
// physical one, and until the table, which was empty when it was created, has any history to drop.
func (t *Timeline) Oldest(historySec int64, created mvcc.Timestamp) mvcc.Timestamp {
	if historySec < 0 {
		return mvcc.Min
	}
	now := t.PhysicalTime()
	if now == 0 {
		return mvcc.Min
	}
	oldest := mvcc.FromTime(now.Time().Add(-time.Duration(historySec) * time.Second))
	if oldest <= created {
		return mvcc.Min
	}
	return oldest
}
