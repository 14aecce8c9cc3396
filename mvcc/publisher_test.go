package mvcc

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
)

func TestNewPublisherHasEverythingPublished(t *testing.T) {
	p := NewPublisher(70, 7)
	must.Equal(t, p.Visible(), 70, "visible")
	must.Equal(t, p.FirstUnpublished(), 8, "first unpublished")
	ctx := context.Background()
	must.Do(t, errors.Join(p.WaitLSN(ctx, 1000), p.WaitTimestamp(ctx, Max)), "waiting for nothing")
}

func TestGapDelaysVisibility(t *testing.T) {
	p := NewPublisher(0, 0)
	ops := []Op{p.Start(1, 10), p.Start(2, 20), p.Start(5, 50)}
	steps := []struct {
		ready   int
		visible Timestamp
		first   lsn.LSN
	}{{1, 0, 1}, {0, 20, 5}, {2, 50, 6}}
	for _, s := range steps {
		ops[s.ready].Ready()
		must.Equal(t, p.Visible(), s.visible, "after batch", s.ready, "visible")
		must.Equal(t, p.FirstUnpublished(), s.first, "after batch", s.ready, "first unpublished")
	}
}

// TestPublisherMatchesModel compares with the definition: visible is the timestamp of the last
// batch before the first that is not ready.
func TestPublisherMatchesModel(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		p := NewPublisher(0, 0)
		type batch struct {
			op      Op
			lsn     lsn.LSN
			ts      Timestamp
			ready   bool
			applied bool // and ready when it is durable
		}
		var all []*batch
		last, ts, durable := lsn.LSN(0), Timestamp(0), lsn.LSN(0)
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				last += lsn.LSN(rapid.Uint64Range(1, 3).Draw(t, "lsn"))
				ts += Timestamp(rapid.Uint64Range(1, 3).Draw(t, "ts"))
				all = append(all, &batch{op: p.Start(last, ts), lsn: last, ts: ts})
			},
			"ready": func(t *rapid.T) {
				var open []*batch
				for _, b := range all {
					if !b.ready && !b.applied {
						open = append(open, b)
					}
				}
				if len(open) == 0 {
					t.Skip()
				}
				b := open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
				if rapid.Bool().Draw(t, "durable first") {
					b.ready = true
					b.op.Ready()
				} else {
					b.applied = true
					b.op.Applied()
				}
			},
			"durable": func(t *rapid.T) {
				// The log may know of a batch that Start has not registered yet, and may report an
				// older LSN later.
				to := lsn.LSN(rapid.Uint64Range(0, uint64(last+2)).Draw(t, "to"))
				durable = max(durable, to)
				p.Durable(to)
			},
			"": func(t *rapid.T) {
				visible, first := Min, last+1
				for _, b := range all {
					if !b.ready && (!b.applied || b.lsn > durable) {
						first = b.lsn
						break
					}
					visible = b.ts
				}
				if v, f := p.Visible(), p.FirstUnpublished(); v != visible || f != first {
					t.Fatalf("visible %d, first unpublished %d; want %d, %d", v, f, visible, first)
				}
				// With its context done already, a wait reports whether it would have waited.
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				at := lsn.LSN(rapid.Uint64Range(0, uint64(last+1)).Draw(t, "at"))
				if waits := p.WaitLSN(ctx, at) != nil; waits != (at >= first && first <= last) {
					t.Fatalf("WaitLSN(%d) waits: %v; first unpublished %d", at, waits, first)
				}
			},
		})
	})
}

// waiting runs wait in a goroutine and returns its result on a channel.
func waiting(wait func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- wait() }()
	return done
}

// awaitWaiter returns once a goroutine waits for op.
func awaitWaiter(op Op) {
	for {
		op.publisher.mu.Lock()
		waits := op.find().done != nil
		op.publisher.mu.Unlock()
		if waits {
			return
		}
		runtime.Gosched()
	}
}

func TestWaitEndsAtPublicationNotAtReadiness(t *testing.T) {
	p := NewPublisher(0, 0)
	a, b, c := p.Start(1, 10), p.Start(2, 20), p.Start(3, 30)
	ctx := context.Background()
	byLSN := waiting(func() error { return p.WaitLSN(ctx, 2) })
	byTS := waiting(func() error { return p.WaitTimestamp(ctx, 25) })
	awaitWaiter(b)
	b.Ready()
	select {
	case err := <-byLSN:
		t.Fatalf("the wait ended before the batch was published: %v", err)
	case err := <-byTS:
		t.Fatalf("the wait ended before the batch was published: %v", err)
	default:
	}
	a.Ready()
	must.Do(t, errors.Join(<-byLSN, <-byTS))
	must.Equal(t, p.Visible(), 20, "visible")
	c.Ready()
}

// awaitFollower returns once a goroutine waits in WaitAbove.
func awaitFollower(p *Publisher) {
	for waits := false; !waits; runtime.Gosched() {
		p.mu.Lock()
		waits = p.published != nil
		p.mu.Unlock()
	}
}

