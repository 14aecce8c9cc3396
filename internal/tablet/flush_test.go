package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// lastEvent returns the only event since the last call.
func (w *testStore) lastEvent() compaction.Event {
	w.t.Helper()
	if len(w.events) != 1 {
		w.t.Fatalf("%d events, want 1: %+v", len(w.events), w.events)
	}
	e := w.events[0]
	w.events = nil
	return e
}

// checkStored compares the metadata on disk with that in memory, and checks every file.
func (w *testStore) checkStored() {
	w.t.Helper()
	n := w.reopened(w.lsn + 1)
	if got, want := n.tab.Metadata().Encode(), w.tab.Metadata().Encode(); !bytes.Equal(got, want) {
		w.t.Errorf("table row %x on disk, %x in memory", got, want)
	}
	got, want := n.tab.RowSetMetadata(), w.tab.RowSetMetadata()
	if len(got) != len(want) {
		w.t.Fatalf("%d rowsets on disk, %d in memory", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i].Encode(), want[i].Encode()) {
			w.t.Errorf("rowset %+v on disk, %+v in memory", got[i], want[i])
		}
	}
	err := n.tab.Check(context.Background(), func(m *rowset.Metadata, id block.ID, err error) {
		w.t.Errorf("rowset %d: block %d: %v", m.ID, id, err)
	}, nil)
	if err != nil {
		w.t.Error(err)
	}
}

func TestFlushOfAnEmptyTableDoesNothing(t *testing.T) {
	w := newTestStore(t, testSchema)
	epoch := w.m.Epoch()
	must.Equal(t, must.Get(w.tab.Flush(t.Context()))(t), (compaction.Result{}))
	must.Equal(t, len(w.events), 0, "events")
	must.Equal(t, w.m.Epoch(), epoch, "epoch")
	w.checkFree()
}

func TestFlushWritesMemoryAndDeltasInOneCommit(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, "x"), w.op(Insert, 2, 1, "x"))
	res, err := w.tab.Flush(t.Context())
	if err != nil || res.RowSetsBefore != 0 || res.RowSetsAfter != 1 || res.BytesWritten <= 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	e := w.lastEvent()
	if e.Kind != compaction.Flush || e.Table != "t" || e.Err != nil || e.RowsRead != 2 || e.RowsWritten != 2 ||
		len(e.Inputs) != 0 ||
		len(e.Outputs) != 1 || len(e.Before.RowSets) != 0 || len(e.After.RowSets) != 1 ||
		e.BytesWritten != res.BytesWritten {
		t.Errorf("event %+v", e)
	}
	w.checkStored()

	// Deltas of the rowset, and a new row.
	w.mustCommit(w.op(Update, 1, 2, "y"), w.op(Delete, 2, 0, ""), w.op(Insert, 3, 1, "z"))
	must.Equal(t, w.tab.FirstLSN(), 2, "first lsn")
	epoch := w.m.Epoch()
	if res, err = w.tab.Flush(t.Context()); err != nil || res.RowSetsBefore != 1 || res.RowSetsAfter != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if e = w.lastEvent(); e.Kind != compaction.Flush || len(e.Outputs) != 2 || w.m.Epoch() != epoch+1 {
		t.Errorf("event %+v, epoch %d, %d before", e, w.m.Epoch(), epoch)
	}
	if row := w.tab.Metadata(); row.FlushedLSN != 2 || row.NextRowSetID != 3 || w.tab.FirstLSN() != lsn.Max {
		t.Errorf("table row %+v, first lsn %d", row, w.tab.FirstLSN())
	}
	for _, m := range w.tab.RowSetMetadata() {
		if m.IncludedLSN != 2 || m.LiveRows != 1 || m.MaxTimestamp != timestampOf(2) {
			t.Errorf("rowset %+v", m)
		}
	}
	w.checkStored()

	// Only deltas.
	w.mustCommit(w.op(Update, 3, 5, ""))
	if res, err = w.tab.Flush(t.Context()); err != nil || res.RowSetsBefore != 2 || res.RowSetsAfter != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if e = w.lastEvent(); e.Kind != compaction.DeltaFlush || len(e.Outputs) != 1 || e.Outputs[0].Redos != 1 ||
		e.RowsRead != 0 {
		t.Errorf("event %+v", e)
	}
	w.checkStored()
	must.Equal(t, fmt.Sprint(w.scan(latest, true)), `[1: 2 "y" 7 3: 5 NULL 7]`)
	if mem, deltas := w.tab.MemBytes(); deltas != 0 {
		t.Errorf("%d bytes in memory, %d in delta stores", mem, deltas)
	}
}

