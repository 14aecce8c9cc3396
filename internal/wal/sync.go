package wal

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Sync returns when all records up to upTo, inclusive, are durable. Of many callers one syncs for
// all:
//
//	time      →
//	appended  1   2 3 4                5
//	caller A  sync(1) ──────┐ leads for 1
//	caller B      sync(2)   wait ─────┐ leads for 2, 3, 4
//	caller C        sync(4) wait ─────┘ returns with B
//
// A sync does not block Append, unless Append begins a segment while the one before the newest is
// not sealed yet: the sync seals it. Errors: ErrPoisoned, ErrClosed.
func (l *Log) Sync(upTo lsn.LSN) error {
	if err := l.usable(); err != nil {
		return err
	}
	if upTo >= l.Next() {
		return fmt.Errorf("wal: sync up to LSN %d, the last is %d", upTo, l.Next()-1)
	}
	if l.Durable() >= upTo {
		return nil
	}
	if l.turn(upTo) {
		err := l.usable()
		if err == nil && l.Durable() < upTo {
			err = l.lead()
		}
		l.pass()
		return err
	}
	if l.Durable() >= upTo {
		return nil
	}
	return l.usable()
}

// lead syncs all appended records, in the caller's turn.
func (l *Log) lead() error {
	l.gather()
	return l.syncAll()
}

// syncAll is lead, at once.
func (l *Log) syncAll() error {
	upTo, err := l.flush()
	if err != nil {
		return err
	}
	l.mu.Lock()
	f, old := l.f, l.old // Append may replace them now: what it appends to another file is above upTo
	l.mu.Unlock()
	if old != nil {
		if err := l.sealOld(old); err != nil {
			return err
		}
	}
	if err := l.extendForSync(); err != nil {
		return err
	}
	began := time.Now()
	err = f.Sync()
	l.took = time.Since(began)
	l.syncs.Add(1)
	if err != nil {
		return l.poison("sync", err)
	}
	l.advance(max(upTo, l.Durable())) // the end of the full segment may be above upTo
	if old != nil {
		l.retire(old)
	}
	return nil
}

// advance announces that all records up to upTo are durable.
func (l *Log) advance(upTo lsn.LSN) {
	if l.o.Durable != nil {
		l.o.Durable(upTo)
	}
	l.durable.Store(upTo)
}

// waiter is a caller that waits for another caller's turn to end.
type waiter struct {
	upTo lsn.LSN
	// wake receives true if it is the waiter's turn to sync, and false if its record is durable.
	wake chan bool
}

var waiters = sync.Pool{New: func() any { return &waiter{wake: make(chan bool, 1)} }}

// never is an LSN that does not become durable: a caller that waits for it wants the turn.
const never = lsn.LSN(math.MaxUint64)

// turn waits until it is the caller's turn, or until upTo is durable or the log ended. It reports
// whether it is the caller's turn; the caller must then call pass. Only one caller at a time has
// the turn, to sync or to replace the newest segment.
func (l *Log) turn(upTo lsn.LSN) bool {
	l.mu.Lock()
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return true
	}
	if l.Durable() >= upTo { // since the caller looked
		l.mu.Unlock()
		return false
	}
	w := waiters.Get().(*waiter)
	w.upTo = upTo
	l.waiting = append(l.waiting, w)
	if l.gathers && int64(len(l.waiting)) >= l.expect {
		l.gathers = false
		l.full <- true
	}
	l.mu.Unlock()
	mine := <-w.wake
	waiters.Put(w)
	return mine
}

// pass ends the caller's turn. It wakes the waiters that the turn served, each once, and gives the
// turn to one of the others.
//
// It wakes them without the lock, since those that run at once take it for their next record, and
// the one with the turn last: a scheduler runs the goroutine that was woken last first.
func (l *Log) pass() {
	l.mu.Lock()
	l.gathers, l.expect = false, int64(len(l.waiting))
	if l.few > 0 {
		l.few, l.expect = l.few-1, min(l.expect, gatherFew)
	}
	durable, ended := l.Durable(), l.usable() != nil
	var next *waiter
	served := make([]*waiter, 0, len(l.waiting))
	left := l.waiting[:0]
	for _, w := range l.waiting {
		switch {
		case w.upTo <= durable || ended && w.upTo < never:
			served = append(served, w)
		case next == nil:
			next = w
		default:
			left = append(left, w)
		}
	}
	clear(l.waiting[len(left):])
	l.waiting = left
	l.taken = next != nil
	l.mu.Unlock()

	for _, w := range served {
		w.wake <- false
	}
	if next != nil {
		next.wake <- true
	}
}

