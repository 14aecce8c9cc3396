package tablet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// rowHistories writes a table in steps. The digits of a key, in base 3, are the row's history: at
// the i-th step the i-th digit says whether the row is left alone, upserted or deleted. So after n
// steps the 3ⁿ keys have every possible history.
type rowHistories struct {
	*testStore
	keys  int
	rows  versions
	digit int // 3^step
}

func newRowHistories(t *testing.T, steps int) *rowHistories {
	l := &rowHistories{testStore: newTestStore(t, testSchema), keys: 1, rows: versions{}, digit: 1}
	for range steps {
		l.keys *= 3
	}
	return l
}

// nextStep commits one batch with the next digit of every key. After the last digit it does
// nothing.
func (l *rowHistories) nextStep() {
	l.t.Helper()
	if l.digit == l.keys {
		return
	}
	var ops []Op
	ts := timestampOf(l.lsn + 1)
	for k := range l.keys {
		text := l.rows.at(k, mvcc.Everything)
		switch k / l.digit % 3 {
		case 1:
			ops = append(ops, l.op(Upsert, k, l.digit, "x"))
			text = fmt.Sprintf(`%d: %d "x" 7`, k, l.digit)
		case 2:
			ops = append(ops, l.op(DeleteIgnore, k, 0, ""))
			text = ""
		}
		if text != l.rows.at(k, mvcc.Everything) {
			l.rows[k] = append(l.rows[k], version{ts, text})
		}
	}
	l.mustCommit(ops...)
	l.digit *= 3
}

// check compares w, which is l's table or was opened from its files, with the model: the rows now
// and at every earlier time, the differences between every two times, every row's history, the
// count.
func (l *rowHistories) check(w *testStore) {
	l.t.Helper()
	for lsn := lsn.LSN(0); lsn <= l.lsn; lsn++ {
		snap := mvcc.AsOf(timestampOf(lsn))
		if got, want := w.scan(Snapshot{At: snap}, true), l.rows.scan(snap); !slices.Equal(got, want) {
			l.t.Fatalf("after lsn %d: %d rows, want %d:\n%s", lsn, len(got), len(want), differ(got, want))
		}
		for to := lsn; to <= l.lsn; to++ {
			l.diff(w, snap, mvcc.AsOf(timestampOf(to)))
		}
	}
	live := 0
	for k := range l.keys {
		l.history(w, k)
		if text := l.rows.at(k, mvcc.Everything); w.get(k, latest) != text {
			l.t.Fatalf("key %d is %q, want %q", k, w.get(k, latest), text)
		} else if text != "" {
			live++
		}
	}
	if got := len(w.scan(latest, false)); got != live || w.tab.LiveRows() != int64(live) {
		l.t.Fatalf("%d rows in any order, %d counted, want %d", got, w.tab.LiveRows(), live)
	}
}

// differ returns the first rows in which two scans differ.
func differ(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%s, want %s", got[i], want[i])
		}
	}
	return fmt.Sprint(got[min(len(got), len(want)):], ", want ", want[min(len(got), len(want)):])
}

