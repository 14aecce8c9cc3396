package tablet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// lives drives a table whose keys stand for what can be done with a row, moment by moment: at the
// i-th moment the i-th digit, in base 3, says whether the row is left alone, upserted or deleted.
// So after n moments 3ⁿ keys have gone every way.
type lives struct {
	*world
	keys  int
	rows  picture
	digit int // 3^moment
}

func newLives(t *testing.T, moments int) *lives {
	l := &lives{world: newWorld(t, testSchema), keys: 1, rows: picture{}, digit: 1}
	for range moments {
		l.keys *= 3
	}
	return l
}

// moment commits what the keys' next digits say, in one batch. When they have no more, nothing.
func (l *lives) moment() {
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

// check compares w, which has what l has or was opened from it, with the picture: now and at all
// earlier times, all differences between two times, all rows' pasts, the count.
func (l *lives) check(w *world) {
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

// differ is the first rows in which two scans differ.
func differ(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%s, want %s", got[i], want[i])
		}
	}
	return fmt.Sprint(got[min(len(got), len(want)):], ", want ", want[min(len(got), len(want)):])
}

func (l *lives) diff(w *world, from, to mvcc.Snapshot) {
	l.t.Helper()
	v, err := w.tab.View(Snapshot{At: from})
	if err != nil {
		l.t.Fatal(err)
	}
	var got, want []string
	text := func(cells [][]byte) string {
		if cells == nil {
			return ""
		}
		return rowText(cells)
	}
	d := v.Diff(&scan.Request{Columns: allColumns}, to)
	for d.Next() {
		got = append(got, text(d.Before())+" → "+text(d.After()))
	}
	if err := d.Close(); err != nil {
		l.t.Fatal(err)
	}
	for _, k := range slices.Sorted(maps.Keys(l.rows)) {
		if a, b := l.rows.at(k, from), l.rows.at(k, to); a != b {
			want = append(want, a+" → "+b)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Fatalf("from %d to %d %d differences, want %d: %s", from, to, len(got), len(want), differ(got, want))
	}
}

func (l *lives) history(w *world, k int) {
	l.t.Helper()
	v, err := w.tab.View(latest)
	if err != nil {
		l.t.Fatal(err)
	}
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

// crash is what a kill leaves, with the log, read back.
func (l *lives) crash() {
	l.t.Helper()
	l.check(l.reopened(0))
}

// betweenRounds is a context that calls a hook when it is asked for its error.
type betweenRounds struct {
	context.Context
	hook func()
}

func (c *betweenRounds) Err() error {
	once(&c.hook)
	return c.Context.Err()
}

// works are what may go on while a table is written to.
var works = map[string]func(l *lives, ctx context.Context) error{
	"flush":        func(l *lives, ctx context.Context) error { _, err := l.tab.Flush(ctx); return err },
	"flush deltas": func(l *lives, ctx context.Context) error { _, err := l.tab.FlushDeltas(ctx); return err },
	"compact":      func(l *lives, ctx context.Context) error { _, err := l.tab.Compact(ctx); return err },
	"merge": func(l *lives, ctx context.Context) error {
		c := compaction.Choice{}
		for _, m := range l.tab.RowSetMetadata() {
			c.RowSets = append(c.RowSets, m.ID)
		}
		return l.tab.Merge(ctx, c)
	},
}

// meanwhile does work, with one moment of writing behind its freeze, one while it reads rows, and
// two between rounds of carrying over, or in the middle of one; in each, and before the commit, the
// store is also killed.
func (l *lives) meanwhile(reading bool, work func(l *lives, ctx context.Context) error) error {
	l.t.Helper()
	steps := 0
	step := func() {
		steps++
		l.crash()
		l.moment()
		l.check(l.world)
		l.crash()
	}
	ctx := &betweenRounds{Context: context.Background()}
	l.onSettle = func() {
		step()
		if reading {
			l.onRead = step
		}
		l.onGrow = func() { ctx.hook = step }
	}
	var kill func()
	kill = func() { l.crash(); l.onCommit = kill }
	l.onCommit = kill
	err := work(l, ctx)
	l.onSettle, l.onRead, l.onGrow, l.onCommit, ctx.hook = nil, nil, nil, nil, nil
	if steps < 2 {
		l.t.Fatalf("%d moments meanwhile", steps)
	}
	return err
}

// Whatever was done with a row before, during and after a flush or merge, in one to three steps
// each, reads find it at every time, in the table as it is and as it comes back after a kill.
func TestWritersGoOnWhileMemoryIsFlushedAndRowSetsAreMerged(t *testing.T) {
	for name, work := range works {
		// With fewer keys the second round is the last, made with writers held; with more there are
		// several.
		for _, moments := range []int{5, 6} {
			if moments > 5 && (testing.Short() || name != "flush" && name != "merge") {
				continue
			}
			t.Run(fmt.Sprintf("%s/moments=%d", name, moments), func(t *testing.T) {
				l := newLives(t, moments)
				l.moment()
				l.flush()
				l.moment()
				if err := l.meanwhile(moments > 5, work); err != nil {
					t.Fatal(err)
				}
				for l.digit < l.keys {
					l.check(l.world)
					l.crash()
					l.moment()
				}
				l.check(l.world)
				l.crash()
				l.flush()
				l.check(l.world)
				if _, err := l.tab.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.check(l.world)
				l.checkStored()
				l.checkFree()
				l.checkEmpty()
			})
		}
	}
}

var errNo = errors.New("no")

// A flush or merge that fails at its end leaves the table as right as it was, with all that was
// written meanwhile; done again it finds all that the first left, with more written in between and
// meanwhile.
func TestWhatAFailedFlushLeavesIsFlushedByTheNext(t *testing.T) {
	for name, work := range works {
		t.Run(name, func(t *testing.T) {
			l := newLives(t, 5)
			l.moment()
			l.flush()
			l.moment()
			l.commitErr = errNo
			if err := l.meanwhile(false, work); !errors.Is(err, errNo) {
				t.Fatal(err)
			}
			l.commitErr = nil
			l.check(l.world)
			l.crash()
			if err := l.meanwhile(false, work); err != nil {
				t.Fatal(err)
			}
			if l.digit < l.keys {
				t.Error("there was nothing written the second time")
			}
			l.check(l.world)
			l.crash()
			l.flush()
			if got := l.tab.FirstLSN(); got != NoLSN || l.tab.state.frozen != nil {
				t.Errorf("first lsn %d after a flush", got)
			}
			l.check(l.world)
			l.checkStored()
			l.checkFree()
			l.checkEmpty()
		})
	}
}

// checkEmpty fails when the table, which holds nothing in memory, has not given all of it back.
func (w *world) checkEmpty() {
	w.t.Helper()
	if _, deltas := w.tab.MemBytes(); deltas != 0 || w.memory != 0 {
		w.t.Errorf("%d bytes are taken by MemRowSets, %d by delta mem stores", w.memory, deltas)
	}
}

// The log is kept from the first change on that was carried over, though the rewrite's files hold
// all that was before it and nothing else is in memory.
func TestLogIsKeptForWhatWasCarriedOver(t *testing.T) {
	for name, work := range works {
		for _, kept := range []bool{false, true} { // a MemRowSet that a failed flush has left
			t.Run(fmt.Sprintf("%s/kept=%t", name, kept), func(t *testing.T) {
				l := &lives{world: newWorld(t, testSchema)}
				l.mustCommit(l.op(Insert, 1, 1, "x"), l.op(Insert, 2, 1, "x"))
				if name != "flush" {
					l.flush()
				}
				if kept {
					l.mustCommit(l.op(Insert, 3, 1, "x"))
					l.commitErr = errNo
					if _, err := l.tab.Flush(t.Context()); !errors.Is(err, errNo) {
						t.Fatal(err)
					}
					l.commitErr = nil
				}
				if name != "flush" {
					l.mustCommit(l.op(Update, 1, 2, "x"))
				}
				l.onSettle = func() { l.mustCommit(l.op(Update, 1, 3, "y"), l.op(Delete, 2, 0, "")) }
				if err := work(l, t.Context()); err != nil {
					t.Fatal(err)
				}
				n := l.reopened(0)
				if got, want := fmt.Sprint(n.scan(latest, true)), fmt.Sprint(l.scan(latest, true)); got != want || n.get(1, latest) != `1: 3 "y" 7` || n.get(2, latest) != "" {
					t.Errorf("after a kill %s, before it %s", got, want)
				}
				if start, first := l.m.LogStart(), l.tab.FirstLSN(); start != first && (first != NoLSN || start != l.lsn+1) {
					t.Errorf("the log is kept from %d on, memory holds what is from %d on", start, first)
				}
			})
		}
	}
}

// A table with a MemRowSet that a failed flush has left is dropped, altered, closed as any other,
// and an ingest finds the keys in it.
func TestWhatAFailedFlushLeavesIsInNobodysWay(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, testSchema)
		w.mustCommit(w.op(Insert, 1, 1, "x"))
		w.commitErr = errNo
		if _, err := w.tab.Flush(t.Context()); !errors.Is(err, errNo) || w.tab.state.frozen == nil {
			t.Fatalf("%v, and nothing is left", err)
		}
		w.commitErr = nil
		w.mustCommit(w.op(Insert, 2, 1, "x"), w.op(Update, 1, 2, "y"))
		return w
	}
	t.Run("drop", func(t *testing.T) {
		w := start(t)
		if err := w.tab.Drop(w.dropRows); err != nil || w.memory != 0 {
			t.Errorf("%v, %d bytes are taken", err, w.memory)
		}
	})
	t.Run("close", func(t *testing.T) {
		w := start(t)
		w.tab.Close()
		if _, err := w.tab.Flush(t.Context()); !errors.Is(err, fault.ErrClosed) {
			t.Error(err)
		}
		w.checkFree()
	})
	t.Run("alter", func(t *testing.T) {
		w := start(t)
		err := w.tab.Alter(t.Context(), func(row *meta.Table) error {
			row.Comment = "changed"
			return nil
		})
		if got := fmt.Sprint(w.scan(latest, true)); err != nil || w.tab.Metadata().SchemaVersion != 1 || got != `[1: 2 "y" 7 2: 1 "x" 7]` {
			t.Errorf("%v, rows %s, %+v", err, got, w.tab.Metadata())
		}
		w.checkStored()
		w.checkEmpty()
		w.checkFree()
	})
	t.Run("alter that fails", func(t *testing.T) {
		w := start(t)
		w.flush()
		w.mustCommit(w.op(Insert, 3, 1, "x"))
		w.commitErr = errNo
		if err := w.tab.Alter(t.Context(), func(*meta.Table) error { return nil }); !errors.Is(err, errNo) {
			t.Fatal(err)
		}
		w.commitErr = nil
		w.mustCommit(w.op(Update, 3, 2, "y"), w.op(Delete, 2, 0, ""), w.op(Insert, 4, 1, "x"))
		w.flush()
		if got := fmt.Sprint(w.scan(latest, true)); got != `[1: 2 "y" 7 3: 2 "y" 7 4: 1 "x" 7]` {
			t.Error(got)
		}
		w.checkStored()
		w.checkEmpty()
	})
	t.Run("ingest", func(t *testing.T) {
		w := start(t)
		for _, k := range []int{1, 2} {
			if _, err := w.ingest(9, 0, k); !errors.Is(err, fault.ErrKeyExists) {
				t.Errorf("of key %d, which is there: %v", k, err)
			}
		}
		in, err := w.tab.BeginIngest()
		if err == nil {
			err = in.Append(w.ingestRows(9, 3, 4))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer in.Abort()
		w.mustCommit(w.op(Insert, 4, 1, "x"))
		w.commitErr = errNo
		w.tab.Flush(t.Context())
		w.commitErr = nil
		if _, err := in.Finish(t.Context()); !errors.Is(err, fault.ErrKeyExists) {
			t.Errorf("of a key that came meanwhile: %v", err)
		}
		if ts, err := w.ingest(9, 5); err != nil || w.get(5, Snapshot{At: mvcc.AsOf(ts)}) != ingestText(5, 9) {
			t.Errorf("of a new key: %v", err)
		}
		w.checkFree()
	})
}
