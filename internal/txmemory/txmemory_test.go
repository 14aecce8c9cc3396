package txmemory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

const (
	limit = 16 << 20
	share = MostShare
)

// use calls Use in a goroutine, after all goroutines that are to wait before it do.
func use(p *Pool, a *Account, ctx context.Context, size int64) chan error {
	out := make(chan error, 1)
	p.mu.Lock()
	before := len(p.waiting)
	p.mu.Unlock()
	go func() { out <- a.Use(ctx, size) }()
	for {
		p.mu.Lock()
		after := len(p.waiting)
		p.mu.Unlock()
		if after > before || len(out) > 0 {
			return out
		}
	}
}

func TestTransactionsWaitForMemoryBeyondTheirShare(t *testing.T) {
	ctx := context.Background()
	p := New(limit)
	a, b := p.Open(), p.Open()
	must.Do(t, a.Use(ctx, limit+share))
	must.Fail(t, a.Use(ctx, limit+share+1), fault.ErrBatchTooLarge)
	for range 100 {
		must.Do(t, p.Open().Use(ctx, share))
	}
	short, cancel := context.WithCancel(ctx)
	waits := use(p, b, short, share+1)
	must.Equal(t, len(waits), 0, "answers while the pool is empty")
	cancel()
	err := <-waits
	must.Fail(t, err, fault.ErrTransactionsFull)
	must.Fail(t, err, context.Canceled)
	if !strings.Contains(err.Error(), "the oldest of 102 is open for") {
		t.Errorf("error %q", err)
	}
	waits = use(p, b, ctx, share+1)
	a.Close()
	must.Do(t, <-waits)
	b.Close()
	must.Equal(t, p.used, 0, "bytes in use")
}

func TestOldestTransactionIsServedFirst(t *testing.T) {
	ctx := context.Background()
	p := New(limit)
	a, b, c := p.Open(), p.Open(), p.Open()
	must.Do(t, a.Use(ctx, share+limit-step))
	third := use(p, c, ctx, share+2*step)
	second := use(p, b, ctx, share+limit)
	must.Do(t, a.Use(ctx, share)) // a gives memory back
	must.Do(t, <-second)
	must.Equal(t, len(third), 0, "answers")
	b.Close()
	must.Do(t, <-third)
}

func TestYoungestTransactionGivesWayIfAllWait(t *testing.T) {
	ctx := context.Background()
	p := New(limit)
	a, b := p.Open(), p.Open()
	must.Do(t, a.Use(ctx, share+limit/2))
	must.Do(t, b.Use(ctx, share+limit/2))
	first := use(p, a, ctx, share+limit)
	err := b.Use(ctx, share+limit)
	must.Fail(t, err, fault.ErrTransactionsFull)
	must.Fail(t, err, ErrGivesWay)
	b.Close()
	must.Do(t, <-first)

	b = p.Open()
	waits := use(p, b, ctx, 2*share)
	p.Shut()
	must.Fail(t, <-waits, fault.ErrClosed)
}

// Many transactions that grow in steps, give up, and try again all come to an end, and never take more
// than the pool has.
func TestNoTransactionWaitsForever(t *testing.T) {
	p := New(limit)
	var wg sync.WaitGroup
	for g := range 8 {
		rng := seedtest.Rand(t)
		wg.Go(func() {
			for i := range 200 {
				a := p.Open()
				for size := int64(0); size < share+limit; {
					size += rng.Int64N(limit / 3)
					err := a.Use(context.Background(), size)
					p.mu.Lock()
					used := p.used
					p.mu.Unlock()
					if used > limit || used < 0 {
						t.Error(fmt.Errorf("%d bytes are in use", used))
					}
					if err != nil {
						if !errors.Is(err, ErrGivesWay) && !errors.Is(err, fault.ErrBatchTooLarge) {
							t.Errorf("goroutine %d, step %d: %v", g, i, err)
						}
						break
					}
				}
				a.Close()
			}
		})
	}
	wg.Wait()
	must.Equal(t, p.used, 0, "bytes in use")
}
