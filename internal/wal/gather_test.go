package wal

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestLeadersWaitForAllWritersThatCome checks for how many writers a leader waits: for all that
// waited when the last turn ended, but for a few syncs only for gatherFew after less than half of
// them came in time.
func TestLeadersWaitForAllWritersThatCome(t *testing.T) {
	l := create(t, small(emptyMem(t)))
	appendAll(t, l, "a")
	const writers = 2 * gatherFew
	l.turn(never) // no other goroutine has or gets the turn below
	passWith := func(n int) (expect int64) {
		t.Helper()
		l.waiting = nil
		for range n {
			l.waiting = append(l.waiting, &waiter{upTo: never - 1, wake: make(chan bool, 1)})
		}
		l.pass()
		return l.expect
	}
	check := func(what string, got, want int64) {
		t.Helper()
		must.Equal(t, got, want, what)
	}

	l.took = 0 // a gather ends at once, with those who are there
	check("expected at first", passWith(writers), writers)
	l.gather() // one has the turn, the others wait: most came
	check("expected after most came", passWith(writers), writers)

	for _, syncs := range []int64{fewFirst, 2 * fewFirst} {
		l.waiting = l.waiting[:writers/2-1]
		l.gather()
		check("syncs that wait for few", l.few, syncs)
		for range syncs {
			check("expected after less than half came", passWith(writers), gatherFew)
			l.gather() // more than that are there
		}
		check("expected in the next try", passWith(writers), writers)
	}

	l.gather()
	l.waiting = l.waiting[:writers/2-1]
	l.gather()
	check("syncs that wait for few, after a gather that succeeded", l.few, fewFirst)

	check("expected of few writers", passWith(gatherFew/2), gatherFew/2)
	l.waiting, l.took = nil, 0
	l.gather()
	check("syncs that wait for few, of few writers", l.few, fewFirst-1)

	l.waiting = nil
	l.pass()
	must.Do(t, l.Close())
}
