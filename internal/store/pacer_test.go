package store

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

const mib = 1 << 20

// The pacer collects when the heap reaches the memory limit and the permitted garbage, plus the live
// bytes of the program with the garbage that GOGC allows. It leaves the rest to the runtime.
func TestPacerBoundsTheHeap(t *testing.T) {
	const limit = 256 * mib
	for _, c := range []struct {
		name    string
		heap    heap // in MiB
		counted int64
		bound   int64 // in MiB
		due     bool
	}{
		{"small heap", heap{objects: 50, live: 30, goal: 60, percent: 100}, 20, 304, false},
		{"store at its limit", heap{objects: 304, live: 200, goal: 400, percent: 100}, 190, 304, true},
		{"store below its limit", heap{objects: 303, live: 200, goal: 400, percent: 100}, 190, 304, false},
		{"program of 500 MiB", heap{objects: 600, live: 700, goal: 1400, percent: 100}, 168, 1304, false},
		{"program of 500 MiB at the bound", heap{objects: 1304, live: 700, goal: 1400, percent: 100}, 168, 1304, true},
		{"program with GOGC=400", heap{objects: 1320, live: 700, goal: 3500, percent: 400}, 168, 2804, false},
		{"little garbage", heap{objects: 330, live: 290, goal: 580, percent: 100}, 280, 304, false},
		{"GOMEMLIMIT below the bound", heap{objects: 320, live: 200, goal: 300, percent: 100}, 190, 304, false},
		{"GOMEMLIMIT above the bound", heap{objects: 304, live: 200, goal: 400, percent: 100}, 190, 304, true},
		{"gaps", heap{objects: 204, gaps: 100, live: 140, goal: 280, percent: 100}, 135, 304, true},
		{"fewer gaps", heap{objects: 204, gaps: 99, live: 140, goal: 280, percent: 100}, 135, 304, false},
		{"GOGC=off", heap{objects: 2000, live: 200, goal: 1 << 40, percent: -1}, 190, 304, false},
	} {
		for _, f := range []*int64{&c.heap.objects, &c.heap.gaps, &c.heap.live, &c.heap.goal} {
			*f *= mib
		}
		c.heap.cycles = 1
		var s paceState
		s.note(c.heap, c.counted*mib)
		if c.heap.percent >= 0 {
			must.Equal(t, s.bound(c.heap, limit)/mib, c.bound, c.name, "bound")
		}
		must.Equal(t, s.due(c.heap, limit), c.due, c.name)
	}
}

// Bytes that the store has freed since a collection began are not live bytes of the program.
func TestPacerRemembersFreedMemory(t *testing.T) {
	var s paceState
	h := heap{live: 100 * mib, percent: 100, cycles: 1}
	s.note(h, 100*mib)
	s.note(h, 200*mib)
	h.live, h.cycles = 210*mib, 2
	s.note(h, 20*mib)
	must.Equal(t, s.bound(h, 64*mib)/mib, 112, "bound after a flush")
	h.cycles = 3
	s.note(h, 20*mib)
	must.Equal(t, s.bound(h, 64*mib)/mib, 112+(210-20-32)+157, "bound of a program with 210 MiB")
}

// The closer the heap is to the bound, the sooner is the next reading.
func TestPacerReadsTheHeapInTime(t *testing.T) {
	var s paceState
	const limit = 256 * mib // bound: 304
	for _, c := range []struct {
		objects int64
		want    time.Duration
	}{{0, latest}, {304 - 128, 62500 * time.Microsecond}, {304, soonest}, {500, soonest}} {
		must.Equal(t, s.wait(heap{objects: c.objects * mib, percent: 100}, limit), c.want, c.objects)
	}
	must.Equal(t, s.wait(heap{objects: 100 * mib, gaps: 76 * mib, percent: 100}, limit), 62500*time.Microsecond, "gaps")
	must.Equal(t, s.wait(heap{objects: 500 * mib, percent: -1}, limit), latest, "GOGC=off")
}

// A pacer sleeps while nothing happens, and works again after a call or a job has begun.
func TestPacerSleepsAndCollects(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10000))
	const live = 64 * mib
	kept := make([][]byte, live/mib)
	for i := range kept {
		kept[i] = make([]byte, mib)
	}
	// Nothing counts as the program's own, of which GOGC would allow a hundred times as much garbage.
	p := newPacer(16*mib, func() int64 { return math.MaxInt64 / 2 }, func() bool { return false })
	p.asleep.Store(true) // as after a second without calls
	p.start()
	defer p.stop()
	p.beginJob()
	must.Equal(t, p.asleep.Load(), false, "asleep with a job")
	var r heapReader
	for i := 0; p.collections.Load() == 0; i++ { // the test would time out
		if r.read().objects < 512*mib { // a collection that runs is slow on a busy machine
			kept[i%len(kept)] = make([]byte, mib)
		}
		runtime.Gosched()
	}
	p.endJob()
}

// The reader sees that the program has disabled the collector.
func TestHeapReaderReadsGOGC(t *testing.T) {
	var r heapReader
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	must.Equal(t, r.read().percent, -1)
	debug.SetGCPercent(150)
	h := r.read()
	must.Equal(t, h.percent, 150)
	if h.objects <= 0 || h.goal < 0 || h.cycles < 0 {
		t.Errorf("reading %+v", h)
	}
}

// Free pages count as soon as they and the heap exceed what the process may have.
func TestPacerReturnsFreePages(t *testing.T) {
	for _, c := range []struct {
		mapped, given int64 // in MiB
		crowded       bool
	}{{328, 0, false}, {329, 0, true}, {400, 72, false}, {400, 71, true}} {
		var s paceState
		h := heap{objects: 304 * mib, live: 200 * mib, percent: 100, cycles: 1, mapped: c.mapped * mib, given: c.given * mib}
		s.note(h, 190*mib)
		must.Equal(t, s.crowded(h, 256*mib), c.crowded, "mapped", c.mapped, "given", c.given)
	}
}
