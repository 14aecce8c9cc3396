package mvcc

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Publisher makes write batches visible in LSN order: a batch is visible when it and all earlier
// ones are ready, that is, applied and, if requested, durable.
//
// LSNs and timestamps ascend together, so the visible batches are always a prefix of both, given by
// one number:
//
//	started   1   2   3   4   5
//	ready     x   x   -   x   -
//	visible   ----+            4 is ready, but waits for 3
//
// A Publisher is safe for concurrent use, except that Start must be called in LSN order.
// Source: tablet spec §4.4, with publication in order instead of a set of applied timestamps.
type Publisher struct {
	// visible is the newest published Timestamp. Every read loads it, so it needs no lock; it is
	// stored with mu held, and only rises.
	visible atomic.Uint64

	// mu guards the batches in flight. Start appends them in the order of their LSNs, so a batch is
	// found by binary search, and publication removes a prefix.
	mu        sync.Mutex
	pending   []pending // started and not yet published, by LSN
	lastLSN   lsn.LSN
	lastTS    Timestamp
	durable   lsn.LSN       // every batch up to this LSN is durable
	stopped   error         // why publication has stopped; nil while running
	published chan struct{} // closed at the next publication, or when publication stops; nil until someone waits
}

// Op is one write batch between its start and its publication.
type Op struct {
	publisher *Publisher
	lsn       lsn.LSN
}

// pending is the state of a write batch that is not published.
type pending struct {
	lsn     lsn.LSN
	ts      Timestamp
	ready   bool
	applied bool          // and ready when it is durable
	done    chan struct{} // closed at publication, or when that has become impossible; nil until someone waits
}

// NewPublisher returns a Publisher for which every batch up to lastLSN and visible is published.
func NewPublisher(visible Timestamp, lastLSN lsn.LSN) *Publisher {
	p := &Publisher{lastLSN: lastLSN, lastTS: visible, durable: lastLSN}
	p.visible.Store(uint64(visible))
	return p
}

// Start registers the write batch with the given LSN and timestamp. Both must be above the LSNs and
// timestamps of all earlier batches, so the caller calls Start in the critical section that assigns
// them.
func (p *Publisher) Start(lsn lsn.LSN, ts Timestamp) Op {
	p.mu.Lock()
	defer p.mu.Unlock()
	if lsn <= p.lastLSN || ts <= p.lastTS {
		panic(fmt.Sprintf("mvcc: batch started at lsn %d, timestamp %d, after lsn %d, timestamp %d",
			lsn, uint64(ts), p.lastLSN, uint64(p.lastTS)))
	}
	p.lastLSN, p.lastTS = lsn, ts
	p.pending = append(p.pending, pending{lsn: lsn, ts: ts})
	return Op{p, lsn}
}

// find returns the state of o. The caller holds mu.
func (o Op) find() *pending {
	p := o.publisher.pending
	i := len(p) - 1
	if i < 0 || p[i].lsn != o.lsn { // else it is the newest, as with a single writer
		i = sort.Search(len(p), func(i int) bool { return p[i].lsn >= o.lsn })
	}
	if i == len(p) || p[i].lsn != o.lsn || p[i].ready || p[i].applied {
		panic(fmt.Sprintf("mvcc: batch at lsn %d is ready twice", o.lsn))
	}
	return &p[i]
}

// Ready records that the batch is applied, and durable if that was requested. It publishes no
// batch, or this batch and the later batches that waited for it. It must be called once. visible
// reports whether the batch is published.
func (o Op) Ready() (visible bool) {
	p := o.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	o.find().ready = true
	p.publish()
	return p.stopped == nil && (len(p.pending) == 0 || p.pending[0].lsn > o.lsn)
}

// Applied records that the batch is applied. The batch is ready once Durable has reached its LSN.
// It must be called once, and Ready must not be called.
func (o Op) Applied() {
	p := o.publisher
	p.mu.Lock()
	defer p.mu.Unlock()
	op := o.find()
	if op.applied = true; o.lsn <= p.durable {
		op.ready = true
		p.publish()
	}
}

// Durable records that every batch up to lsn is durable. One caller publishes all batches that its
// sync made durable, and their waiters find them visible when they wake.
func (p *Publisher) Durable(lsn lsn.LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.durable = max(p.durable, lsn)
	for i := range p.pending {
		op := &p.pending[i]
		if op.lsn > lsn {
			break
		}
		op.ready = op.ready || op.applied
	}
	p.publish()
}

// publish publishes the longest prefix of batches that are ready. The caller holds mu.
func (p *Publisher) publish() {
	if p.stopped != nil {
		return
	}
	n := 0
	for n < len(p.pending) && p.pending[n].ready {
		n++
	}
	if n == 0 {
		return
	}
	// Store visible first: a goroutine that is woken below must find its batch visible.
	p.visible.Store(uint64(p.pending[n-1].ts))
	p.announce()
	for _, op := range p.pending[:n] {
		if op.done != nil {
			close(op.done)
		}
	}
	p.pending = slices.Delete(p.pending, 0, n)
}

