// Package exclusive holds writers off tables while a transaction reads them.
//
// At most one transaction has a Hold at a time. A writer looks whether one of its tables is held when
// it has locked its rows; if so, it unlocks them and waits:
//
//	transaction   holds t ─── locks all rows of t, unlocks ─── reads t ──────── commits, ends
//	writer 1      locks rows of t ── commits, unlocks
//	writer 2                            locks rows of t: held, unlocks, waits ──────── locks, commits
//
// So the transaction waits for writers that were there before, and sees what they have written; and
// no later one comes in between. A writer that has waited for a hold comes before the next one.
//
// A hold is a courtesy: the commit of the transaction checks what it has read in any case. So whoever
// waits may end a hold whose transaction makes no step for some time. The transaction may itself wait
// for that writer: its function may have called it, or the writer may have the memory that it needs.
package exclusive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// Patience is how long a hold lasts without a step of its transaction.
const Patience = time.Second

// Tables are the tables of a store. It is safe for concurrent use.
type Tables struct {
	patience time.Duration
	holder   atomic.Pointer[Hold]

	mu      sync.Mutex
	changed chan struct{} // closed when a hold ends, or all waiting, or a writer has passed
	queued  int           // writers that a hold has kept waiting and that have not locked their rows since
	shut    bool
}

// New returns Tables without a hold. patience is Patience, except in tests.
func New(patience time.Duration) *Tables {
	return &Tables{patience: patience, changed: make(chan struct{})}
}

// Hold is the right to hold writers off. Its methods are called by one goroutine at a time.
type Hold struct {
	of     *Tables
	tables atomic.Pointer[map[uint32]bool]
	steps  atomic.Uint64
}

// Begin waits until no transaction has a hold, and until the writers that earlier holds have kept
// waiting have locked their rows, and returns a hold without tables. Errors: ctx.Err();
// ErrClosed.
func (t *Tables) Begin(ctx context.Context) (*Hold, error) {
	h := &Hold{of: t}
	h.tables.Store(&map[uint32]bool{})
	err := t.wait(ctx, func() bool { return t.queued == 0 && t.holder.CompareAndSwap(nil, h) })
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Add adds a table and reports whether that is new. The caller then waits for the writers that have
// locked rows of the table.
func (h *Hold) Add(table uint32) bool {
	old := *h.tables.Load()
	if old[table] {
		return false
	}
	next := map[uint32]bool{table: true}
	for k := range old {
		next[k] = true
	}
	h.tables.Store(&next)
	return true
}

// Step notes that the transaction goes on.
func (h *Hold) Step() { h.steps.Add(1) }

// End ends the hold.
func (h *Hold) End() { h.of.end(h) }

func (t *Tables) end(h *Hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder.CompareAndSwap(h, nil) {
		t.wake()
	}
}

// wake lets all that wait look again. The caller holds mu.
func (t *Tables) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// Held reports whether a hold other than own, which may be nil, has a table.
func (t *Tables) Held(own *Hold, table uint32) bool {
	h := t.holder.Load()
	return h != nil && h != own && (*h.tables.Load())[table]
}

// Wait waits until no hold other than own has a table. If queued is not set, it sets it. No hold begins
// until the caller has locked its rows, or given up, and calls Pass with queued. Errors: ctx.Err();
// ErrClosed.
func (t *Tables) Wait(ctx context.Context, own *Hold, table uint32, queued *bool) error {
	if !*queued {
		*queued = true
		t.mu.Lock()
		t.queued++
		t.mu.Unlock()
	}
	return t.wait(ctx, func() bool { return !t.Held(own, table) })
}

// Pass lets holds begin again, if Wait has set queued.
func (t *Tables) Pass(queued *bool) {
	if !*queued {
		return
	}
	*queued = false
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued--; t.queued == 0 {
		t.wake()
	}
}

// wait waits until ready, which is called with mu held, returns true, and ends holds without steps
// meanwhile.
func (t *Tables) wait(ctx context.Context, ready func() bool) error {
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	var last *Hold
	var steps uint64
	for {
		t.mu.Lock()
		changed, shut := t.changed, t.shut
		done := !shut && ready()
		t.mu.Unlock()
		switch {
		case shut:
			return fault.ErrClosed
		case done:
			return nil
		}
		if h := t.holder.Load(); h != nil && h != last {
			last, steps = h, h.steps.Load()
			timer.Reset(t.patience)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if last != nil && last.steps.Load() == steps {
				t.end(last)
			} else if last != nil {
				steps = last.steps.Load()
			}
			timer.Reset(t.patience)
		}
	}
}

// Shut ends all waiting with ErrClosed, also later waiting.
func (t *Tables) Shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
	t.wake()
}
