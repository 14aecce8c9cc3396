package tablet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Byte strings of a batch stay valid after the next call of Next, in a scan of memory and in a scan
// that also reads a rowset. There are more rows than fit one window, and all were updated, so the
// MemRowSet builds their images.
func TestByteStringsOfAScanStayValid(t *testing.T) {
	const n = 3*batch.WindowRows + 100
	for _, disk := range []bool{false, true} {
		w := newTestStore(t, testSchema)
		if disk {
			w.mustCommit(w.op(Insert, n/2, 1, "on disk"))
			w.flush()
		}
		var inserts, updates []Op
		for k := range n {
			if disk && k == n/2 {
				continue
			}
			inserts, updates = append(inserts, w.op(Insert, k, 1, "old")), append(updates,
				w.op(Update, k, 2, fmt.Sprint("text of row ", k)))
		}
		w.mustCommit(inserts...)
		w.mustCommit(updates...)
		for _, ordered := range []bool{true, false} {
			rows := w.scan(latest, ordered) // compared after all rows were read
			must.Equal(t, len(rows), n, "rows")
			slices.SortFunc(rows, func(a, b string) int { return len(a) - len(b) })
			seen := map[string]bool{}
			for _, row := range rows {
				seen[row] = true
			}
			for k := range n {
				want := fmt.Sprintf(`%d: 2 "text of row %d" 7`, k, k)
				if disk && k == n/2 {
					want = fmt.Sprintf(`%d: 1 "on disk" 7`, k)
				}
				must.Equal(t, seen[want], true, "disk", disk, "ordered", ordered, "no row", want)
			}
		}
	}
}

// randomTable returns a table of many overlapping rowsets, with deltas of all kinds, and perhaps
// rows in memory.
func randomTable(t *testing.T, r *rand.Rand) (*testStore, versions) {
	w, pic := newTestStore(t, testSchema), versions{}
	at, span := 0, 1+r.IntN(40)
	for range 1 + r.IntN(6) {
		at += r.IntN(60) - 20
		for range 1 + r.IntN(3) {
			var ops []Op
			now := map[int]string{}
			for range 1 + r.IntN(30) {
				k, a, s := at+r.IntN(span), r.IntN(5), []string{"", "x", "y"}[r.IntN(3)]
				kind := []OpKind{Upsert, Upsert, UpdateIgnore, DeleteIgnore}[r.IntN(4)]
				ops = append(ops, w.op(kind, k, a, s))
				before, known := now[k]
				if !known {
					before = pic.at(k, mvcc.Everything)
				}
				now[k], _ = outcome(kind, before, rowText(w.tab.Schema().RowFormat.AppendCells(nil, w.image(k, a, s))))
			}
			w.mustCommit(ops...)
			for k, text := range now {
				if text != pic.at(k, mvcc.Everything) {
					pic[k] = append(pic[k], version{timestampOf(w.lsn), text})
				}
			}
		}
		if r.IntN(3) > 0 {
			w.flush()
		}
	}
	return w, pic
}

