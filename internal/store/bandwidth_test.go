package store

import (
	"context"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// fakeBandwidth returns a limit by a clock that only its own waiting moves, and the time that has
// passed on it.
func fakeBandwidth(perSecond int64, urgent func() bool) (*Bandwidth, func() time.Duration) {
	start := time.Unix(1000, 0)
	now := start
	w := NewBandwidth(perSecond, urgent)
	w.now = func() time.Time { return now }
	w.sleep = func(ctx context.Context, d time.Duration) error {
		now = now.Add(d)
		return ctx.Err()
	}
	return w, func() time.Duration { return now.Sub(start) }
}

// Whatever the sizes of the writes, they take the time that the bandwidth gives them, less one
// burst.
func TestBandwidthLimitsBytesPerSecond(t *testing.T) {
	const perSecond, total = 10 << 20, 64 << 20
	for _, size := range []int64{1000, 64 << 10, 1 << 20, 5 << 20, total} {
		w, passed := fakeBandwidth(perSecond, func() bool { return false })
		for left := int64(total); left > 0; left -= size {
			must.Do(t, w.Wait(context.Background(), min(size, left)))
		}
		want := time.Duration(float64(total)/perSecond*float64(time.Second)) - time.Second/burstShare
		if got := passed(); got < want-time.Millisecond || got > want+100*time.Millisecond {
			t.Errorf("writes of %d bytes: %v, want %v", size, got, want)
		}
	}
}

// While memory is short nothing waits, and what was written in this time is not made up for later.
func TestBandwidthDoesNotSlowUrgentWork(t *testing.T) {
	urgent := true
	w, passed := fakeBandwidth(1<<20, func() bool { return urgent })
	if err := w.Wait(context.Background(), 1<<30); err != nil || passed() > 0 {
		t.Errorf("%v after %v", err, passed())
	}
	urgent = false
	if err := w.Wait(context.Background(), 1<<20); err != nil || passed() > 1100*time.Millisecond ||
		passed() < 900*time.Millisecond {
		t.Errorf("%v after %v, want a second", err, passed())
	}
	calls := 0
	w.urgent = func() bool { calls++; return calls > 3 }
	before := passed()
	err := w.Wait(context.Background(), 1<<30)
	if got := passed() - before; err != nil || got > 3*longestNap || got < 3*longestNap-time.Millisecond {
		t.Errorf("%v after %v, want three naps", err, got)
	}
}

func TestBandwidthEndsWithItsContext(t *testing.T) {
	w, _ := fakeBandwidth(1000, func() bool { return false })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must.Fail(t, w.Wait(ctx, 1<<20), context.Canceled)
	must.Fail(t, sleep(ctx, time.Hour), context.Canceled)
}
