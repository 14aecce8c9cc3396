package store

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// pacer keeps garbage from doubling the memory of a store.
//
// Go collects when the heap has twice the bytes that were live at the last collection. A store with
// a MemoryLimit of 256 MiB would take 512 MiB. The pacer collects before, once the heap of the
// program has
//
//	bound = MemoryLimit + garbageBytes + twice the live bytes that are not of the store
//
// bytes, with the gaps between objects: a cache whose values come and go has up to 100 MiB of
// them. So the program has as much garbage of its own as without a store. The runtime's own settings
// apply too, whichever collects first:
//
//	GOGC=100          "twice" above; with another value the live bytes of the program grow by that
//	GOMEMLIMIT        the runtime collects earlier if its limit is less than the bound
//	GOGC=off          the pacer does nothing: the program collects itself, or leaves it to GOMEMLIMIT
//
// The store counts its memory (see package budget), but not all: uncountedBytes are taken for its
// own. Another store in the process counts as the program.
//
// Pages that become free stay with the process for a while, and are resident memory. If these and the heap
// are more than residentBytes above the limit, a collection returns all free pages at once. That costs a page
// fault for each page that is used again, so it is done only then.
//
// The pacer reads the heap's size so often that it notices the bound at any rate of allocation that
// machines reach. It sleeps while the store has no call and no background work, and in a store that
// is too small for the bound it wakes ten times a second.
type pacer struct {
	limit   int64        // Options.MemoryLimit
	counted func() int64 // bytes that the store counts as its own
	busy    func() bool  // reports whether a call is running

	jobs        atomic.Int32 // background operations that are running
	collections atomic.Int64 // that the pacer has run

	asleep atomic.Bool
	awake  chan struct{} // gets a value when asleep becomes false
	quit   chan struct{}
	done   sync.WaitGroup
}

const (
	garbageBytes   = 48 << 20 // of the store
	uncountedBytes = 32 << 20
	residentBytes  = 72 << 20 // of memory that the runtime has, with garbageBytes; the program's code comes on top

	// garbageShare: at least 1/garbageShare of the live bytes are allocated between two collections of
	// the pacer, whatever the bound, since a collection takes time in proportion to the live bytes.
	garbageShare = 4

	allocRate   = 2 << 30 // bytes per second that a program allocates at most
	soonest     = 2 * time.Millisecond
	latest      = 100 * time.Millisecond
	idleGrowth  = 256 << 10 // bytes by which the heap of an idle program may grow
	sleepsAfter = time.Second
)

// collecting is held during a collection of any pacer of the process.
var collecting sync.Mutex

// heap is a reading of the runtime's metrics.
type heap struct {
	objects int64 // bytes of objects, garbage included
	gaps    int64 // bytes between objects, in memory for objects of their sizes
	live    int64 // bytes that the last collection found in use
	goal    int64 // bytes of objects at which the runtime collects
	percent int64 // GOGC; negative if it is off
	cycles  int64 // collections so far
	mapped  int64 // bytes that the runtime has from the system
	given   int64 // of these, bytes that it has given back
}

// Names of the metrics, in the order of the fields of heap.
var heapMetrics = [...]string{"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
	"/gc/heap/live:bytes", "/gc/heap/goal:bytes", "/gc/gogc:percent", "/gc/cycles/total:gc-cycles",
	"/memory/classes/total:bytes", "/memory/classes/heap/released:bytes"}

// heapReader reads the metrics. Not safe for concurrent use.
type heapReader struct {
	samples [len(heapMetrics)]metrics.Sample
}

func (r *heapReader) read() heap {
	for i, name := range heapMetrics {
		r.samples[i].Name = name
	}
	metrics.Read(r.samples[:])
	value := func(i int) int64 { return int64(min(r.samples[i].Value.Uint64(), math.MaxInt64)) }
	h := heap{value(0), value(1), value(2), value(3), value(4), value(5), value(6), value(7)}
	if h.percent == math.MaxInt64 {
		h.percent = -1
	}
	return h
}

func newPacer(limit int64, counted func() int64, busy func() bool) *pacer {
	return &pacer{limit: limit, counted: counted, busy: busy, awake: make(chan struct{}, 1),
		quit: make(chan struct{})}
}