func (l *rowHistories) diff(w *testStore, from, to mvcc.Snapshot) {
	l.t.Helper()
	v := must.Get(w.tab.View(Snapshot{At: from}))(l.t)
	var got, want []string
	text := func(cells [][]byte) string {
		if cells == nil {
			return ""
		}
		return rowText(cells)
	}
	d := v.Diff(scan.Options{Columns: allColumns}, to)
	for d.Next() {
		got = append(got, text(d.Before())+" → "+text(d.After()))
	}
	must.Do(l.t, d.Close())
	for _, k := range slices.Sorted(maps.Keys(l.rows)) {
		if a, b := l.rows.at(k, from), l.rows.at(k, to); a != b {
			want = append(want, a+" → "+b)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Fatalf("from %d to %d %d differences, want %d: %s", from, to, len(got), len(want), differ(got, want))
	}
}

func (l *rowHistories) history(w *testStore, k int) {
	l.t.Helper()
	v := must.Get(w.tab.View(latest))(l.t)
	defer v.Release()
	h, err := v.History(w.key(k), mvcc.Min, allColumns)
	if err != nil {
		l.t.Fatalf("key %d: %v", k, err)
	}
	var got []version
	for {
		version, ok, err := h.Next()
		if err != nil {
			l.t.Fatalf("key %d: %v", k, err)
		}
		if !ok {
			break
		}
		one := versionOf(version)
		got = append(got, one)
	}
	slices.Reverse(got)
	if !slices.Equal(got, l.rows[k]) {
		l.t.Fatalf("key %d: versions %v, want %v", k, got, l.rows[k])
	}
}

func versionOf(v RowVersion) version {
	if v.Cells == nil {
		return version{v.TS, ""}
	}
	return version{v.TS, rowText(v.Cells)}
}

// crash checks the table as restored after a kill, with the log replayed.
func (l *rowHistories) crash() {
	l.t.Helper()
	l.check(l.reopened(0))
}

// betweenRounds is a context whose Err calls a hook.
type betweenRounds struct {
	context.Context
	hook func()
}

func (c *betweenRounds) Err() error {
	once(&c.hook)
	return c.Context.Err()
}

// jobs lists the jobs that do not block writers while they run.
var jobs = map[string]func(l *rowHistories, ctx context.Context) error{
	"flush":        func(l *rowHistories, ctx context.Context) error { _, err := l.tab.Flush(ctx); return err },
	"flush deltas": func(l *rowHistories, ctx context.Context) error { _, err := l.tab.FlushDeltas(ctx); return err },
	"compact":      func(l *rowHistories, ctx context.Context) error { _, err := l.tab.Compact(ctx); return err },
	"merge": func(l *rowHistories, ctx context.Context) (err error) {
		var all []uint64 // one rowset too, which Merge refuses
		for _, m := range l.tab.RowSetMetadata() {
			all = append(all, m.ID)
		}
		return l.tab.compacting(ctx, all, func() error { _, err = l.tab.mergeSets(ctx, all, "", true); return err })
	},
}

// runWithWrites runs a job, with one step of writes after its cutover point, one while it reads
// rows, two between or during rounds of catching up, and one after the metadata commit. After each
// step, and before the commit, it checks the table as restored after a kill.
func (l *rowHistories) runWithWrites(reading bool, work func(l *rowHistories, ctx context.Context) error) error {
	l.t.Helper()
	steps := 0
	step := func() {
		steps++
		l.crash()
		l.nextStep()
		l.check(l.testStore)
		l.crash()
	}
	ctx := &betweenRounds{Context: context.Background()}
	l.onBegin = func() {
		step()
		if reading {
			l.onRead = step
		}
		l.onGrow = func() { ctx.hook = step }
	}
	var kill func()
	kill = func() { l.crash(); l.onCommit = kill }
	l.onCommit, l.onInstall = kill, step
	err := work(l, ctx)
	l.onBegin, l.onRead, l.onGrow, l.onCommit, l.onInstall, ctx.hook = nil, nil, nil, nil, nil, nil
	if steps < 2 {
		l.t.Fatalf("%d steps of concurrent writes", steps)
	}
	return err
}

// Rows are changed before, during and after a flush or merge, in one to three steps each. Reads see
// every change at its time, in the table and after a kill.
func TestFlushAndMergeKeepConcurrentWrites(t *testing.T) {
	for name, work := range jobs {
		// With 5 steps the second round is the last one, which blocks writers; with 6 there are
		// more rounds.
		for _, steps := range []int{5, 6} {
			if steps > 5 && (testing.Short() || name != "flush" && name != "merge") {
				continue
			}
			t.Run(fmt.Sprintf("%s/steps=%d", name, steps), func(t *testing.T) {
				l := newRowHistories(t, steps)
				l.nextStep()
				l.flush()
				l.nextStep()
				must.Do(t, l.runWithWrites(steps > 5, work))
				for l.digit < l.keys {
					l.check(l.testStore)
					l.crash()
					l.nextStep()
				}
				l.check(l.testStore)
				l.crash()
				l.flush()
				l.check(l.testStore)
				must.Get(l.tab.Compact(t.Context()))(t)
				l.check(l.testStore)
				l.checkStored()
				l.checkFree()
				l.checkEmpty()
			})
		}
	}
}

var errNo = errors.New("no")

// A flush or merge whose commit fails leaves the table correct, with all concurrent changes. The
// next one writes everything that was left in memory, including changes made before and during the
// failed one.
func TestFlushAfterAFailedOneWritesTheFrozenMemRowSet(t *testing.T) {
	for name, work := range jobs {
		t.Run(name, func(t *testing.T) {
			l := newRowHistories(t, 5)
			l.nextStep()
			l.flush()
			l.nextStep()
			l.commitErr = errNo
			must.Fail(t, l.runWithWrites(false, work), errNo)
			l.commitErr = nil
			l.check(l.testStore)
			l.crash()
			must.Do(t, l.runWithWrites(false, work))
			if l.digit < l.keys {
				t.Error("the second flush wrote nothing")
			}
			l.check(l.testStore)
			l.crash()
			l.flush()
			must.Equal(t, l.tab.FirstLSN(), lsn.Max, "first lsn")
			must.Equal(t, l.tab.state.Load().frozen, nil)
			l.check(l.testStore)
			l.checkStored()
			l.checkFree()
			l.checkEmpty()
		})
	}
}

// checkEmpty fails unless the table, which has nothing in memory, has released all its memory.
func (w *testStore) checkEmpty() {
	w.t.Helper()
	if _, deltas := w.tab.MemBytes(); deltas != 0 || w.memory != 0 {
		w.t.Errorf("MemRowSets use %d bytes, delta mem stores %d", w.memory, deltas)
	}
}

// The log is kept from the first change on that was made during a job, before or after its commit,
// even if nothing else is in memory.
func TestLogStartCountsConcurrentChanges(t *testing.T) {
	points := map[string]func(w *testStore) *func(){
		"begin":   func(w *testStore) *func() { return &w.onBegin },
		"commit":  func(w *testStore) *func() { return &w.onCommit },
		"install": func(w *testStore) *func() { return &w.onInstall },
	}
	for name, work := range jobs {
		for point, hook := range points {
			for _, kept := range []bool{false, true} { // whether a failed flush has left a MemRowSet
				t.Run(fmt.Sprintf("%s/%s/kept=%t", name, point, kept), func(t *testing.T) {
					l := changedTable(t, name != "flush", kept)
					killed := func() {
						n := l.reopened(0)
						must.Equal(t, fmt.Sprint(n.scan(latest, true)), fmt.Sprint(l.scan(latest, true)),
							"after a kill before it")
					}
					l.onInstall = killed
					*hook(l.testStore) = func() {
						l.mustCommit(l.op(Update, 1, 3, "y"), l.op(Delete, 2, 0, ""))
						killed()
					}
					must.Do(t, work(l, t.Context()))
					killed()
					must.Equal(t, l.get(1, latest), `1: 3 "y" 7`, "row")
					must.Equal(t, l.get(2, latest), "", "row")
					if start, first := l.m.LogStart(), l.tab.FirstLSN(); start != first && (first != lsn.Max ||
						start != l.lsn+1) {
						t.Errorf("the log is kept from %d on, the first LSN in memory is %d", start, first)
					}
				})
			}
		}
	}
}

// changedTable returns a table with rows 1 and 2, in memory or on disk with a change in memory, and
// with a row 3 in a MemRowSet that a failed flush has left, if kept is true.
func changedTable(t *testing.T, flushed, kept bool) *rowHistories {
	l := &rowHistories{testStore: newTestStore(t, testSchema)}
	l.mustCommit(l.op(Insert, 1, 1, "x"), l.op(Insert, 2, 1, "x"))
	if flushed {
		l.flush()
	}
	if kept {
		l.mustCommit(l.op(Insert, 3, 1, "x"))
		l.commitErr = errNo
		must.Fail(t, must.Err(l.tab.Flush(t.Context())), errNo)
		l.commitErr = nil
	}
	if flushed {
		l.mustCommit(l.op(Update, 1, 2, "x"))
	}
	return l
}

// A table with a frozen MemRowSet, which a failed flush has left, can be dropped, closed and
// altered, and an ingest finds its keys.
func TestFrozenMemRowSetOfAFailedFlushIsUsable(t *testing.T) {
	start := func(t *testing.T) *testStore {
		w := newTestStore(t, testSchema)
		w.mustCommit(w.op(Insert, 1, 1, "x"))
		w.commitErr = errNo
		if _, err := w.tab.Flush(t.Context()); !errors.Is(err, errNo) || w.tab.state.Load().frozen == nil {
			t.Fatalf("%v, and there is no frozen MemRowSet", err)
		}
		w.commitErr = nil
		w.mustCommit(w.op(Insert, 2, 1, "x"), w.op(Update, 1, 2, "y"))
		return w
	}
	t.Run("drop", func(t *testing.T) {
		w := start(t)
		must.Do(t, w.drop(w.dropRows))
		must.Equal(t, w.memory, 0, "bytes are not released")
	})
	t.Run("close", func(t *testing.T) {
		w := start(t)
		w.tab.Close()
		must.Fail(t, must.Err(w.tab.Flush(t.Context())), fault.ErrClosed)
		w.checkFree()
	})
	t.Run("alter", func(t *testing.T) {
		w := start(t)
		err := w.tab.Alter(t.Context(), func(row *meta.Table) ([]Retype, error) {
			row.Comment = "changed"
			return nil, nil
		})
		must.Do(t, err)
		must.Equal(t, w.tab.Metadata().SchemaVersion, 1)
		must.Equal(t, fmt.Sprint(w.scan(latest, true)), `[1: 2 "y" 7 2: 1 "x" 7]`, "rows")
		w.checkStored()
		w.checkEmpty()
		w.checkFree()
	})
	t.Run("alter that fails", func(t *testing.T) {
		w := start(t)
		w.flush()
		w.mustCommit(w.op(Insert, 3, 1, "x"))
		w.commitErr = errNo
		must.Fail(t, w.tab.Alter(t.Context(),
			func(*meta.Table) ([]Retype, error) { return nil, nil }), errNo)
		w.commitErr = nil
		w.mustCommit(w.op(Update, 3, 2, "y"), w.op(Delete, 2, 0, ""), w.op(Insert, 4, 1, "x"))
		w.flush()
		must.Equal(t, fmt.Sprint(w.scan(latest, true)), `[1: 2 "y" 7 3: 2 "y" 7 4: 1 "x" 7]`)
		w.checkStored()
		w.checkEmpty()
	})
	t.Run("ingest", func(t *testing.T) {
		w := start(t)
		for _, k := range []int{1, 2} {
			must.Fail(t, must.Err(w.ingest(9, 0, k)), fault.ErrKeyExists, "ingest of existing key", k)
		}
		in := must.Get(w.tab.BeginIngest())(t)
		must.Do(t, in.Append(w.ingestRows(9, 3, 4)))
		defer in.Abort()
		w.mustCommit(w.op(Insert, 4, 1, "x"))
		w.commitErr = errNo
		w.tab.Flush(t.Context())
		w.commitErr = nil
		must.Fail(t, must.Err(in.Finish(t.Context())), fault.ErrKeyExists,
			"ingest of a key that was inserted concurrently")
		must.Equal(t, w.get(5, Snapshot{At: mvcc.AsOf(must.Get(w.ingest(9, 5))(t))}), ingestText(5, 9),
			"ingest of a new key")
		w.checkFree()
	})
}
