package tablet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// claimScript runs jobs that begin one after another and end when the test says so, and records
// which ones run.
type claimScript struct {
	t       *testing.T
	c       claims
	end     map[string]chan struct{}
	mu      sync.Mutex
	running []string
}

// begin starts a job, which waits with begin and gives back with end.
func (s *claimScript) begin(name string, begin func() error, end func()) {
	done := make(chan struct{})
	s.end[name] = done
	go func() {
		if err := begin(); err != nil {
			s.set(func() { s.running = append(s.running, name+": "+err.Error()) })
			return
		}
		s.set(func() { s.running = append(s.running, name) })
		<-done
		s.set(func() { s.running = slices.DeleteFunc(s.running, func(n string) bool { return n == name }) })
		end()
	}()
}

func (s *claimScript) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *claimScript) flush(name string) {
	s.begin(name, func() error { return s.c.beginFlush(s.t.Context()) }, s.c.endFlush)
}

func (s *claimScript) compact(ctx context.Context, name string, ids ...uint64) {
	s.begin(name, func() error { return s.c.beginCompaction(ctx, ids) }, func() { s.c.endCompaction(ids) })
}

func (s *claimScript) exclude(ctx context.Context, name string) {
	s.begin(name, func() error { return s.c.exclude(ctx) }, s.c.include)
}

// want waits until every job runs, waits or has ended, and compares those that run.
func (s *claimScript) want(names ...string) {
	s.t.Helper()
	synctest.Wait()
	if slices.Sort(s.running); fmt.Sprint(s.running) != fmt.Sprint(names) {
		s.t.Fatalf("%v run, want %v", s.running, names)
	}
}

func testClaims(t *testing.T, script func(s *claimScript)) {
	synctest.Test(t, func(t *testing.T) {
		s := &claimScript{t: t, end: map[string]chan struct{}{}}
		script(s)
		for name, done := range s.end {
			close(done)
			delete(s.end, name)
		}
		s.want()
		if c := &s.c; c.flushing || c.exclusive != noExclusion || len(c.flushed)+len(c.compacted) > 0 ||
			c.changed != nil {
			t.Errorf("flush %t, exclusion %d, flushed %v, compacted %v", c.flushing, c.exclusive, c.flushed,
				c.compacted)
		}
	})
}

func (s *claimScript) finish(name string) {
	close(s.end[name])
	delete(s.end, name)
	synctest.Wait()
}

func TestFlushWaitsForNoCompaction(t *testing.T) {
	testClaims(t, func(s *claimScript) {
		s.compact(s.t.Context(), "merge", 1, 2)
		s.flush("flush")
		s.want("flush", "merge")
		s.flush("second flush")
		s.want("flush", "merge")
		s.finish("flush")
		s.want("merge", "second flush")
	})
}

func TestCompactionsWaitForTheOwnersOfTheirRowSets(t *testing.T) {
	testClaims(t, func(s *claimScript) {
		s.compact(s.t.Context(), "a 1 2", 1, 2)
		s.want("a 1 2")
		s.compact(s.t.Context(), "b 2 3", 2, 3)
		s.compact(s.t.Context(), "c 4", 4)
		s.want("a 1 2", "c 4")
		s.finish("a 1 2")
		s.want("b 2 3", "c 4")
		s.flush("flush")
		s.want("b 2 3", "c 4", "flush")
		s.c.flushed = map[uint64]bool{5: true}
		s.compact(s.t.Context(), "d 5", 5)
		s.want("b 2 3", "c 4", "flush")
		if owned := s.c.compactedIDs(); !owned[5] {
			s.t.Error("a flush that begins now would take rowset 5, and keep its compaction waiting")
		}
		s.finish("flush")
		s.want("b 2 3", "c 4", "d 5")
		if c := &s.c; !c.free(true, false, nil) || !c.free(false, true, nil) ||
			!c.free(false, false, []uint64{1, 6}) || c.free(false, false, []uint64{1, 5}) {
			s.t.Error("what may begin does not agree with the owners")
		}
		rest, err := s.c.beginCompactionOfRest(s.t.Context(), []uint64{1, 2, 3, 4, 5, 6})
		if err != nil || fmt.Sprint(rest) != "[1 6]" {
			s.t.Errorf("the rest is %v, %v", rest, err)
		}
		s.c.endCompaction(rest)
	})
}

// An exclusive job waits for the jobs that run, and later jobs wait for it. Flushes still begin
// while it waits for a compaction, which may take long.
func TestExclusiveJobRunsAlone(t *testing.T) {
	testClaims(t, func(s *claimScript) {
		s.compact(s.t.Context(), "merge", 1)
		s.want("merge")
		s.exclude(s.t.Context(), "alter")
		s.want("merge")
		s.compact(s.t.Context(), "second merge", 2)
		s.flush("flush")
		s.want("flush", "merge")
		s.finish("merge")
		s.want("flush")
		s.flush("second flush")
		s.want("flush")
		s.finish("flush")
		s.want("alter")
		s.exclude(s.t.Context(), "drop")
		s.want("alter")
		if c := &s.c; c.free(true, false, nil) || c.free(false, true, nil) || c.free(false, false, []uint64{9}) {
			s.t.Error("a job may begin while an exclusive one runs")
		}
		s.finish("alter")
		synctest.Wait()
		for len(s.end) > 0 { // they run in any order, the drop alone
			s.want(s.running...)
			if slices.Contains(s.running, "drop") && len(s.running) > 1 {
				s.t.Errorf("%v run", s.running)
			}
			if len(s.running) == 0 {
				s.t.Fatalf("no job runs, %d wait", len(s.end))
			}
			s.finish(s.running[0])
		}
	})
}

// A job whose context ends while it waits leaves nothing behind that another job waits for.
func TestJobThatGivesUpWaitingOwnsNothing(t *testing.T) {
	testClaims(t, func(s *claimScript) {
		ctx, cancel := context.WithCancel(s.t.Context())
		s.flush("flush")
		s.compact(s.t.Context(), "merge", 1)
		s.want("flush", "merge")
		s.c.flushed = map[uint64]bool{3: true}
		s.compact(ctx, "a 1 2", 1, 2)
		s.compact(ctx, "b 3 4", 3, 4) // waits for the flush
		s.exclude(ctx, "alter")
		s.want("flush", "merge")
		cancel()
		const canceled = ": context canceled"
		s.want("a 1 2"+canceled, "alter"+canceled, "b 3 4"+canceled, "flush", "merge")
		s.running = []string{"flush", "merge"}
		s.compact(ctx, "c 2 4", 2, 4) // does not wait, so the context does not matter
		s.want("c 2 4", "flush", "merge")
		s.finish("c 2 4")
		s.finish("merge")
		s.exclude(ctx, "drop") // waits for the flush
		s.want("drop"+canceled, "flush")
		s.running = []string{"flush"}
		s.finish("flush")
		s.flush("second flush")
		s.want("second flush")
	})
}

// An exclusive job that is canceled while it waits for a flush leaves the flush its rowsets.
func TestCanceledExclusiveJobTakesNothingFromFlush(t *testing.T) {
	testClaims(t, func(s *claimScript) {
		s.flush("flush")
		s.want("flush")
		s.c.flushed = map[uint64]bool{5: true}
		ctx, cancel := context.WithCancel(s.t.Context())
		s.exclude(ctx, "exclusive")
		s.want("flush")
		cancel()
		s.want("exclusive: context canceled", "flush")
		s.running = s.running[1:]
		delete(s.end, "exclusive")
		s.compact(s.t.Context(), "merge", 5)
		s.want("flush") // the merge waits
	})
}