func (p *pacer) start() { p.done.Go(p.run) }

// stop ends the pacer, which was started. It may be called once.
func (p *pacer) stop() {
	close(p.quit)
	p.done.Wait()
}

// wake makes the pacer work again. It is called when a call or a background operation has begun, and
// costs nothing if the pacer is not asleep.
func (p *pacer) wake() {
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		select {
		case p.awake <- struct{}{}:
		default:
		}
	}
}

// beginJob notes that a background operation begins, and endJob that it has ended.
func (p *pacer) beginJob() {
	p.jobs.Add(1)
	p.wake()
}

func (p *pacer) endJob() { p.jobs.Add(-1) }

func (p *pacer) run() {
	var r heapReader
	var s paceState
	timer := time.NewTimer(latest)
	defer timer.Stop()
	for {
		h, counted := r.read(), p.counted()
		s.note(h, counted)
		if s.due(h, p.limit) && collecting.TryLock() {
			if s.crowded(h, p.limit) {
				debug.FreeOSMemory() // which collects too
			} else {
				runtime.GC()
			}
			collecting.Unlock()
			p.collections.Add(1)
			s.note(r.read(), counted)
			continue
		}
		if p.idle(h, &s) {
			if p.sleep() {
				return
			}
			s.idleSince = time.Now() // short calls do not wake it one by one
		}
		timer.Reset(s.wait(h, p.limit))
		select {
		case <-timer.C:
		case <-p.quit:
			return
		}
	}
}

// idle reports whether the pacer may sleep: neither a call nor a background operation is running,
// and the heap has not grown for a while.
func (p *pacer) idle(h heap, s *paceState) bool {
	now := time.Now()
	if h.objects > s.idleBytes+idleGrowth || h.objects < s.idleBytes || p.busy() || p.jobs.Load() > 0 {
		s.idleBytes, s.idleSince = h.objects, now
	}
	return now.Sub(s.idleSince) >= sleepsAfter
}

// sleep waits until something begins. It reports whether the pacer was stopped.
func (p *pacer) sleep() (stopped bool) {
	p.asleep.Store(true)
	// What begins from here on sees that the pacer is asleep. What has begun before is seen here.
	if p.busy() || p.jobs.Load() > 0 {
		p.wake()
	}
	select {
	case <-p.awake:
		return false
	case <-p.quit:
		return true
	}
}

// paceState is what a pacer remembers of earlier readings.
type paceState struct {
	cycles int64
	most   int64 // bytes that the store has counted since that many cycles, at most
	marked int64 // the same for the cycle before: the live bytes of the last collection include them

	idleBytes int64 // of the heap
	idleSince time.Time
}

// note takes over a reading. A collection finds bytes live that the store has freed while it ran.
func (s *paceState) note(h heap, counted int64) {
	s.most = max(s.most, counted)
	if h.cycles != s.cycles {
		s.cycles, s.marked, s.most = h.cycles, s.most, counted
	}
}

// bound returns the size of the heap at which a store with a memory limit has a collection run.
func (s *paceState) bound(h heap, limit int64) int64 {
	others := max(0, h.live-s.marked-uncountedBytes)
	return limit + garbageBytes + others + others/100*h.percent
}

// due reports whether a collection is due that the runtime would run later.
func (s *paceState) due(h heap, limit int64) bool {
	bound := s.bound(h, limit)
	return h.percent >= 0 && h.objects+h.gaps >= bound && h.goal+h.gaps > bound &&
		h.objects-h.live >= h.live/garbageShare
}

// crowded reports whether the runtime's memory with its free pages is too large.
func (s *paceState) crowded(h heap, limit int64) bool {
	return h.mapped-h.given > s.bound(h, limit)+residentBytes-garbageBytes
}

// wait returns after what time the next reading is due.
func (s *paceState) wait(h heap, limit int64) time.Duration {
	if h.percent < 0 {
		return latest
	}
	room := max(0, s.bound(h, limit)-h.objects-h.gaps)
	return min(max(time.Duration(float64(room)/allocRate*float64(time.Second)), soonest), latest)
}
