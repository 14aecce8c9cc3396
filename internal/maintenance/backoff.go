package maintenance

import "time"

// The delay after a failure, which doubles with each further one in a row.
const (
	firstDelay = time.Second
	maxDelay   = 5 * time.Minute
)

// Job identifies an operation that may fail again: a kind of one table.
type Job struct {
	Kind  Kind
	Table uint32
}

// Backoff delays operations that have failed for a reason that may pass, such as a full disk. The
// zero value is ready to use. It is not safe for concurrent use.
type Backoff struct{ failed map[Job]failure }

type failure struct {
	delay time.Duration
	until time.Time
}

// Failed delays j after a failure at now.
func (b *Backoff) Failed(j Job, now time.Time) {
	if b.failed == nil {
		b.failed = map[Job]failure{}
	}
	f := b.failed[j]
	f.delay = min(max(firstDelay, 2*f.delay), maxDelay)
	f.until = now.Add(f.delay)
	b.failed[j] = f
}

// Succeeded ends the delay of j.
func (b *Backoff) Succeeded(j Job) { delete(b.failed, j) }

// Delayed reports whether j must wait.
func (b *Backoff) Delayed(j Job, now time.Time) bool {
	f, ok := b.failed[j]
	return ok && now.Before(f.until)
}

// Forget removes what is known of a table.
func (b *Backoff) Forget(table uint32) {
	for j := range b.failed {
		if j.Table == table {
			delete(b.failed, j)
		}
	}
}