// Plan: random layouts, random requests. A scan returns the model's rows, each once, in ascending
// or descending key order if requested.
func TestScansMatchTheModelOverRandomLayouts(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(60, 12)
	for range rounds {
		w, pic := randomTable(t, r)
		for range 20 {
			at := Snapshot{At: mvcc.Snapshot(r.IntN(int(timestampOf(w.lsn)) + 20))}
			if r.IntN(3) == 0 || at.At == 0 {
				at = latest
			}
			req := scan.Options{Columns: allColumns, Descending: r.IntN(2) == 0}
			keep := func(int) bool { return true }
			if r.IntN(2) == 0 {
				lower, upper := r.IntN(100)-40, r.IntN(100)-20
				req.Lower, req.Upper = w.key(lower), w.key(upper)
				keep = func(k int) bool { return k >= lower && k < upper }
			}
			test := ""
			if r.IntN(2) == 0 {
				a := r.IntN(5)
				p := batch.Predicate{Column: "a", ID: 2, Type: schema.Int32, Op: batch.Eq,
					Values: [][]byte{int32Cell(a)}}
				must.Do(t, p.Prepare())
				req.Filter = batch.Test(p)
				test = fmt.Sprintf(": %d ", a)
			}
			var want []string
			for _, k := range slices.Sorted(func(yield func(int) bool) {
				for k := range pic {
					if !yield(k) {
						return
					}
				}
			}) {
				if text := pic.at(k, at.At); text != "" && keep(k) && strings.Contains(text, test) {
					want = append(want, text)
				}
			}
			ordered := r.IntN(2) == 0
			it := must.Get(search(w.tab, req, at, ordered))(t)
			got := must.Get(readAll(it))(t)
			switch {
			case !ordered:
				slices.Sort(got)
				slices.Sort(want)
			case req.Descending:
				slices.Reverse(want)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("at %d, ordered %t, descending %t, [%x, %x), %q:\ngot  %v\nwant %v\nlayout %+v", at.At,
					ordered, req.Descending, req.Lower, req.Upper, test, got, want, w.tab.Info())
			}
			must.Equal(t, it.Next(), false, "Next returned true after Close")
		}
		for k := range pic {
			trace := must.Get(explain(w.tab, w.key(k), latest))(t)
			found := trace.InMemory
			for _, s := range trace.Steps {
				if s.Live && (!s.Found || !s.Filter || found) {
					t.Fatalf("key %d: %+v", k, trace)
				}
				found = found || s.Live
			}
			must.Equal(t, found, pic.at(k, mvcc.Everything) != "", "key", k, trace)
		}
	}
}

// A scan reads the state that it began with, regardless of later inserts, deletes, flushes and
// compactions, even after the table was dropped. Files that it had not opened before still exist.
func TestScanKeepsItsState(t *testing.T) {
	for name, upset := range map[string]func(w *testStore) error{
		"flush":   func(w *testStore) error { _, err := w.tab.Flush(t.Context()); return err },
		"compact": func(w *testStore) error { _, err := w.tab.Compact(t.Context()); return err },
		"drop":    func(w *testStore) error { return w.drop(w.dropRows) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestStore(t, testSchema)
			for i := range 4 {
				for k := range 20 {
					w.mustCommit(w.op(Upsert, 10*i+k, i, "x"))
				}
				w.flush()
			}
			w.mustCommit(w.op(Upsert, 15, 99, "memory"))
			w = w.reopened(0) // no file is open
			want := w.scan(latest, true)
			w = w.reopened(0)
			var its []scan.Iterator
			for range 3 {
				it := must.Get(search(w.tab, scan.Options{Columns: allColumns},
					Snapshot{At: mvcc.AsOf(timestampOf(w.lsn))}, true))(t)
				its = append(its, it)
			}
			w.mustCommit(w.op(Delete, 15, 0, ""), w.op(Upsert, 3, 77, "late"))
			must.Do(t, upset(w))
			if err := w.m.Commit(noChange); err != nil { // frees the space of dead blocks
				t.Fatal(err)
			}
			for i, it := range its {
				must.Equal(t, must.Get(readAll(it))(t), want, "scan", i)
			}
		})
	}
}

// A compaction does not read the key index of a compound key and the bloom file, but readers of the
// rowsets that it replaces may.
func TestScanWithBoundsKeepsItsKeyIndex(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{ID: 1, Name: "a", Type: schema.Int64},
		{ID: 2, Name: "b", Type: schema.String}}, 2))(t)
	w := newTestStore(t, s)
	key := func(a int, b string) []byte {
		return w.tab.Schema().Encoder.AppendPrefix(nil, [][]byte{int64Cell(a), []byte(b)})
	}
	for i := range 2 {
		for a := range 9 {
			b := fmt.Sprint("text ", i)
			w.mustCommit(Op{Kind: Insert, Key: key(a, b),
				Body: w.tab.Schema().RowFormat.AppendRow(nil, [][]byte{int64Cell(a), []byte(b)})})
		}
		w.flush()
	}
	w = w.reopened(w.lsn + 1) // no file is open
	it := must.Get(
		search(w.tab, scan.Options{Columns: []int{0}, Lower: key(3, "u"), Upper: key(5, "text 1")}, latest, true))(t)
	must.Get(w.tab.Compact(t.Context()))(t)
	rows := 0
	for it.Next() {
		rows += it.Batch().Selected()
	}
	must.Do(t, it.Close())
	must.Equal(t, rows, 3, "rows")
}