// After Compact no rowsets overlap, and the only redos are DELETEs of ghosts. Another Compact has
// nothing to do until the history floor passes the ghosts.
func TestCompactLeavesNothingToCompact(t *testing.T) {
	w := newTestStore(t, testSchema)
	for i := range 3 {
		for k := range 200 {
			w.mustCommit(w.op(Upsert, 3*k+i, i, "some text to fill the file with"))
		}
		w.mustCommit(w.op(DeleteIgnore, 3*i, 0, ""), w.op(UpdateIgnore, 30, 7, "y"))
		w.flush()
	}
	w.mustCommit(w.op(Delete, 50, 0, ""), w.op(Update, 60, 8, "z"))
	before, at := w.scan(latest, true), Snapshot{At: mvcc.Before(timestampOf(300))}
	old := w.scan(at, true)
	w.events = nil
	res := must.Get(w.tab.Compact(t.Context()))(t)
	must.Equal(t, res.RowSetsBefore, 3, res)
	kinds := []compaction.Kind{}
	for _, e := range w.events {
		kinds = append(kinds, e.Kind)
	}
	must.Equal(t, kinds, []compaction.Kind{compaction.DeltaFlush, compaction.Merge}, "events")
	if e := w.events[1]; len(e.Inputs) != 3 || e.RowsRead != 600 || e.RowsWritten != 600 ||
		len(e.Outputs) != len(e.After.RowSets) || res.RowSetsAfter != len(e.Outputs) {
		t.Errorf("event %+v", e)
	}
	for _, g := range compaction.Groups(w.tab.Info()) {
		if len(g) > 1 {
			t.Errorf("rowsets overlap: %+v", g)
		}
	}
	for _, d := range w.tab.state.Load().tree.Sets {
		for _, f := range d.Tracker().Redo {
			if s := f.Stats(); len(s.Columns) > 0 || s.Reinserts > 0 {
				t.Errorf("rowset %d: redos %+v", d.Metadata().ID, s)
			}
		}
	}
	check := func() {
		t.Helper()
		must.Equal(t, w.scan(latest, true), before, "the newest state changed")
		w.checkStored()
	}
	check()
	must.Equal(t, w.scan(at, true), old, "an earlier state changed")

	w.events = nil
	if again, err := w.tab.Compact(t.Context()); err != nil || again.BytesWritten != 0 || len(w.events) != 0 {
		t.Errorf("%+v, %v, %d events", again, err, len(w.events))
	}
	// Rowsets with ghosts below the floor are rewritten without them; the others stay.
	w.floor = timestampOf(w.lsn)
	if _, err := w.tab.Compact(t.Context()); err != nil || len(w.events) == 0 {
		t.Errorf("%v, %d events", err, len(w.events))
	}
	for _, m := range w.tab.RowSetMetadata() {
		must.Equal(t, m.Rows, m.LiveRows, "rowset")
		must.Equal(t, len(m.Redo), 0, "rowset")
	}
	check()
}

func TestCompactOfGhostsAloneLeavesNoRowSet(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, "x"), w.op(Insert, 2, 1, "x"))
	w.flush()
	w.mustCommit(w.op(Delete, 1, 0, ""), w.op(Delete, 2, 0, ""))
	w.floor = timestampOf(w.lsn)
	res, err := w.tab.Compact(t.Context())
	if err != nil || res.RowSetsAfter != 0 || len(w.tab.RowSetMetadata()) != 0 || len(w.scan(latest, true)) != 0 {
		t.Errorf("%+v, %v, rows %v", res, err, w.scan(latest, true))
	}
	w.checkStored()
	w.mustCommit(w.op(Insert, 1, 2, "again"))
	w.flush()
	must.Equal(t, w.get(1, latest), `1: 2 "again" 7`)
}

func TestMergeRewritesTheChosenRowSets(t *testing.T) {
	w := newTestStore(t, testSchema)
	for i := range 4 {
		w.mustCommit(w.op(Insert, i, i, ""), w.op(Insert, 100+i, i, ""))
		w.flush()
	}
	want := w.scan(latest, true)
	w.events = nil
	must.Do(t, w.tab.Merge(t.Context(), compaction.Choice{RowSets: []uint64{2, 4}, Why: "a test"}))
	e := w.lastEvent()
	var inputs, after []uint64
	for _, i := range e.Inputs {
		inputs = append(inputs, i.ID)
	}
	for _, i := range e.After.RowSets {
		after = append(after, i.ID)
	}
	slices.Sort(after)
	if !slices.Equal(inputs, []uint64{2, 4}) || !slices.Equal(after, []uint64{1, 3, 5}) || e.Why != "a test" {
		t.Errorf("inputs %v, after %v, because %q", inputs, after, e.Why)
	}
	must.Equal(t, w.scan(latest, true), want)
	w.checkStored()
}

