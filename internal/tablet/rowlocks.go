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

func (s *stripes) has(stripe uint16) bool { return s[stripe/64]>>(stripe%64)&1 != 0 }
func (s *stripes) add(stripe uint16)      { s[stripe/64] |= 1 << (stripe % 64) }
func (s *stripes) remove(stripe uint16)   { s[stripe/64] &^= 1 << (stripe % 64) }

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
	wanted  map[uint16]int  // by stripe: how often waiting batches want it
	alls    int             // waiting batches that want all stripes
}

type waitingBatch struct {
	want    []uint16
	all     bool          // all stripes, instead of want
	granted chan struct{} // closed when want is held for the batch
}

// lock locks stripes, which may be given more than once. wanted is not changed until lock returns.
func (l *rowLocks) lock(wanted []uint16) {
	l.begin()
	if l.alls == 0 && !slices.ContainsFunc(wanted, l.isTaken) {
		l.hold(wanted)
		l.mu.Unlock()
		return
	}
	if l.wanted == nil {
		l.wanted = map[uint16]int{}
	}
	for _, s := range wanted {
		l.wanted[s]++
	}
	l.wait(&waitingBatch{want: wanted, granted: make(chan struct{})})
}

// tryLock locks a stripe and returns true, unless it is held or another batch waits.
func (l *rowLocks) tryLock(stripe uint16) bool {
	l.begin()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 || l.held.has(stripe) {
		return false
	}
	l.held.add(stripe)
	return true
}

// lockAll locks all stripes.
func (l *rowLocks) lockAll() {
	l.begin()
	if len(l.waiting) == 0 && *l.held == (stripes{}) {
		l.holdAll()
		l.mu.Unlock()
		return
	}
	l.alls++
	l.wait(&waitingBatch{all: true, granted: make(chan struct{})})
}

// begin locks l.mu and makes held.
func (l *rowLocks) begin() {
	l.mu.Lock()
	if l.held == nil {
		l.held = new(stripes)
	}
}

// isTaken reports whether a stripe is held, or wanted by a batch that waits.
func (l *rowLocks) isTaken(stripe uint16) bool { return l.held.has(stripe) || l.wanted[stripe] > 0 }

func (l *rowLocks) hold(wanted []uint16) {
	for _, s := range wanted {
		l.held.add(s)
	}
}

func (l *rowLocks) holdAll() {
	for i := range l.held {
		l.held[i] = ^uint64(0)
	}
}

// wait waits until the stripes of w are held for it. It unlocks l.mu.
func (l *rowLocks) wait(w *waitingBatch) {
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	<-w.granted
}

// unlock unlocks stripes, which may be given more than once.
func (l *rowLocks) unlock(held []uint16) {
	l.mu.Lock()
	for _, s := range held {
		l.held.remove(s)
	}
	contended := len(l.waiting) > 0
	if contended {
		var freed stripes
		for _, s := range held {
			freed.add(s)
		}
		l.grant(&freed)
	}
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
	freed := *l.held
	*l.held = stripes{}
	l.grant(&freed)
}

// grant gives freed stripes to the batches that need no others any more. It ends when an earlier batch wants
// each of the freed stripes: later batches wait as before.
func (l *rowLocks) grant(freed *stripes) {
	taken := *l.held // or wanted by an earlier batch
	for i := 0; i < len(l.waiting) && *freed != (stripes{}); {
		w := l.waiting[i]
		granted := !slices.ContainsFunc(w.want, taken.has)
		if w.all {
			if taken != (stripes{}) {
				return
			}
			l.holdAll()
			l.alls--
		}
		for _, s := range w.want {
			taken.add(s)
			freed.remove(s)
		}
		if !granted {
			i++
			continue
		}
		for _, s := range w.want {
			l.held.add(s)
			if l.wanted[s]--; l.wanted[s] == 0 {
				delete(l.wanted, s)
			}
		}
		l.waiting[i] = nil
		if i == 0 {
			l.waiting = l.waiting[1:]
		} else {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		}
		close(w.granted)
		if w.all {
			return
		}
	}
}
