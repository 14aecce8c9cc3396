package exclusive

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

func TestWritersWaitForTheHolder(t *testing.T) {
	ctx := context.Background()
	x := New(time.Hour)
	h := must.Get(x.Begin(ctx))(t)
	must.Equal(t, h.Add(1), true, "table 1 is new")
	must.Equal(t, h.Add(1), false, "table 1 is new")
	must.Do(t, x.Wait(ctx, nil, 2))
	must.Do(t, x.Wait(ctx, h, 1))
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := x.Wait(ctx, nil, 1); err != nil || !ended.Load() {
				t.Errorf("a writer goes on next to a hold: %v", err)
			}
		})
		wg.Go(func() {
			next, err := x.Begin(ctx)
			if err != nil || !ended.Load() {
				t.Errorf("two holds: %v", err)
				return
			}
			next.End()
		})
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, x.Wait(canceled, nil, 1), context.Canceled)
	ended.Store(true)
	h.End()
	wg.Wait()

	h = must.Get(x.Begin(ctx))(t)
	h.Add(1)
	done := make(chan error)
	go func() { done <- x.Wait(ctx, nil, 1) }()
	x.Shut()
	must.Fail(t, <-done, fault.ErrClosed)
}

func TestHoldWithoutStepsEnds(t *testing.T) {
	ctx := context.Background()
	x := New(time.Millisecond)
	h := must.Get(x.Begin(ctx))(t)
	h.Add(1)
	must.Do(t, x.Wait(ctx, nil, 1))
	must.Equal(t, x.Held(nil, 1), false, "held")
	next := must.Get(x.Begin(ctx))(t)
	next.Add(1)
	h.End() // has no effect on the next one
	must.Equal(t, x.Held(nil, 1), true, "held")
	must.Do(t, must.Err(x.Begin(ctx)))
}
