package store

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Bandwidth limits the bytes per second that compactions write. It is safe for concurrent use.
type Bandwidth struct {
	limiter *rate.Limiter
	urgent  func() bool // reports whether nobody should wait
	now     func() time.Time
	sleep   func(ctx context.Context, d time.Duration) error
}

const (
	burstShare = 10                     // what may be written at once is the bandwidth of 1/burstShare of a second
	minBurst   = 4 << 10                // but at least so many bytes
	longestNap = 100 * time.Millisecond // after which a waiting compaction looks again whether it is urgent
)

// NewBandwidth returns a limit of bytes per second, which does not apply while urgent returns true.
func NewBandwidth(perSecond int64, urgent func() bool) *Bandwidth {
	burst := max(perSecond/burstShare, minBurst)
	return &Bandwidth{rate.NewLimiter(rate.Limit(perSecond), int(min(burst, 1<<30))), urgent, time.Now, sleep}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait waits until a number of bytes may be written. Errors: ctx.Err().
func (w *Bandwidth) Wait(ctx context.Context, bytes int64) error {
	for bytes > 0 {
		part := min(bytes, int64(w.limiter.Burst()))
		bytes -= part
		now := w.now()
		r := w.limiter.ReserveN(now, int(part))
		for end := now.Add(r.DelayFrom(now)); now.Before(end); now = w.now() {
			if w.urgent() { // what is written now need not be made up for later
				r.CancelAt(now)
				break
			}
			if err := w.sleep(ctx, min(end.Sub(now), longestNap)); err != nil {
				r.CancelAt(now)
				return err
			}
		}
	}
	return ctx.Err()
}
