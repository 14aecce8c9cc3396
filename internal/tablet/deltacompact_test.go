package tablet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// withRedos returns a testStore with one rowset of n rows and some redo files: file i updates the
// rows whose key is i modulo the number of files.
func withRedos(t *testing.T, n, redos int) *testStore {
	t.Helper()
	w := newTestStore(t, testSchema)
	for k := range n {
		w.mustCommit(w.op(Insert, k, 0, "first"))
	}
	w.flush()
	for i := range redos {
		for k := i; k < n; k += redos {
			w.mustCommit(w.op(Update, k, i+1, fmt.Sprint("redo ", i)))
		}
		w.flush()
	}
	w.events = nil
	return w
}

// rowsAtEveryTime returns all rows as of every timestamp.
func (w *testStore) rowsAtEveryTime() [][]string {
	w.t.Helper()
	var all [][]string
	for ts := max(w.floor, 1); ts <= timestampOf(w.lsn); ts += 10 {
		all = append(all, w.scan(Snapshot{At: mvcc.AsOf(ts)}, true))
	}
	return all
}

func (w *testStore) checkRowsAtEveryTime(want [][]string) {
	w.t.Helper()
	for i, got := range w.rowsAtEveryTime() {
		if !slices.Equal(got, want[i]) {
			w.t.Fatalf("at commit %d\ngot  %v\nwant %v", i, got, want[i])
		}
	}
}

var deltaWork = map[compaction.Kind]func(t *Tablet, ctx context.Context) (compaction.Result, error){
	compaction.MinorDelta: (*Tablet).CompactMinor,
	compaction.MajorDelta: func(t *Tablet, ctx context.Context) (compaction.Result, error) {
		return t.CompactMajor(ctx, nil)
	},
	compaction.UndoGC:     (*Tablet).CollectUndos,
	compaction.DeltaFlush: (*Tablet).FlushDeltas,
}

func TestDeltaCompactionsKeepTheRows(t *testing.T) {
	w := withRedos(t, 30, 3)
	w.mustCommit(w.op(Update, 3, 50, "in memory"), w.op(Delete, 4, 0, ""), w.op(Insert, 100, 1, "new"))
	want := w.rowsAtEveryTime()
	included := w.tab.RowSetMetadata()[0].IncludedLSN
	for i, test := range []struct {
		kind         compaction.Kind
		redos, undos int
	}{{compaction.MinorDelta, 1, 1}, {compaction.MajorDelta, 0, 2}} {
		before := w.tab.RowSetMetadata()[0]
		res, err := deltaWork[test.kind](w.tab, t.Context())
		if err != nil || res.RowSetsBefore != 1 || res.RowSetsAfter != 1 || res.BytesWritten <= 0 {
			t.Fatalf("%s: %+v, %v", test.kind, res, err)
		}
		e := w.lastEvent()
		if e.Kind != test.kind || e.Why != requested || len(e.Inputs) != 1 || len(e.Outputs) != 1 ||
			e.BytesWritten != res.BytesWritten ||
			e.Inputs[0].Redos != len(before.Redo) || e.Outputs[0].Redos != test.redos ||
			e.Outputs[0].Undos != test.undos {
			t.Errorf("event %+v", e)
		}
		m := w.tab.RowSetMetadata()[0]
		if m.ID != before.ID || m.IncludedLSN != included || m.LiveRows != before.LiveRows ||
			w.tab.FirstLSN() == lsn.Max {
			t.Errorf("%s: row %+v, was %+v", test.kind, m, before)
		}
		for _, id := range before.Blocks(nil) {
			src, err := w.m.OpenBlock(id)
			if kept := slices.Contains(m.Blocks(nil), id); kept != (err == nil) {
				t.Errorf("%s: block %d: %v", test.kind, id, err)
			}
			if err == nil {
				src.Close()
			}
		}
		w.checkRowsAtEveryTime(want)
		w.checkStored()
		w.checkFree()
		w.reopened(0).checkRowsAtEveryTime(want)

		// A second compaction has nothing to do.
		epoch := w.m.Epoch()
		if res, err := deltaWork[test.kind](w.tab, t.Context()); err != nil || res.BytesWritten != 0 ||
			len(w.events) > 0 || w.m.Epoch() != epoch {
			t.Errorf("%d: second time: %+v, %v, %d events", i, res, err, len(w.events))
		}
	}
	// The changes in memory can still be flushed.
	must.Get(w.tab.FlushDeltas(t.Context()))(t)
	w.checkRowsAtEveryTime(want)
	w.reopened(0).checkRowsAtEveryTime(want)
}