func TestWaitAboveEndsAtTheNextPublication(t *testing.T) {
	p, ctx := NewPublisher(5, 1), context.Background()
	must.Do(t, p.WaitAbove(ctx, 4))
	above := func(ts Timestamp) <-chan error {
		done := waiting(func() error { return p.WaitAbove(ctx, ts) })
		awaitFollower(p)
		return done
	}
	a, b := p.Start(2, 10), p.Start(3, 20)
	done := above(5)
	b.Ready()
	select {
	case err := <-done:
		t.Fatalf("the wait ended before a batch was published: %v", err)
	default:
	}
	a.Ready()
	must.Do(t, <-done)
	must.Equal(t, p.Visible(), 20, "visible")
	done = above(25)
	p.Start(4, 22).Ready()
	awaitFollower(p) // 22 is not above 25: it waits again
	p.Start(5, 30).Ready()
	must.Do(t, <-done)
	done = above(30)
	p.Poison(errors.New("disk on fire"))
	must.Fail(t, <-done, fault.ErrPoisoned)
	must.Fail(t, p.WaitAbove(ctx, 30), fault.ErrPoisoned)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, NewPublisher(5, 1).WaitAbove(canceled, 5), context.Canceled)
}

func TestWaitHonorsItsContext(t *testing.T) {
	p := NewPublisher(0, 0)
	op := p.Start(1, 10)
	ctx, cancel := context.WithCancel(context.Background())
	done := waiting(func() error { return p.WaitLSN(ctx, 1) })
	awaitWaiter(op)
	cancel()
	must.Fail(t, <-done, context.Canceled, "canceled wait")
	op.Ready()
	must.Equal(t, p.Visible(), 10, "a wait given up keeps the batch from being published")
}

func TestPoisonedPublisherDoesNotAdvance(t *testing.T) {
	ctx := context.Background()
	cause := errors.New("disk on fire")
	p := NewPublisher(0, 0)
	a, b := p.Start(1, 10), p.Start(2, 20)
	a.Ready()
	done := waiting(func() error { return p.WaitLSN(ctx, 2) })
	awaitWaiter(b)
	p.Poison(cause)
	p.Close() // too late to change the cause
	if err := <-done; !errors.Is(err, fault.ErrPoisoned) || !errors.Is(err, cause) {
		t.Fatalf("wait over a poisoned publisher: %v", err)
	}
	b.Ready()
	must.Equal(t, p.Visible(), 10, "visible")
	must.Equal(t, p.FirstUnpublished(), 2, "first unpublished")
	must.Fail(t, p.WaitTimestamp(ctx, 20), fault.ErrPoisoned, "late wait")
	must.Do(t, p.WaitTimestamp(ctx, 10), "wait for a published timestamp")
}

func TestClosedPublisherWakesWaiters(t *testing.T) {
	p := NewPublisher(0, 0)
	op := p.Start(1, 10)
	done := waiting(func() error { return p.WaitTimestamp(context.Background(), 10) })
	awaitWaiter(op)
	p.Close()
	p.Close()
	must.Fail(t, <-done, fault.ErrClosed, "wait over a closed publisher")
}

func TestWrongUsePanics(t *testing.T) {
	for name, misuse := range map[string]func(*Publisher){
		"lsn not ascending":       func(p *Publisher) { p.Start(5, 100) },
		"timestamp not ascending": func(p *Publisher) { p.Start(6, 50) },
		"ready twice":             func(p *Publisher) { op := p.Start(6, 60); op.Ready(); op.Ready() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "mvcc: ") {
					t.Errorf("recovered %q", msg)
				}
			}()
			misuse(NewPublisher(50, 5))
		})
	}
}

// TestVisibleBatchesAreAPrefixInTime lets goroutines finish batches in any order while readers
// check that all batches up to the visible timestamp have been applied.
func TestVisibleBatchesAreAPrefixInTime(t *testing.T) {
	const batches, workers = 3000, 4
	seed := seedtest.Seed(t)
	p := NewPublisher(0, 0)
	var mu sync.Mutex // the critical section that assigns LSN and timestamp
	var next lsn.LSN
	applied := make([]bool, batches+1) // by timestamp, which is the LSN; synchronized only by Ready and Visible
	var wg sync.WaitGroup
	for w := range workers {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			var mine []Op
			finish := func(keep int) {
				for len(mine) > keep {
					i := rnd.IntN(len(mine))
					applied[mine[i].lsn] = true
					mine[i].Ready()
					mine[i] = mine[len(mine)-1]
					mine = mine[:len(mine)-1]
				}
			}
			for {
				mu.Lock()
				if next == batches {
					mu.Unlock()
					break
				}
				next++
				op := p.Start(next, Timestamp(next))
				mu.Unlock()
				mine = append(mine, op)
				finish(rnd.IntN(8))
			}
			finish(0)
		})
	}
	readers := waiting(func() error {
		checked := Timestamp(0)
		for checked < batches {
			if err := p.WaitTimestamp(context.Background(), checked+1); err != nil {
				return err
			}
			runtime.Gosched() // the next batch may not have been started
			visible := p.Visible()
			for ; checked < visible; checked++ {
				if !applied[checked+1] {
					return errors.New("a batch is visible and not applied")
				}
			}
		}
		return nil
	})
	wg.Wait()
	must.Do(t, <-readers)
}
