package tablet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// interleaving runs jobs of one table, of which only one runs at a time. Each job stops at every
// point where it holds no lock: after its cutover point, after each window that it has read,
// between rounds of catching up, after its metadata commit. The test chooses which job continues,
// writes in between, and checks the table as restored after a kill there.
type interleaving struct {
	*rowHistories
	jobs    []*steppedJob
	current *steppedJob // nil: the test writes or checks
	steps   []string    // for error messages
}

type steppedJob struct {
	name    string
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	catchUp bool // catching up has begun
	fails   bool // its commit fails
	err     error
}

// stepContext is the context of a job. Run and catchUp call Err between their steps.
type stepContext struct {
	context.Context
	j *steppedJob
}

func (c stepContext) Err() error {
	if c.j.catchUp {
		c.j.yield(struct{}{})
	}
	return c.Context.Err()
}

// add adds a job, which begins at its first step.
func (l *interleaving) add(name string, fails bool, work func(ctx context.Context) error) {
	j := &steppedJob{name: name, fails: fails}
	j.resume, j.stop = iter.Pull(func(yield func(struct{}) bool) {
		j.yield = yield
		j.err = work(stepContext{context.Background(), j})
	})
	l.jobs = append(l.jobs, j)
}

// step continues a job until its next point, and removes it when it has ended.
func (l *interleaving) step(j *steppedJob) {
	l.t.Helper()
	l.steps = append(l.steps, j.name)
	l.current = j
	stop := func() { l.current.yield(struct{}{}) }
	var commit func()
	commit = func() {
		l.commitErr = nil
		if l.current.fails {
			l.commitErr = errNo
		}
		l.checkCrash()
		if len(l.steps)%2 == 0 && !l.blocked() { // this is not caught up before the commit
			l.steps = append(l.steps, "write")
			l.nextStep()
		}
		l.onCommit = commit
	}
	stopUnblocked := func() {
		if !l.blocked() {
			stop()
		}
	}
	l.onBegin, l.onRead, l.onCommit, l.onInstall = stop, stop, commit, stopUnblocked
	l.onGrow = func() { l.current.catchUp = true }
	_, more := j.resume()
	l.onBegin, l.onRead, l.onCommit, l.onInstall, l.onGrow, l.commitErr = nil, nil, nil, nil, nil, nil
	l.current = nil
	if more {
		return
	}
	l.steps = append(l.steps, j.name+" ended")
	l.jobs = slices.DeleteFunc(l.jobs, func(k *steppedJob) bool { return k == j })
	if !errors.Is(j.err, errNo) && (j.err != nil || j.fails) {
		l.t.Fatalf("%s: %v", j.name, j.err)
	}
}

// blocked reports whether the current job blocks writers, as a delta compaction does.
func (l *interleaving) blocked() bool {
	if l.tab.gate.TryLock() {
		l.tab.gate.Unlock()
		return false
	}
	return true
}

// checkCrash compares the newest rows, in the table as restored after a kill, with the model. While
// a job commits, the table itself cannot be read, as the test is in the middle of it.
func (l *interleaving) checkCrash() {
	l.t.Helper()
	n := l.reopened(0)
	if got, want := n.scan(latest, true), l.rows.scan(mvcc.Everything); !slices.Equal(got, want) {
		l.t.Fatalf("after a kill after %s: %s", strings.Join(l.steps, ", "), differ(got, want))
	}
	n.m.Close()
}

// run continues jobs in random order until all have ended, with two steps of writes in between.
func (l *interleaving) run(r *rand.Rand) {
	l.t.Helper()
	for len(l.jobs) > 0 {
		if r.IntN(4) == 0 && l.digit < l.keys {
			l.steps = append(l.steps, "write")
			l.nextStep()
			l.checkCrash()
		}
		l.step(l.jobs[r.IntN(len(l.jobs))])
		if r.IntN(4) == 0 {
			l.checkCrash()
		}
	}
}

