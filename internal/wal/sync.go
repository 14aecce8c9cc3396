package wal

import (
	"fmt"
	"runtime"
	"time"
)

// Sync returns when all records up to upTo, inclusive, are durable. Of many callers one syncs for all:
//
//	time      →
//	appended  1   2 3 4                5
//	caller A  sync(1) ──────┐ leads for 1
//	caller B      sync(2)   wait ─────┐ leads for 2, 3, 4
//	caller C        sync(4) wait ─────┘ returns with B
//
// Append goes on meanwhile; only the change to a new segment waits for a sync under way, and the
// reverse. Errors: ErrPoisoned, ErrClosed.
func (l *Log) Sync(upTo LSN) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if upTo >= l.Next() {
		return fmt.Errorf("wal: sync up to LSN %d, the last is %d", upTo, l.Next()-1)
	}
	if l.Durable() >= upTo {
		return nil
	}
	began := l.group.enter()
	defer l.group.leave(began)
	for l.Durable() < upTo {
		if err := l.usable(); err != nil {
			return err
		}
		if l.syncing {
			l.synced.Wait()
		} else if err := l.lead(); err != nil {
			return err
		}
	}
	return nil
}

// lead syncs all that is appended. The caller holds mu, which is free during the sync, and found
// syncing false.
func (l *Log) lead() error {
	l.syncing = true
	l.gather()
	upTo, f := l.nextLSN.Load()-1, l.f // in this order: Append has written before it raises nextLSN
	began, covered := time.Now(), l.group.begin()
	l.mu.Unlock()
	err := f.Sync()
	l.syncs.Add(1)
	l.mu.Lock()
	l.syncing = false
	l.group.end(covered, time.Since(began))
	defer l.synced.Broadcast()
	if err != nil {
		return l.poison("sync", err)
	}
	l.durable.Store(upTo)
	return nil
}

// group counts who waits in Sync, so that a leader knows whether more are about to come. Guarded by Log.mu.
type group struct {
	waiting int           // whom no sync that has ended serves
	expect  int           // how many waited, served or not, when the last sync ended
	took    time.Duration // what it took
	begun   int           // syncs
	ended   int
}

// enter counts a caller in; leave takes what it gives.
func (g *group) enter() int {
	g.waiting++
	return g.begun
}

// leave counts a caller out, unless the end of a sync that began after it came has.
func (g *group) leave(began int) {
	if g.ended <= began {
		g.waiting--
	}
}

// begin gives how many the sync that begins will serve.
func (g *group) begin() int {
	g.begun++
	return g.waiting
}

func (g *group) end(covered int, took time.Duration) {
	g.expect, g.took = g.waiting, took
	g.waiting -= covered
	g.ended = g.begun
}

// gatherShare is the part of a sync's time that a leader may wait for others before it begins the next.
const gatherShare = 4

// gather waits a moment for those whom the last sync served: most come back at once with their next record. Without it writers fall
// into two halves, each waiting for the sync of the other:
//
//	sync 1: A B C D      sync 2: E F G H      sync 3: A B C D  …
//
// and a sync serves half of them. One writer alone never waits. The caller holds mu, which others take meanwhile, and has set syncing.
func (l *Log) gather() {
	if l.group.waiting >= l.group.expect {
		return
	}
	for end := time.Now().Add(l.group.took / gatherShare); l.group.waiting < l.group.expect && time.Now().Before(end); {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
}

// alone waits until nobody syncs, and keeps others from it until the caller calls share.
func (l *Log) alone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.synced.Wait()
	}
	l.syncing = true
}

func (l *Log) share() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing = false
	l.synced.Broadcast()
}

// Close makes all that was appended durable, seals the newest segment if it holds a record, and closes
// the file. It must not run at the same time as Append; waiters in Sync are served, a Release under way ends first. The
// footer tells that everything before it is durable: so damage to the last records of a closed log is
// not taken for a torn tail.
//
// Errors: ErrPoisoned; a poisoned log is closed without a sync. ErrNoSpace, if the footer does not fit:
// all is durable, but the log ends as a killed one does. A second Close returns what the first did.
func (l *Log) Close() error {
	l.releasing.Lock() // nothing may be unlinked behind the back of whoever opens the directory next
	defer l.releasing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.synced.Wait()
	}
	if l.closed.Load() {
		return l.closeErr
	}
	l.closeErr = l.Poisoned()
	if l.closeErr == nil && !l.isSealed && l.at.frames > 0 { // else all is durable already
		l.closeErr = l.seal()
	}
	l.closed.Store(true)
	if err := l.f.Close(); err != nil && l.closeErr == nil {
		l.closeErr = fmt.Errorf("wal: close: %w", err)
	}
	return l.closeErr
}