func TestMajorCompactsTheNamedColumns(t *testing.T) {
	w := withRedos(t, 20, 2)
	want := w.rowsAtEveryTime()
	before := w.tab.RowSetMetadata()[0]
	must.Get(w.tab.CompactMajor(t.Context(), []string{"a"}))(t)
	m := w.tab.RowSetMetadata()[0]
	if m.Columns[1] == before.Columns[1] || m.Columns[2] != before.Columns[2] ||
		m.Columns[3] != before.Columns[3] || m.KeyIndex != before.KeyIndex || len(m.Redo) != 1 {
		t.Errorf("row %+v, was %+v", m, before)
	}
	w.checkRowsAtEveryTime(want)
	for name, cause := range map[string]error{"k": fault.ErrSchema, "missing": fault.ErrNoColumn} {
		must.Fail(t, must.Err(w.tab.CompactMajor(t.Context(), []string{"a", name})), cause, "column", name)
	}
	must.Get(w.tab.Compact(t.Context()))(t)
	w.checkRowsAtEveryTime(want)
	w.checkStored()
}

// A delta flush leaves the MemRowSet in memory and in the log.
func TestDeltaFlushLeavesNewRowsInMemory(t *testing.T) {
	w := withRedos(t, 10, 0)
	w.mustCommit(w.op(Insert, 50, 1, "new"))
	w.mustCommit(w.op(Update, 1, 9, "changed"), w.op(Update, 50, 2, "newer"), w.op(Delete, 2, 0, ""))
	want := w.rowsAtEveryTime()
	mem, _ := w.tab.MemBytes()
	res, err := w.tab.FlushDeltas(t.Context())
	if err != nil || res.RowSetsBefore != 1 || res.RowSetsAfter != 1 || res.BytesWritten <= 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if e := w.lastEvent(); e.Kind != compaction.DeltaFlush || len(e.Outputs) != 1 {
		t.Errorf("event %+v", e)
	}
	m := w.tab.RowSetMetadata()[0]
	if after, deltas := w.tab.MemBytes(); after != mem || deltas != 0 || m.IncludedLSN != w.lsn ||
		m.LiveRows != 9 || w.tab.FirstLSN() != w.lsn-1 || w.tab.Metadata().FlushedLSN >= w.lsn-1 {
		t.Errorf("%d bytes in memory, was %d, %d of deltas; rowset %+v; first lsn %d; table %+v", after, mem,
			deltas, m, w.tab.FirstLSN(), w.tab.Metadata())
	}
	w.checkRowsAtEveryTime(want)
	w.reopened(0).checkRowsAtEveryTime(want)
	w.reopened(1).checkRowsAtEveryTime(want)
	if res, err := w.tab.FlushDeltas(t.Context()); err != nil || res.BytesWritten != 0 || len(w.events) != 0 {
		t.Errorf("again: %+v, %v", res, err)
	}
}

