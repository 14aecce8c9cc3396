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
	var other bool
	must.Do(t, x.Wait(ctx, nil, 2, &other))
	must.Do(t, x.Wait(ctx, h, 1, &other))
	x.Pass(&other)
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var queued bool
			if err := x.Wait(ctx, nil, 1, &queued); err != nil || !ended.Load() {
				t.Errorf("a writer goes on next to a hold: %v", err)
			}
			x.Pass(&queued)
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
	var queued bool
	must.Fail(t, x.Wait(canceled, nil, 1, &queued), context.Canceled)
	x.Pass(&queued)
	ended.Store(true)
	h.End()
	wg.Wait()

	h = must.Get(x.Begin(ctx))(t)
	h.Add(1)
	done := make(chan error)
	go func() { done <- x.Wait(ctx, nil, 1, new(bool)) }()
	x.Shut()
	must.Fail(t, <-done, fault.ErrClosed)
}

func TestHoldWithoutStepsEnds(t *testing.T) {
	ctx := context.Background()
	x := New(time.Millisecond)
	h := must.Get(x.Begin(ctx))(t)
	h.Add(1)
	var queued bool
	must.Do(t, x.Wait(ctx, nil, 1, &queued))
	x.Pass(&queued)
	must.Equal(t, x.Held(nil, 1), false, "held")
	next := must.Get(x.Begin(ctx))(t)
	next.Add(1)
	h.End() // has no effect on the next one
	must.Equal(t, x.Held(nil, 1), true, "held")
	must.Do(t, must.Err(x.Begin(ctx)))
}

// A writer that a hold has kept waiting locks its rows before the next hold begins, however many wait for
// one.
func TestWritersComeBetweenHolds(t *testing.T) {
	ctx := context.Background()
	x := New(time.Hour)
	h := must.Get(x.Begin(ctx))(t)
	h.Add(1)
	waits, free := make(chan struct{}), make(chan struct{})
	var passed atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		var queued bool
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		must.Fail(t, x.Wait(canceled, nil, 1, &queued), context.Canceled) // it is queued from here on
		close(waits)
		if err := x.Wait(ctx, nil, 1, &queued); err != nil {
			t.Error(err)
		}
		<-free
		passed.Store(true)
		x.Pass(&queued)
	})
	<-waits
	for range 3 {
		wg.Go(func() {
			next, err := x.Begin(ctx)
			if err != nil || !passed.Load() {
				t.Errorf("a hold before the writer: %v", err)
				return
			}
			next.Add(1)
			next.End()
		})
	}
	h.End()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, must.Err(x.Begin(canceled)), context.Canceled, "no hold, but a writer")
	close(free)
	wg.Wait()
}