// A leader waits for others before it syncs, at most the gatherShare-th part of a sync's duration.
// If more than gatherFew waited before, it waits at most as long as a sync takes: if half of them
// come for this sync and half for the next one, each half waits for the sync of the other. If less
// than half of them come in that time, later leaders wait for gatherFew of them: the writers do
// something else between their records, or the processors are slower than the disk.
const (
	gatherShare = 4
	gatherFew   = 24
)

// After that has happened, fewFirst syncs wait for gatherFew; then one tries again, and each further
// failure doubles the number.
const (
	fewFirst = 8
	fewMost  = 256
)

// gather waits briefly for the callers that waited during the last sync: most return at once with
// their next record. Without it writers split into two halves, each waiting for the sync of the
// other:
//
//	sync 1: A B C D      sync 2: E F G H      sync 3: A B C D  …
//
// and a sync serves half of them. A single writer never waits.
//
// It yields its processor while it waits: others need it, and a kernel delays a thread that has
// used much time when the sync is over.
func (l *Log) gather() {
	l.mu.Lock()
	short := int64(len(l.waiting)) < l.expect
	if l.gathers = short; short {
		select {
		case <-l.full: // left over from an earlier gather
		default:
		}
	}
	l.mu.Unlock()
	if !short {
		return
	}
	wait := l.took / gatherShare
	if l.expect > gatherFew {
		wait = l.took
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-l.full:
	case <-late.C:
		l.mu.Lock()
		came := int64(len(l.waiting))
		l.mu.Unlock()
		if l.expect > gatherFew && came < l.expect/2 {
			l.few, l.fewNext = l.fewNext, min(2*l.fewNext, fewMost)
			return
		}
	}
	if l.expect > gatherFew {
		l.fewNext = fewFirst
	}
}

// Close makes all appended records durable, seals the newest segment if it has a record, and closes
// the file. It must not run concurrently with Append. It serves waiters in Sync, and waits for a
// running Release. The footer proves that everything before it is durable, so damage to the last
// records of a closed log is not mistaken for a torn tail.
//
// Errors: ErrPoisoned; a poisoned log is closed without a sync. ErrNoSpace, if the footer does not
// fit: all records are durable, but the log has no footer, as after a kill of its writer. A second
// Close returns the same error.
func (l *Log) Close() error {
	l.releasing.Lock() // no file may be unlinked after the next opener has started
	defer l.releasing.Unlock()
	l.turn(never)
	defer l.pass()
	if l.closed.Load() {
		return l.closeErr
	}
	l.closeErr = l.Poisoned()
	if l.closeErr == nil && l.rolling() {
		l.closeErr = l.syncAll()
	}
	if l.closeErr == nil && !l.isSealed && l.at.frames > 0 { // otherwise all records are durable already
		l.closeErr = l.seal()
	}
	if l.old != nil {
		l.closeFull(l.old)
	}
	l.closeWindow(&l.mapped.window)
	l.closed.Store(true)
	if err := l.f.Close(); err != nil && l.closeErr == nil {
		l.closeErr = fmt.Errorf("wal: close: %w", err)
	}
	return l.closeErr
}

// seal seals the newest segment. The caller has the turn. If the footer does not fit, all records are
// durable.
func (l *Log) seal() error {
	if _, err := l.flush(); err != nil {
		return err
	}
	err := l.finish(&fullSegment{f: l.f, window: l.mapped.window, number: l.number, at: l.at,
		zeros: l.ahead.end.Load()})
	l.mapped.window = nil
	if errors.Is(err, fault.ErrNoSpace) {
		return l.undo(err)
	}
	if l.isSealed = err == nil; l.isSealed {
		l.tail.Store(l.at.off + footerLen)
		l.ahead.end.Store(l.at.off + footerLen)
	}
	return err
}