func TestReadsBelowTheFloorAreTooOld(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "x"))
	w.mustCommit(w.op(Update, 5, 2, "x"))
	w.mustCommit(w.op(Update, 5, 3, "x"))
	w.floor = timestampOf(2)
	w.flush()
	check := func() {
		t.Helper()
		for snap, want := range map[mvcc.Snapshot]string{mvcc.AsOf(timestampOf(2)): `5: 2 "x" 7`,
			mvcc.Before(timestampOf(3)): `5: 2 "x" 7`, mvcc.AsOf(timestampOf(3)): `5: 3 "x" 7`} {
			must.Equal(t, w.get(5, Snapshot{At: snap}), want, "at", snap)
		}
		for _, snap := range []mvcc.Snapshot{mvcc.Nothing, mvcc.Before(timestampOf(1)), mvcc.Before(timestampOf(2))} {
			_, err1 := get(w.tab, w.key(5), Snapshot{At: snap}, nil, nil)
			_, err2 := search(w.tab, scan.Options{}, Snapshot{At: snap}, true)
			_, err3 := explain(w.tab, w.key(5), Snapshot{At: snap})
			for _, err := range []error{err1, err2, err3} {
				must.Fail(t, err, fault.ErrTooOld, "at", snap)
			}
		}
		// The newest state is never too old, even if nothing was published after the floor.
		must.Equal(t, w.get(5, Snapshot{At: mvcc.Before(timestampOf(1)), Latest: true}), `5: 2 "x" 7`, "latest")
	}
	check()
	w.floor = 0 // the floor never falls
	w.mustCommit(w.op(Insert, 6, 1, "x"))
	w.flush()
	check()
	w = w.reopened(0)
	check()
	must.Equal(t, w.tab.Metadata().HistoryFloor, timestampOf(2), "floor in the metadata")
}

// boundsOf returns rowsets that have only bounds.
func boundsOf(t *testing.T, text string) (sets []*rowset.DiskRowSet) {
	t.Helper()
	for i, b := range strings.Fields(text) {
		first, last, _ := strings.Cut(b, "-")
		d, err := rowset.Open(testSchema, &rowset.Metadata{ID: uint64(i), MinKey: []byte(first), MaxKey: []byte(last),
			Columns: []rowset.ColumnBlock{{ID: 1, Block: 1}, {ID: 2, Block: 2}}}, rowset.Options{})
		must.Do(t, err)
		sets = append(sets, d)
	}
	return sets
}

// Only rowsets that overlap are merged.
func TestOverlappingRowSetsAreGroups(t *testing.T) {
	for bounds, want := range map[string]string{
		"":                    "[]",
		"a-c":                 "[[0]]",
		"a-c d-f g-h":         "[[0] [1] [2]]",
		"a-c c-f g-h":         "[[0 1] [2]]",
		"a-z b-c d-e f-g":     "[[0 1 2 3]]",
		"a-d b-e c-f e-g":     "[[0 1 2 3]]",
		"a-b a-b a-b":         "[[0 1 2]]",
		"a-m b-c n-o n-z p-q": "[[0 1] [2 3 4]]",
	} {
		var got [][]uint64
		for sets := boundsOf(t, bounds); len(sets) > 0; {
			group := rowunion.Overlapping(sets)
			sets = sets[len(group):]
			var ids []uint64
			for _, d := range group {
				ids = append(ids, d.Metadata().ID)
			}
			got = append(got, ids)
		}
		must.Equal(t, fmt.Sprint(got), want, bounds, "groups")
	}
}

// Row IDs number the rows of one DiskRowSet, so a scan of a table by them has no meaning: the rows
// in memory have none.
func TestScanOfATableRefusesRowIDs(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, "on disk"))
	w.flush()
	w.mustCommit(w.op(Insert, 2, 1, "in memory"))
	for _, rows := range []scan.RowRange{{From: 1}, {To: 1}, {From: 1, To: 1}} {
		for _, ordered := range []bool{true, false} {
			it, err := search(w.tab, scan.Options{Columns: []int{0}, Rows: rows}, latest, ordered)
			if err == nil {
				it.Close()
				t.Errorf("a scan of rows [%d, %d), ordered %t, began", rows.From, rows.To, ordered)
			}
		}
	}
}