// ids returns the rowsets with an odd ID, or those with an even one.
func (l *interleaving) ids(odd uint64) (ids []uint64) {
	for _, m := range l.tab.RowSetMetadata() {
		if m.ID%2 == odd {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// merge adds a merge that owns the rowsets from now on.
func (l *interleaving) merge(name string, fails bool, ids []uint64) {
	l.t.Helper()
	must.Do(l.t, l.tab.claims.beginCompaction(context.Background(), ids))
	l.add(name, fails, func(ctx context.Context) error {
		return l.tab.run(func() error { _, err := l.tab.mergeSets(ctx, ids, name, true); return err },
			func() { l.tab.claims.endCompaction(ids) })
	})
}

// concurrentJobs lists jobs that run concurrently. The table has rowsets with odd and with even
// IDs. Both kinds have changes in memory, and so has the MemRowSet.
var concurrentJobs = map[string]func(l *interleaving){
	"flush in a merge of all rowsets": func(l *interleaving) {
		l.merge("merge", false, append(l.ids(0), l.ids(1)...))
		l.add("flush", false, func(ctx context.Context) error { _, err := l.tab.Flush(ctx); return err })
	},
	"flush in a merge of some rowsets": func(l *interleaving) {
		l.merge("merge", false, l.ids(1))
		l.add("flush", false, func(ctx context.Context) error { _, err := l.tab.Flush(ctx); return err })
	},
	"two flushes in a merge, of which the first fails": func(l *interleaving) {
		l.merge("merge", false, l.ids(0))
		l.add("flush", true, func(ctx context.Context) error {
			_, err := l.tab.Flush(ctx)
			l.add("second flush", false, func(ctx context.Context) error { _, err := l.tab.Flush(ctx); return err })
			return err
		})
	},
	"flush in a merge that fails": func(l *interleaving) {
		l.merge("merge", true, l.ids(0))
		l.add("flush", false, func(ctx context.Context) error { _, err := l.tab.Flush(ctx); return err })
	},
	"flush in two merges": func(l *interleaving) {
		l.merge("merge of odd", false, l.ids(1))
		l.merge("merge of even", false, l.ids(0))
		l.add("flush", false, func(ctx context.Context) error { _, err := l.tab.Flush(ctx); return err })
	},
	"delta compactions and a flush in a merge": func(l *interleaving) {
		l.merge("merge", false, l.ids(1))
		even := l.ids(0)
		if err := l.tab.claims.beginCompaction(context.Background(), even); err != nil {
			l.t.Fatal(err)
		}
		l.add("delta compactions", false, func(ctx context.Context) error {
			return l.tab.run(func() error {
				for _, id := range even {
					l.current.yield(struct{}{})
					if _, err := l.tab.rewriteDeltas(ctx,
						compaction.DeltaChoice{RowSet: id, Kind: compaction.MajorDelta}); err != nil {
						return err
					}
				}
				return nil
			}, func() { l.tab.claims.endCompaction(even) })
		})
		l.add("flush", false, func(ctx context.Context) error { _, err := l.tab.FlushDeltas(ctx); return err })
	},
}

// Jobs that replace different parts of a table run concurrently, in any order of their steps, with
// writes in between. Nothing is lost or changed, in the table and after a kill at every point.
func TestConcurrentJobsKeepTheTable(t *testing.T) {
	orders := seedtest.Rounds(6, 2)
	for name, start := range concurrentJobs {
		t.Run(name, func(t *testing.T) {
			r := seedtest.Rand(t)
			for range orders {
				l := &interleaving{rowHistories: newRowHistories(t, 5)}
				l.nextStep()
				l.flush()
				l.nextStep()
				l.flush()
				l.nextStep()
				l.events = nil
				start(l)
				l.run(r)
				for l.digit < l.keys {
					l.nextStep()
				}
				l.check(l.testStore)
				l.crash()
				l.checkEvents()
				l.checkFree()
				l.flush()
				must.Equal(t, l.tab.FirstLSN(), lsn.Max, "first lsn after a flush")
				l.check(l.testStore)
				l.checkStored()
				l.checkEmpty()
				l.m.Close()
			}
		})
	}
}

// checkEvents fails unless each event begins with the layout with which the previous one ends.
func (l *interleaving) checkEvents() {
	l.t.Helper()
	for i, e := range l.events {
		if i > 0 && fmt.Sprint(e.Before) != fmt.Sprint(l.events[i-1].After) {
			l.t.Errorf("%s begins with the layout\n%v\nafter %s, which ends with\n%v", e.Kind, e.Before,
				l.events[i-1].Kind, l.events[i-1].After)
		}
	}
	if last := l.events[len(l.events)-1].After; fmt.Sprint(last) != fmt.Sprint(l.tab.Info()) {
		l.t.Errorf("the last event ends with\n%v\nthe table has\n%v", last, l.tab.Info())
	}
}