// Advance makes every batch up to lsn and ts visible. It is for a store whose batches another
// process publishes: none was started here. It does nothing if ts is visible.
func (p *Publisher) Advance(ts Timestamp, lsn lsn.LSN) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ts <= p.lastTS || p.stopped != nil {
		return
	}
	p.lastLSN, p.lastTS, p.durable = lsn, ts, lsn
	p.visible.Store(uint64(ts))
	p.announce()
}

// Visible returns the newest timestamp that readers may see: every batch at or below it is
// published.
func (p *Publisher) Visible() Timestamp { return Timestamp(p.visible.Load()) }

// Started returns the timestamp of the newest batch that was started, published or not.
func (p *Publisher) Started() Timestamp {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastTS
}

// FirstUnpublished returns the LSN of the oldest batch that is started but not published. If all
// started batches are published, it is one more than the last started LSN.
func (p *Publisher) FirstUnpublished() lsn.LSN {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return p.lastLSN + 1
	}
	return p.pending[0].lsn
}

// Complete returns a timestamp up to which every batch is published that was started so far, and
// reports whether any batch is left that is not: then it is the highest such timestamp.
func (p *Publisher) Complete() (ts Timestamp, pending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pending) == 0 {
		return p.Visible(), false
	}
	return Before(p.pending[0].ts).Newest(), true
}

// WaitLSN waits until every batch started so far with an LSN of at most lsn is published. Errors:
// ctx.Err(); ErrPoisoned; ErrClosed.
func (p *Publisher) WaitLSN(ctx context.Context, lsn lsn.LSN) error {
	return p.wait(ctx, func(op *pending) bool { return op.lsn > lsn })
}

// WaitTimestamp waits until every batch started so far with a timestamp of at most ts is published.
//
// For repeatable reads at ts, no such batch may start later either:
//
//	writer: Now() = 5                            Start(5)
//	reader:            Advance(7)  WaitTimestamp(7)        reads at 7, and 5 appears later
//
// so the reader passes through the writer's critical section between Advance and WaitTimestamp.
// Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (p *Publisher) WaitTimestamp(ctx context.Context, ts Timestamp) error {
	if ts <= p.Visible() {
		return nil
	}
	return p.wait(ctx, func(op *pending) bool { return op.ts > ts })
}

// wait waits for the last pending batch for which beyond is false. Pending batches are in order, so
// all earlier ones are published with it.
func (p *Publisher) wait(ctx context.Context, beyond func(*pending) bool) error {
	p.mu.Lock()
	i := sort.Search(len(p.pending), func(i int) bool { return beyond(&p.pending[i]) })
	if i == 0 {
		p.mu.Unlock()
		return nil
	}
	if err := p.stopped; err != nil {
		p.mu.Unlock()
		return err
	}
	op := &p.pending[i-1]
	if op.done == nil {
		op.done = make(chan struct{})
	}
	done, lsn := op.done, op.lsn
	p.mu.Unlock()

	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the write batch at lsn %d: %w", lsn, context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil && (len(p.pending) > 0 && lsn >= p.pending[0].lsn) {
		return p.stopped
	}
	return nil
}

// WaitAbove waits until a batch with a timestamp above ts is published. Errors: ctx.Err();
// ErrPoisoned; ErrClosed.
func (p *Publisher) WaitAbove(ctx context.Context, ts Timestamp) error {
	for {
		p.mu.Lock()
		if p.Visible() > ts {
			p.mu.Unlock()
			return nil
		}
		if err := p.stopped; err != nil {
			p.mu.Unlock()
			return err
		}
		if p.published == nil {
			p.published = make(chan struct{})
		}
		published := p.published
		p.mu.Unlock()
		select {
		case <-published:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a write batch after %v: %w", ts, context.Cause(ctx))
		}
	}
}

// announce wakes the callers of WaitAbove. The caller holds mu.
func (p *Publisher) announce() {
	if p.published != nil {
		close(p.published)
		p.published = nil
	}
}

// Poison stops publication permanently after a failed write: Visible no longer changes, and all
// waits for unpublished batches, now or later, return ErrPoisoned wrapping cause. Only the first
// Poison or Close has an effect.
func (p *Publisher) Poison(cause error) { p.stop(fmt.Errorf("%w: %w", fault.ErrPoisoned, cause)) }

// Close stops publication like Poison; waits return ErrClosed.
func (p *Publisher) Close() { p.stop(fault.ErrClosed) }

func (p *Publisher) stop(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		return
	}
	p.stopped = why
	p.announce()
	for _, op := range p.pending {
		if op.done != nil {
			close(op.done)
		}
	}
}
