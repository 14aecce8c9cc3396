package tablet

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// ingestRows returns rows (k, a, "i", 7).
func (w *testStore) ingestRows(a int, keys ...int) *change.Rows {
	rows := &change.Rows{Batch: batch.New(w.tab.Schema().Schema.Columns, 0)}
	for _, k := range keys {
		for c, cell := range [][]byte{int64Cell(k), int32Cell(a), []byte("i"), int32Cell(7)} {
			rows.Batch.Columns[c].AppendCell(cell)
		}
		rows.Keys = append(rows.Keys, w.key(k))
	}
	rows.Batch.Len = len(keys)
	return rows
}

func ingestText(k, a int) string { return fmt.Sprintf(`%d: %d "i" 7`, k, a) }

// ingest ingests rows (k, a).
func (w *testStore) ingest(a int, keys ...int) (mvcc.Timestamp, error) {
	in, err := w.tab.BeginIngest()
	if err != nil {
		return 0, err
	}
	defer in.Abort()
	if err := in.Append(w.ingestRows(a, keys...)); err != nil {
		return 0, err
	}
	return in.Finish(context.Background())
}

func TestFailedIngestChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, set := range map[string]func(w *testStore){
		"settling": func(w *testStore) { w.waitErr = broken },
		"log":      func(w *testStore) { w.appendErr = broken },
		"undos":    func(w *testStore) { w.noBlocks = true },
		"metadata": func(w *testStore) { w.commitErr = broken },
	} {
		w := newTestStore(t, testSchema)
		w.mustCommit(w.op(Insert, 1, 1, "x"))
		w.flush()
		w.mustCommit(w.op(Update, 1, 2, "y"))
		w.events = nil
		in := must.Get(w.tab.BeginIngest())(t)
		must.Do(t, in.Append(w.ingestRows(5, 2, 3, 4)))
		set(w)
		if _, err := in.Finish(context.Background()); err == nil || !w.noBlocks && !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		in.Abort()
		w.checkFree()
		must.Equal(t, w.unpublished, 0, name, "an empty batch was not published")
		event := name == "undos" || name == "metadata"
		if event != (len(w.events) == 1) || event && (w.events[0].Err == nil || w.events[0].Kind != compaction.Ingest) {
			t.Errorf("%s: events %+v", name, w.events)
		}
		w.waitErr, w.appendErr, w.commitErr, w.noBlocks = nil, nil, nil, false
		want := []string{`1: 2 "y" 7`}
		for _, w := range []*testStore{w, w.reopened(0)} {
			must.Equal(t, w.scan(latest, true), want, name)
			err := w.m.Verify(context.Background(), func(file string, off int64, id block.ID, problem string) {
				t.Errorf("%s: %s at %d: %s", name, file, off, problem)
			}, nil)
			must.Do(t, err, name)
			// The same rows can be ingested afterwards.
			must.Do(t, must.Err(w.ingest(6, 2, 3, 4)), name, "retry")
		}
	}
}

// Operations on one key precede and follow an ingest of the key, with up to two flushes in between.
// After a kill, replaying the log from log_start or from its first record restores the same table
// and history.
func TestReplayAppliesOperationsAroundAnIngest(t *testing.T) {
	const k = 5
	type step struct {
		do   func(w *testStore) error
		text string // of the row afterwards
	}
	op := func(kind OpKind, a int) func(*testStore) error {
		return func(w *testStore) error { _, err := w.commit(w.op(kind, k, a, "w")); return err }
	}
	history := []step{
		{op(Insert, 1), `5: 1 "w" 7`}, {op(Delete, 0), ""},
		{func(w *testStore) error { _, err := w.ingest(2, 4, k, 6); return err }, ingestText(k, 2)},
		{op(Update, 3), `5: 3 "w" 7`}, {op(Delete, 0), ""},
		{op(Insert, 4), `5: 4 "w" 7`}, {op(Delete, 0), ""},
		{func(w *testStore) error { _, err := w.ingest(5, k); return err }, ingestText(k, 5)},
		{op(Update, 6), `5: 6 "w" 7`},
	}
	for flushes := range 1 << len(history) {
		if n := bits.OnesCount(uint(flushes)); n > 2 || testing.Short() && n > 1 {
			continue
		}
		w := newTestStore(t, testSchema)
		want := versions{}
		for i, s := range history {
			if err := s.do(w); err != nil {
				t.Fatalf("flushes %b, step %d: %v", flushes, i, err)
			}
			want[k] = append(want[k], version{timestampOf(w.lsn), s.text})
			if flushes>>i&1 != 0 {
				w.flush()
			}
		}
		for _, from := range []lsn.LSN{0, 1} {
			n := w.reopened(from)
			for at := lsn.LSN(1); at <= n.lsn+1; at++ {
				snap := mvcc.Before(timestampOf(at))
				if got := n.get(k, Snapshot{At: snap}); got != want.at(k, snap) {
					t.Fatalf("flushes %b, replayed from %d, before lsn %d: %q, want %q", flushes, from, at, got,
						want.at(k, snap))
				}
			}
			n.m.Close()
		}
		w.m.Close()
	}
}