// The commit that drops history also raises the floor.
func TestUndoGCDropsFilesAndRowSetsBelowTheFloor(t *testing.T) {
	w := withRedos(t, 20, 2)
	for k := range 5 {
		w.mustCommit(w.op(Insert, 100+k, 1, "short-lived"))
	}
	w.flush()
	for k := range 5 {
		w.mustCommit(w.op(Delete, 100+k, 0, ""))
	}
	died := timestampOf(w.lsn)
	w.flush()
	must.Get(w.tab.CompactMajor(t.Context(), nil))(t)
	w.mustCommit(w.op(Update, 1, 7, "later"))
	w.events = nil
	undos := func() (n int) {
		for _, m := range w.tab.RowSetMetadata() {
			n += len(m.Undo)
		}
		return n
	}
	for _, test := range []struct {
		floor         mvcc.Timestamp
		rowsets, undo int
	}{{0, 2, 3}, {timestampOf(19), 2, 3}, {timestampOf(20), 2, 2}, {timestampOf(40), 2, 1}, {died - 1, 2, 0},
		{died, 1, 0}} {
		w.floor = test.floor
		want, live := w.rowsAtEveryTime(), w.tab.LiveRows()
		before := undos()
		res, err := w.tab.CollectUndos(t.Context())
		if err != nil || res.BytesWritten != 0 || res.RowSetsAfter != test.rowsets ||
			len(w.tab.RowSetMetadata()) != test.rowsets || undos() != test.undo {
			t.Fatalf("floor %d: %+v, %v, %d undo files", test.floor, res, err, undos())
		}
		if did := before != undos() || res.RowSetsBefore != res.RowSetsAfter; did != (len(w.events) == 1) ||
			did && (w.events[0].Kind != compaction.UndoGC || w.tab.Metadata().HistoryFloor != test.floor) {
			t.Errorf("floor %d: events %+v, table %+v", test.floor, w.events, w.tab.Metadata())
		}
		w.events = nil
		w.checkRowsAtEveryTime(want)
		w.checkStored()
		must.Equal(t, w.tab.LiveRows(), live, "live rows")
	}
	must.Refuse(t, must.Err(search(w.tab, scan.Options{Columns: allColumns}, Snapshot{At: mvcc.Before(died)}, true)),
		"a read below the floor succeeds")
}

// A rowset whose last rows were deleted in memory is removed too, once the log has the deletes for good.
// Replay does not find their rows, nor does it apply them to later rows with the same keys.
func TestUndoGCDropsRowSetsWithDeletesInMemory(t *testing.T) {
	w := newTestStore(t, testSchema)
	for k := range 5 {
		w.mustCommit(w.op(Insert, k, 1, "short-lived"))
	}
	w.flush()
	for k := range 5 {
		w.mustCommit(w.op(Delete, k, 0, ""))
	}
	died := timestampOf(w.lsn)
	w.mustCommit(w.op(Insert, 1, 2, "again"))
	collect := func(rowsets int) {
		t.Helper()
		want := w.rowsAtEveryTime()
		_, err := w.tab.CollectUndos(t.Context())
		if got := len(w.tab.RowSetMetadata()); err != nil || got != rowsets {
			t.Fatalf("%d rowsets, %v, want %d", got, err, rowsets)
		}
		w.checkRowsAtEveryTime(want)
		w.reopened(0).checkRowsAtEveryTime(want)
		w.reopened(1).checkRowsAtEveryTime(want)
	}
	w.floor = died - 1
	collect(1)
	w.floor, w.waitErr = died, errors.New("the log cannot be synced")
	must.Refuse(t, must.Err(w.tab.CollectUndos(t.Context())), "a rowset is removed before its deletes are durable")
	w.waitErr = nil
	collect(0)
	w.flush()
	want := w.rowsAtEveryTime()
	w.reopened(1).checkRowsAtEveryTime(want)
}

// hookedStore is a store whose next NewCreation calls a hook, when the job has begun and has not
// committed.
type hookedStore struct {
	*testStore
	creating func()
}

func (h *hookedStore) NewCreation() *blockmanager.Creation {
	if f := h.creating; f != nil {
		h.creating = nil
		f()
	}
	return h.testStore.NewCreation()
}