// A flush or compaction that fails changes nothing: readers see the same rows, its event has the
// error, and it can be retried.
func TestFailedFlushOrCompactionChangesNothing(t *testing.T) {
	failure := errors.New("no")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, test := range map[string]struct {
		fail func(w *testStore)
		ctx  context.Context
		want error // nil = any
	}{
		"commit": {func(w *testStore) { w.commitErr = failure }, context.Background(), failure},
		"wait":   {func(w *testStore) { w.waitErr = failure }, context.Background(), failure},
		"cancel": {func(w *testStore) {}, canceled, context.Canceled},
		"blocks": {func(w *testStore) { w.noBlocks = true }, context.Background(), nil},
	} {
		for _, compact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/compact=%t", name, compact), func(t *testing.T) {
				w := newTestStore(t, testSchema)
				w.mustCommit(w.op(Insert, 1, 1, "x"), w.op(Insert, 2, 1, "x"))
				w.flush()
				w.mustCommit(w.op(Insert, 0, 1, "x"), w.op(Insert, 3, 1, "x"))
				w.mustCommit(w.op(Update, 1, 2, "y"))
				work := w.tab.Flush
				if compact { // of two overlapping rowsets, with nothing to flush
					w.flush()
					work = w.tab.Compact
				}
				want, stored, first := w.scan(latest, true), fmt.Sprint(w.tab.Info()), w.tab.FirstLSN()
				w.events = nil
				test.fail(w)
				if _, err := work(test.ctx); err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Fatalf("error %v, want %v", err, test.want)
				}
				if name == "wait" && compact { // it fails in the flush, which has not begun
					must.Equal(t, len(w.events), 0, "events", w.events)
				} else if e := w.lastEvent(); e.Err == nil || test.want != nil &&
					!errors.Is(e.Err, test.want) || fmt.Sprint(e.After) != stored {
					t.Errorf("event %+v", e)
				}
				if got := w.scan(latest, true); !slices.Equal(got, want) ||
					fmt.Sprint(w.tab.Info()) != stored || w.tab.FirstLSN() != first {
					t.Errorf("got %v, want %v; layout %+v", got, want, w.tab.Info())
				}
				w.checkFree()
				w.commitErr, w.waitErr, w.noBlocks = nil, nil, false
				w.mustCommit(w.op(Update, 2, 5, ""))
				must.Get(work(context.Background()))(t)
				w.checkStored()
			})
		}
	}
}

// concurrentTestStore is a testStore whose commit is safe for concurrent use: it assigns LSNs under
// a lock, as the store does.
type concurrentTestStore struct {
	*testStore
	mu   sync.Mutex
	last lsn.Atomic
}

func (s *concurrentTestStore) LastLSN() lsn.LSN { return s.last.Load() }

func (s *concurrentTestStore) CommitMeta(tables ...MetaCommit) error {
	c := tables[0]
	last := s.last.Load()
	first := c.First()
	edit := c.Edit()
	edit.LogStart = min(last+1, first)
	if err := s.m.Commit(edit); err != nil {
		return err
	}
	c.Committed()
	return c.Install()
}

func (s *concurrentTestStore) Event(compaction.Event) {}

func (s *concurrentTestStore) commit(ops ...Op) error {
	write, err := s.tab.Prepare(ops, s.tab.Schema(), false, 0)
	if err != nil {
		return err
	}
	defer write.Release()
	var rec record.Writer
	rec.Begin(0)
	write.Record(&rec)
	s.mu.Lock()
	at := s.last.Load() + 1
	s.last.Store(at)
	s.mu.Unlock()
	write.Apply(timestampOf(at), at)
	return nil
}

// Writers read their own writes during concurrent flushes and compactions. It is meant to run with
// -race.
func TestWritersReadTheirWritesWhileRowSetsChange(t *testing.T) {
	s := &concurrentTestStore{testStore: newTestStore(t, testSchema)}
	s.tab.opts.Store = s
	rounds := seedtest.Rounds(150, 40)
	var writers, worker sync.WaitGroup
	done := make(chan struct{})
	for g := range 3 {
		writers.Go(func() {
			for i := range rounds {
				k := 10*(i%7) + g
				op := s.op(Upsert, k, i, fmt.Sprint(i))
				want := fmt.Sprintf(`%d: %d "%d" 7`, k, i, i)
				if i%5 == 4 {
					op, want = s.op(DeleteIgnore, k, 0, ""), ""
				}
				if err := s.commit(op, s.op(UpdateIgnore, 1000+g, i, "")); err != nil {
					t.Error(err)
					return
				}
				cells := make([][]byte, 4)
				found, err := get(s.tab, op.Key, Snapshot{At: mvcc.Everything, Latest: true}, allColumns, cells)
				if err != nil || found != (want != "") || found && rowText(cells) != want {
					t.Errorf("round %d, key %d: found %t, %v, want %q", i, k, found, err, want)
					return
				}
			}
		})
	}
	worker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			var err error
			if _, err = s.tab.Flush(context.Background()); err == nil && i%3 == 2 {
				_, err = s.tab.Compact(context.Background())
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	writers.Wait()
	close(done)
	worker.Wait()
	s.checkFree()
}