func TestIngestConflictsWithAnAlteration(t *testing.T) {
	w := newTestStore(t, testSchema)
	in := must.Get(w.tab.BeginIngest())(t)
	must.Do(t, in.Append(w.ingestRows(1, 1, 2)))
	tableSchema := newTableSchema(testSchema, w.tab.Schema().Version+1)
	w.tab.install(newState(tableSchema, w.tab.newMem(tableSchema), nil, nil, 0))
	must.Fail(t, must.Err(in.Finish(context.Background())), fault.ErrConflict)
	in.Abort()
	w.checkFree()
}

// The metadata of ingested rowsets agrees with the files, and all rows are born at the timestamp of
// the ingest.
func TestIngestedRowSetsHaveCountsAndTimestamps(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, -1, 1, "x"))
	keys := make([]int, 3000)
	for i := range keys {
		keys[i] = i
	}
	ts := must.Get(w.ingest(1, keys...))(t)
	var rows int64
	for _, m := range w.tab.RowSetMetadata() {
		rows += m.Rows
		if m.LiveRows != m.Rows || m.MaxTimestamp != ts || m.IncludedLSN != w.lsn || len(m.Undo)+len(m.Redo) != 0 ||
			!slices.Equal(m.Births, []delta.Birth{{Rows: uint32(m.Rows), TS: ts}}) {
			t.Errorf("rowset %+v", m)
		}
	}
	if rows != 3000 || w.tab.LiveRows() != 3001 || w.tab.FirstLSN() != 1 {
		t.Errorf("%d rows, %d live, first lsn %d", rows, w.tab.LiveRows(), w.tab.FirstLSN())
	}
	must.Do(t, w.tab.Check(context.Background(),
		func(m *rowset.Metadata, id block.ID, err error) { t.Errorf("rowset %d: %v", m.ID, err) }, nil))
}

// The last point at which a writer can insert a key is while Finish waits for the log, before it
// takes the gate.
func TestIngestFindsAKeyInsertedBeforeTheGate(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.onWait = func() { w.mustCommit(w.op(Insert, 3, 1, "w")) }
	_, err := w.ingest(2, 2, 3, 4)
	var re *change.RowError
	if !errors.Is(err, fault.ErrKeyExists) || !errors.As(err, &re) || re.Row != 1 || w.onWait != nil {
		t.Errorf("got %v", err)
	}
	w.checkFree()
	if _, err := w.ingest(2, 2, 4); err != nil || !w.confirmed {
		t.Errorf("without the key: %v, confirmed %v", err, w.confirmed)
	}
}

// An extracted rowset has an undo file with the deletes that its births stand for.
func TestExtractWritesTheUndosOfBirths(t *testing.T) {
	w := newTestStore(t, testSchema)
	keys := make([]int, 5000) // more than a window
	for i := range keys {
		keys[i] = i
	}
	ts := must.Get(w.ingest(1, keys...))(t)
	dir := filepath.Join(t.TempDir(), "out")
	must.Do(t, w.tab.Extract(context.Background(), dir))
	rows := 0
	for i := range w.tab.RowSetMetadata() {
		src := must.Get(block.OpenFile(filepath.Join(dir, fmt.Sprintf("rowset-%d", i), "undo-0.delta")))(t)
		defer src.Close()
		f := must.Get(delta.OpenFile(src, cfile.ReaderOptions{}))(t)
		next := uint32(0)
		must.Do(t, f.Changes(nil, func(d change.Delta) error {
			if d.Row != next || d.TS != ts || d.List.Kind() != change.Delete {
				t.Fatalf("rowset %d: undo %d is %+v", i, next, d)
			}
			next++
			return nil
		}))
		rows += int(next)
	}
	must.Equal(t, rows, len(keys), "undos")
}

// Undo GC removes births once none of them is needed.
func TestUndoGCRemovesBirths(t *testing.T) {
	w := newTestStore(t, testSchema)
	ts := must.Get(w.ingest(1, 1, 2, 3))(t)
	for _, floor := range []mvcc.Timestamp{ts - 1, ts} {
		w.floor = floor
		must.Get(w.tab.CollectUndos(t.Context()))(t)
		if m := w.tab.RowSetMetadata()[0]; (len(m.Births) == 1) != (floor < ts) {
			t.Errorf("floor %d, insert at %d: births %v", uint64(floor), uint64(ts), m.Births)
		}
	}
}
