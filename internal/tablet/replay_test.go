package tablet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// resolved returns an operation as in the log.
func (w *testStore) resolved(kind change.Kind, k, a int, s string) record.Op {
	op := record.Op{Table: 3, Kind: kind, Key: w.key(k)}
	switch kind {
	case change.Insert, change.Replace:
		op.Body = w.image(k, a, s)
	case change.Update:
		op.Body = w.op(Update, k, a, s).Body
	}
	return op
}

func (w *testStore) replay(op record.Op, lsn lsn.LSN) error {
	r := w.tab.Replayer()
	defer r.Flush()
	return r.Apply(op, timestampOf(lsn), lsn)
}

// These are the cases of Replay's rule. Key 5 was inserted by lsn 1 and flushed with everything up
// to lsn 2; key 6 was inserted by lsn 3, and a second flush wrote it with the deltas up to lsn 4.
func TestReplaySkipsOperationsInFiles(t *testing.T) {
	start := func(t *testing.T) *testStore {
		w := newTestStore(t, testSchema)
		w.mustCommit(w.op(Insert, 5, 1, "x")) // lsn 1
		w.mustCommit(w.op(Update, 5, 2, "x")) // lsn 2
		w.flush()
		w.mustCommit(w.op(Insert, 6, 1, "x")) // lsn 3
		w.mustCommit(w.op(Update, 5, 4, "x")) // lsn 4
		w.flush()
		n := w.reopened(w.lsn + 1)
		must.Equal(t, n.tab.Metadata().FlushedLSN, 4, "flushed lsn")
		for _, m := range n.tab.RowSetMetadata() {
			must.Equal(t, m.IncludedLSN, 4, "rowset", m.ID, "included lsn")
		}
		return n
	}
	type step struct {
		kind change.Kind
		k    int
		lsn  lsn.LSN
	}
	for _, test := range []struct {
		name        string
		steps       []step
		key5, key6  string
		inMem, live int
	}{
		{"nothing", nil, `5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"insert that is flushed", []step{{change.Insert, 5, 1}, {change.Insert, 6, 3}}, `5: 4 "x" 7`,
			`6: 1 "x" 7`, 0, 2},
		{"insert at the flushed lsn", []step{{change.Insert, 9, 4}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"insert after it", []step{{change.Insert, 9, 5}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 1, 3},
		{"update that is included", []step{{change.Update, 5, 4}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"update after it", []step{{change.Update, 5, 5}}, `5: 99 "new" 7`, `6: 1 "x" 7`, 0, 2},
		{"delete that is included", []step{{change.Delete, 5, 3}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"delete after it", []step{{change.Delete, 5, 5}}, ``, `6: 1 "x" 7`, 0, 1},
		{"delete, insert, update", []step{{change.Delete, 5, 5}, {change.Insert, 5, 6}, {change.Update, 5, 7}},
			`5: 99 "new" 7`, `6: 1 "x" 7`, 1, 2},
		{"insert and update in memory", []step{{change.Insert, 9, 5}, {change.Update, 9, 6},
			{change.Delete, 9, 6}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 1, 2},
		{"update of a row that never existed", []step{{change.Update, 77, 5}, {change.Delete, 77, 6}},
			`5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"replacement that is included", []step{{change.Replace, 5, 4}}, `5: 4 "x" 7`, `6: 1 "x" 7`, 0, 2},
		{"replacement after it", []step{{change.Replace, 5, 5}}, `5: 99 "new" 7`, `6: 1 "x" 7`, 0, 2},
		{"replacement in memory", []step{{change.Insert, 9, 5}, {change.Replace, 9, 6}, {change.Update, 9, 7}},
			`5: 4 "x" 7`, `6: 1 "x" 7`, 1, 3},
		{"replacement of a ghost", []step{{change.Delete, 5, 5}, {change.Replace, 5, 6}}, ``, `6: 1 "x" 7`, 0, 1},
		{"update of a ghost", []step{{change.Delete, 5, 5}, {change.Update, 5, 6}, {change.Delete, 5, 7}}, ``,
			`6: 1 "x" 7`, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			for _, s := range test.steps {
				must.Do(t, w.replay(w.resolved(s.kind, s.k, 99, "new"), s.lsn))
			}
			must.Equal(t, w.get(5, latest), test.key5, "keys")
			must.Equal(t, w.get(6, latest), test.key6)
			if got := w.tab.state.Load().mem.Len(); got != test.inMem || int(w.tab.LiveRows()) != test.live {
				t.Errorf("%d rows in memory, %d live, want %d, %d", got, w.tab.LiveRows(), test.inMem, test.live)
			}
			want := lsn.Max
			for _, s := range test.steps {
				if s.lsn > 4 && s.k != 77 {
					want = min(want, s.lsn)
				}
			}
			must.Equal(t, w.tab.FirstLSN(), want, "first lsn")
		})
	}
}