// Batches that commit while a delta compaction reads and writes are part of its result.
func TestDeltaCompactionKeepsConcurrentWrites(t *testing.T) {
	for _, kind := range []compaction.Kind{compaction.MinorDelta, compaction.MajorDelta, compaction.UndoGC} {
		for _, changed := range []bool{false, true} { // whether there is a delta mem store before
			t.Run(fmt.Sprintf("%s mem=%t", kind, changed), func(t *testing.T) {
				w := withRedos(t, 20, 3)
				if kind == compaction.UndoGC {
					w.floor = timestampOf(21) // above the insertions
				}
				if changed {
					w.mustCommit(w.op(Update, 5, 44, "before"))
				}
				h := &hookedStore{testStore: w}
				w.tab.opts.Store = h
				h.creating = func() {
					w.mustCommit(w.op(Update, 6, 55, "during"), w.op(Delete, 7, 0, ""), w.op(Insert, 70, 1, "new"))
				}
				must.Get(deltaWork[kind](w.tab, t.Context()))(t)
				if len(w.events) != 1 || w.events[0].Kind != kind || h.creating != nil {
					t.Fatalf("events %+v", w.events)
				}
				w.mustCommit(w.op(Update, 8, 66, "after"))
				rows := fmt.Sprint(w.scan(latest, true)[5:9], w.get(70, latest))
				want := `[5: 3 "redo 2" 7 6: 55 "during" 7 8: 66 "after" 7 9: 1 "redo 0" 7]70: 1 "new" 7`
				if changed {
					want = `[5: 44 "before" 7 6: 55 "during" 7 8: 66 "after" 7 9: 1 "redo 0" 7]70: 1 "new" 7`
				}
				must.Equal(t, rows, want)
				all := w.rowsAtEveryTime()
				n := w.reopened(0)
				n.checkRowsAtEveryTime(all)
				w.flush()
				w.checkRowsAtEveryTime(all)
				w.checkStored()
				if _, deltas := w.tab.MemBytes(); deltas != 0 {
					t.Errorf("%d bytes of deltas are counted after the flush", deltas)
				}
			})
		}
	}
}

// A scan that began before several delta compactions reads the files of its state, whether or not
// they were open.
func TestScanKeepsItsFilesThroughDeltaCompactions(t *testing.T) {
	w := withRedos(t, 40, 3)
	want := w.rowsAtEveryTime()
	w = w.reopened(0) // no column's file is open
	var its []scan.Iterator
	for ts := max(w.floor, 1); ts <= timestampOf(w.lsn); ts += 10 {
		it := must.Get(search(w.tab, scan.Options{Columns: allColumns}, Snapshot{At: mvcc.AsOf(ts)}, true))(t)
		its = append(its, it)
	}
	for _, columns := range [][]string{nil, {"a"}, nil} {
		for _, work := range []func() (compaction.Result, error){
			func() (compaction.Result, error) { return w.tab.CompactMinor(t.Context()) },
			func() (compaction.Result, error) { return w.tab.CompactMajor(t.Context(), columns) },
			func() (compaction.Result, error) { w.floor += 50; return w.tab.CollectUndos(t.Context()) },
		} {
			must.Get(work())(t)
		}
		w.mustCommit(w.op(Update, 1, 1, "again"), w.op(Update, 2, 1, "again"))
		w.flush()
	}
	must.Get(w.tab.Compact(t.Context()))(t)
	if err := w.m.Commit(noChange); err != nil { // frees the space of dead blocks
		t.Fatal(err)
	}
	for i, it := range its {
		must.Equal(t, must.Get(readAll(it))(t), want[i], "scan", i)
	}
}

// A scan that began before UndoGC removed a rowset reads the rowset's files, whether or not they
// were open.
func TestScanKeepsTheFilesOfARowSetThatUndoGCRemoves(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, "x"), w.op(Insert, 2, 1, "x"))
	w.flush()
	before := Snapshot{At: mvcc.AsOf(timestampOf(w.lsn))}
	w.mustCommit(w.op(Delete, 1, 0, ""), w.op(Delete, 2, 0, ""))
	w.flush()
	want := w.scan(before, true)
	w = w.reopened(0) // no column's file is open
	it := must.Get(search(w.tab, scan.Options{Columns: allColumns}, before, true))(t)
	w.floor = timestampOf(w.lsn + 1)
	if _, err := w.tab.CollectUndos(t.Context()); err != nil || len(w.tab.RowSetMetadata()) != 0 {
		t.Fatalf("%v, rowsets %+v", err, w.tab.RowSetMetadata())
	}
	if err := w.m.Commit(noChange); err != nil { // frees the space of dead blocks
		t.Fatal(err)
	}
	must.Equal(t, must.Get(readAll(it))(t), want)
}

