package tablet

import (
	"runtime"
	"slices"
	"sync"
)

// stripeCount is the number of stripes of a table. A key's hash selects its stripe.
const stripeCount = 1 << 12

// stripes is a set of stripes, a bit for each.
type stripes [stripeCount / 64]uint64

func (s *stripes) meets(o *stripes) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

func (s *stripes) add(o *stripes) {
	for i := range s {
		s[i] |= o[i]
	}
}

// rowLocks are the row locks of one table, one for each stripe of keys: a lock for each key would need
// a table of locks, and an array of mutexes takes 32 KiB in each of thousands of tables. A write batch
// takes all its stripes at once.
//
// Batches that have to wait get their stripes in the order in which they came: a batch waits for all
// earlier ones with which it shares a stripe, also for those that wait themselves. So a batch with many
// rows is not passed by small ones for ever. The zero value has no stripe locked.
type rowLocks struct {
	mu      sync.Mutex
	held    *stripes        // nil before the first lock
	waiting []*waitingBatch // in the order in which they came
}

type waitingBatch struct {
	want    stripes
	granted chan struct{} // closed when want is held for the batch
}

// lock locks stripes, which may be given more than once.
func (l *rowLocks) lock(wanted []uint16) {
	l.begin()
	if len(l.waiting) == 0 && l.take(wanted) {
		l.mu.Unlock()
		return
	}
	w := &waitingBatch{granted: make(chan struct{})}
	for _, s := range wanted {
		w.want[s/64] |= 1 << (s % 64)
	}
	l.wait(w)
}

// tryLock locks a stripe and returns true, unless it is held or another batch waits.
func (l *rowLocks) tryLock(stripe uint16) bool {
	l.begin()
	defer l.mu.Unlock()
	return len(l.waiting) == 0 && l.take([]uint16{stripe})
}

// lockAll locks all stripes.
func (l *rowLocks) lockAll() {
	w := &waitingBatch{granted: make(chan struct{})}
	for i := range w.want {
		w.want[i] = ^uint64(0)
	}
	l.begin()
	l.wait(w)
}

// begin locks l.mu and makes held.
func (l *rowLocks) begin() {
	l.mu.Lock()
	if l.held == nil {
		l.held = new(stripes)
	}
}

// take locks stripes and returns true if none of them is held.
func (l *rowLocks) take(wanted []uint16) bool {
	for _, s := range wanted {
		if l.held[s/64]>>(s%64)&1 != 0 {
			return false
		}
	}
	for _, s := range wanted {
		l.held[s/64] |= 1 << (s % 64)
	}
	return true
}

// wait waits until the stripes of w are held for it. It unlocks l.mu.
func (l *rowLocks) wait(w *waitingBatch) {
	l.waiting = append(l.waiting, w)
	l.grant()
	l.mu.Unlock()
	<-w.granted
}

// unlock unlocks stripes, which may be given more than once.
func (l *rowLocks) unlock(held []uint16) {
	l.mu.Lock()
	for _, s := range held {
		l.held[s/64] &^= 1 << (s % 64)
	}
	contended := len(l.waiting) > 0
	l.grant()
	l.mu.Unlock()
	if contended {
		// The batch that has the stripes now runs at once. Otherwise it may wait until this goroutine
		// has finished its batch and begun to wait for the stripes itself: one processor for all.
		runtime.Gosched()
	}
}

// unlockAll unlocks all stripes.
func (l *rowLocks) unlockAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	*l.held = stripes{}
	l.grant()
}

// grant gives the waiting batches their stripes, except for those that must wait on.
func (l *rowLocks) grant() {
	if len(l.waiting) == 0 {
		return
	}
	taken := *l.held // or wanted by an earlier batch
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waitingBatch) bool {
		granted := !w.want.meets(&taken)
		if taken.add(&w.want); granted {
			l.held.add(&w.want)
			close(w.granted)
		}
		return granted
	})
}