// Of the rowsets that contain a key, only the rowsets whose included LSN is below the operation's
// are consulted: the others may include later operations.
func TestReplaySkipsRowSetsWithLaterLSNs(t *testing.T) {
	// Rowset 1 as of lsn 2, where key 5 is live; rowset 2 as of lsn 9, where key 5 was inserted
	// again.
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "first"))
	w.mustCommit(w.op(Update, 5, 2, "first"))
	w.flush()
	w.mustCommit(w.op(Delete, 5, 0, ""))
	w.mustCommit(w.op(Insert, 5, 3, "second"))
	w.flush()
	sets := w.tab.RowSetMetadata()
	past, future := *sets[0], *sets[1]
	past.IncludedLSN, past.Redo, past.LiveRows = 2, nil, 1
	future.IncludedLSN = 9
	open := func() *testStore {
		n := &testStore{t: t, m: w.m}
		var err error
		n.tab, err = Open(w.tab.opts, w.tab.Metadata(), []*rowset.Metadata{&past, &future})
		must.Do(t, err)
		return n
	}
	n := open()
	must.Do(t, n.replay(n.resolved(change.Delete, 5, 0, ""), 4))
	for _, d := range n.tab.state.Load().tree.Sets {
		must.Equal(t, must.Get(d.Live(0))(t), d.Metadata().ID == future.ID, "rowset", d.Metadata().ID, "live")
	}
	must.Do(t, n.replay(n.resolved(change.Update, 5, 8, "second"), 9))
	must.Do(t, n.replay(n.resolved(change.Update, 5, 9, "second"), 10))
	must.Equal(t, n.get(5, latest), `5: 9 "second" 7`, "key 5")

	// Live in both as of one LSN: this engine never writes that.
	if n = open(); !errors.Is(n.replay(n.resolved(change.Update, 5, 1, ""), 20), fault.ErrCorrupt) {
		t.Error("a key that is live in two rowsets is not reported")
	}
}