// Full rows in the cache are used only with the base data that they were read from.
func TestCachedRowsAreDroppedWithTheirBase(t *testing.T) {
	w := withRedos(t, 20, 2)
	late := Snapshot{At: mvcc.AsOf(timestampOf(w.lsn))}
	for _, work := range []compaction.Kind{"", compaction.MajorDelta, compaction.MinorDelta, compaction.MajorDelta} {
		if work != "" {
			must.Get(deltaWork[work](w.tab, t.Context()))(t)
		}
		for range 2 { // read, and read from the cache
			for k := range 20 {
				for at, want := range map[Snapshot]string{
					late:                             fmt.Sprintf("%d: %d %q 7", k, k%2+1, fmt.Sprint("redo ", k%2)),
					{At: mvcc.AsOf(timestampOf(20))}: fmt.Sprintf("%d: 0 %q 7", k, "first"),
					{At: mvcc.Before(timestampOf(w.lsn)), Latest: true}: fmt.Sprintf("%d: %d %q 7", k, k%2+1,
						fmt.Sprint("redo ", k%2)),
				} {
					if at.Latest && k == 19 {
						continue // the snapshot does not include the last commit
					}
					must.Equal(t, w.get(k, at), want, "after", work, "at", at.At)
				}
			}
		}
	}
}

func TestFailedDeltaCompactionChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	for kind, work := range deltaWork {
		for name, spoil := range map[string]func(w *testStore) (context.Context, error){
			"commit": func(w *testStore) (context.Context, error) { w.commitErr = broken; return t.Context(), broken },
			"blocks": func(w *testStore) (context.Context, error) { w.noBlocks = true; return t.Context(), nil },
			"ctx": func(w *testStore) (context.Context, error) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				return ctx, context.Canceled
			},
		} {
			if kind == compaction.UndoGC && name == "blocks" ||
				kind == compaction.DeltaFlush && name == "ctx" || kind == compaction.MinorDelta && name == "ctx" {
				continue // it writes no blocks, or is too short to check the context
			}
			t.Run(fmt.Sprintf("%s %s", kind, name), func(t *testing.T) {
				w := withRedos(t, 20, 2)
				w.mustCommit(w.op(Update, 5, 44, "in memory"))
				w.floor = timestampOf(20)
				want, stored, first := w.rowsAtEveryTime(), w.tab.RowSetMetadata(), w.tab.FirstLSN()
				ctx, cause := spoil(w)
				if _, err := work(w.tab, ctx); err == nil || cause != nil && !errors.Is(err, cause) {
					t.Fatalf("%v", err)
				}
				if name != "ctx" && (len(w.events) != 1 || w.events[0].Err == nil) {
					t.Errorf("events %+v", w.events)
				}
				w.checkFree()
				if got := w.tab.RowSetMetadata(); len(got) != 1 || got[0] != stored[0] ||
					w.tab.FirstLSN() != first || w.tab.Metadata().HistoryFloor != 0 {
					t.Errorf("%+v, was %+v", got, stored)
				}
				w.checkRowsAtEveryTime(want)
				w.reopened(0).checkRowsAtEveryTime(want)
				w.commitErr, w.noBlocks, w.events = nil, false, nil
				if _, err := work(w.tab, t.Context()); err != nil || len(w.events) != 1 {
					t.Errorf("afterwards: %v, %d events", err, len(w.events))
				}
				w.checkRowsAtEveryTime(want)
			})
		}
	}
}

// A rowset that was replaced by one with the same blocks may still be read through a state that is
// older than the replaced one.
func TestScanOfAnEarlierStateKeepsItsFiles(t *testing.T) {
	for name, replace := range map[string]func(w *testStore) error{
		"alter": func(w *testStore) error {
			return w.tab.Alter(t.Context(), func(*meta.Table) ([]Retype, error) { return nil, nil })
		},
		"minor": func(w *testStore) error { _, err := w.tab.CompactMinor(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w := withRedos(t, 20, 2)
			want := w.scan(latest, true)
			w = w.reopened(0) // no column's file is open
			it := must.Get(search(w.tab, scan.Options{Columns: allColumns},
				Snapshot{At: mvcc.AsOf(timestampOf(w.lsn))}, true))(t)
			w.mustCommit(w.op(Insert, 100, 1, "another rowset, another state"))
			w.flush()
			must.Do(t, replace(w))
			w.mustCommit(w.op(Update, 1, 1, "again"))
			must.Get(w.tab.Compact(t.Context()))(t)
			if err := w.m.Commit(noChange); err != nil { // frees the space of dead blocks
				t.Fatal(err)
			}
			must.Equal(t, must.Get(readAll(it))(t), want)
		})
	}
}