func TestReplayRefusesImpossibleOperations(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "x"))
	ops := map[string]record.Op{
		"insert of a live row":     w.resolved(change.Insert, 5, 1, "x"),
		"another schema":           {Table: 3, SchemaVersion: 1, Kind: change.Delete, Key: w.key(5)},
		"bytes that are not a key": {Table: 3, Kind: change.Delete, Key: []byte{1, 2}},
		"a truncated row image":    {Table: 3, Kind: change.Insert, Key: w.key(6), Body: w.image(6, 1, "x")[:5]},
		"a truncated replacement":  {Table: 3, Kind: change.Replace, Key: w.key(5), Body: w.image(5, 1, "x")[:5]},
		"an update of no column":   {Table: 3, Kind: change.Update, Key: w.key(5), Body: []byte{1}},
		"an update of the key": {Table: 3, Kind: change.Update, Key: w.key(5),
			Body: change.AppendColumn([]byte{1}, 1, int64Cell(6))},
		"a delete as an update": {Table: 3, Kind: change.Update, Key: w.key(5), Body: []byte{1, 2, 9}},
	}
	for name, op := range ops {
		if err := w.replay(op, 2); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), `"t"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := w.scan(latest, true); len(got) != 1 || got[0] != `5: 1 "x" 7` {
		t.Errorf("rows %v", got)
	}
}

// Plan: random batches, flushes, compactions. After each of them the store is killed and reopened,
// and the log replayed from log_start or from its first record. Every snapshot has the same rows as
// before.
func TestReplayRestoresEverySnapshot(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(10, 2)
	for range rounds {
		w, pic := newTestStore(t, testSchema), versions{}
		for range 25 {
			w.step(r, pic)
			switch r.IntN(8) {
			case 0:
				w.flush()
			case 1:
				must.Get(w.tab.Compact(context.Background()))(t)
			case 2, 3:
				w.compareAll(pic)
				w.reopened(0).compareAll(pic)
				w.reopened(1).compareAll(pic)
			case 4:
				w = w.reopened(0)
			}
		}
	}
}

// compareAll compares the table with the model at every snapshot, and its counts with the number of
// rows.
func (w *testStore) compareAll(pic versions) {
	w.t.Helper()
	for lsn := lsn.LSN(0); lsn <= w.lsn+1; lsn++ {
		before := mvcc.AsOf(timestampOf(lsn))
		want := fmt.Sprint(pic.scan(before))
		if got := fmt.Sprint(w.scan(Snapshot{At: before}, true)); got != want {
			w.t.Fatalf("at %d: %s, want %s", before, got, want)
		}
		for k := range pic {
			if got := w.get(k, Snapshot{At: before}); got != pic.at(k, before) {
				w.t.Fatalf("at %d: key %d is %q, want %q", before, k, got, pic.at(k, before))
			}
		}
	}
	if got, want := w.tab.LiveRows(), int64(len(pic.scan(mvcc.Everything))); got != want {
		w.t.Fatalf("%d live rows, want %d", got, want)
	}
	newest := mvcc.Min
	for _, versions := range pic {
		for _, v := range versions {
			newest = max(newest, v.ts)
		}
	}
	if got := w.tab.MaxTimestamp(); got < newest || got > timestampOf(w.lsn) {
		w.t.Fatalf("newest timestamp %d, want %d to %d", got, newest, timestampOf(w.lsn))
	}
}

// Operations of one record have the same effect together, in runs, as one at a time.
func TestReplayOfRunsEqualsReplayOfOperations(t *testing.T) {
	r := seedtest.Rand(t)
	for range 8 {
		w, one := newTestStore(t, testSchema), newTestStore(t, testSchema)
		all := w.tab.Replayer()
		live := map[int]bool{}
		next := 0
		for l := lsn.LSN(1); l <= 12; l++ {
			for range 1 + r.IntN(40) {
				kind, k := change.Insert, r.IntN(next+2)
				if r.IntN(3) > 0 {
					k = next // in key order
				}
				if next = max(next, k+1); live[k] {
					kind = []change.Kind{change.Insert, change.Update, change.Replace, change.Delete}[r.IntN(8)/2]
				}
				op := w.resolved(kind, k, int(l), "new")
				err, oneErr := all.Apply(op, timestampOf(l), l), one.replay(op, l)
				if exists := live[k] && kind == change.Insert; errors.Is(err, fault.ErrCorrupt) != exists ||
					errors.Is(oneErr, fault.ErrCorrupt) != exists {
					t.Fatalf("%v of key %d, live %t: %v and %v", kind, k, live[k], err, oneErr)
				}
				live[k] = kind != change.Delete
			}
			all.Flush()
			w.lsn, one.lsn = l, l
			for back := lsn.LSN(0); back < l; back += 1 + lsn.LSN(r.IntN(5)) {
				at := Snapshot{At: mvcc.AsOf(timestampOf(l - back))}
				must.Equal(t, w.scan(at, true), one.scan(at, true), "at lsn", l, "as of", l-back)
			}
			must.Equal(t, w.tab.FirstLSN(), one.tab.FirstLSN(), "first lsn")
			must.Equal(t, w.tab.MaxTimestamp(), one.tab.MaxTimestamp())
		}
	}
}
