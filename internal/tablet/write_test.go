package tablet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

var allAsks = []OpKind{Insert, Upsert, Update, Delete, InsertIgnore, UpsertIgnore, UpdateIgnore, DeleteIgnore}

// The steps by which key 5 comes to a position.
var (
	insertX   = func(w *testStore) { w.mustCommit(w.op(Insert, 5, 1, "x")) }
	updateY   = func(w *testStore) { w.mustCommit(w.op(Update, 5, 3, "y")) }
	deleteRow = func(w *testStore) { w.mustCommit(w.op(Delete, 5, 0, "")) }
	insertZ   = func(w *testStore) { w.mustCommit(w.op(Insert, 5, 4, "z")) }
	replaceZ  = func(w *testStore) { w.mustCommit(w.op(Delete, 5, 0, ""), w.op(Insert, 5, 4, "z")) }
	setNull   = func(w *testStore) { w.mustCommit(w.op(Update, 5, 2, "")) }
	flush     = (*testStore).flush
)

type keyPosition struct {
	name  string
	steps []func(w *testStore)
	text  string
}

func (p keyPosition) make(w *testStore) {
	for _, step := range p.steps {
		step(w)
	}
}

// keyPositions lists the positions that key 5 can have, live or as a ghost, with the row that is
// then read.
var keyPositions = []keyPosition{
	{"absent", nil, ""},
	{"in memory", []func(*testStore){insertX}, `5: 1 "x" 7`},
	{"in memory, updated", []func(*testStore){insertX, setNull}, `5: 2 NULL 7`},
	{"ghost in memory", []func(*testStore){insertX, deleteRow}, ""},
	{"on disk", []func(*testStore){insertX, flush}, `5: 1 "x" 7`},
	{"on disk, updated in memory", []func(*testStore){insertX, flush, updateY}, `5: 3 "y" 7`},
	{"on disk, updated in a file", []func(*testStore){insertX, flush, updateY, flush}, `5: 3 "y" 7`},
	{"ghost on disk, deleted in memory", []func(*testStore){insertX, flush, deleteRow}, ""},
	{"ghost on disk, deleted in a file", []func(*testStore){insertX, flush, deleteRow, flush}, ""},
	{"ghost on disk, live in memory", []func(*testStore){insertX, flush, replaceZ}, `5: 4 "z" 7`},
	{"ghosts on disk and in memory", []func(*testStore){insertX, flush, deleteRow, insertZ, deleteRow}, ""},
	{"ghost in one rowset, live in another", []func(*testStore){insertX, flush, deleteRow, insertZ, flush},
		`5: 4 "z" 7`},
}

// Tablet spec §12.4: each operation on a key at each position, alone and between operations on
// other keys. The row before the operation can still be read.
func TestOperationsMatchTheResultTable(t *testing.T) {
	for _, p := range keyPositions {
		for _, kind := range allAsks {
			for _, neighbors := range []bool{true, false} {
				if testing.Short() && !neighbors {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/neighbors=%t", p.name, kind, neighbors), func(t *testing.T) {
					w := newTestStore(t, testSchema)
					p.make(w)
					must.Equal(t, w.get(5, latest), p.text, "before")
					before := Snapshot{At: mvcc.AsOf(timestampOf(w.lsn))}
					ops := []Op{w.op(kind, 5, 9, "new")}
					index := 0
					if neighbors { // keys that do not ascend
						ops = []Op{w.op(Upsert, 8, 1, "n"), ops[0], w.op(Upsert, 2, 1, "n")}
						index = 1
					}
					want, cause := outcome(kind, p.text, `5: 9 "new" 7`)
					_, err := w.commit(ops...)
					if cause != nil {
						var row *change.RowError
						if !errors.Is(err, cause) || !errors.Is(err, fault.ErrRow) || !errors.As(err, &row) ||
							row.Row != index || row.Table != "t" || row.Key != "5" {
							t.Fatalf("error %v, want %v of row %d, key 5", err, cause, index)
						}
						want = p.text
					} else if err != nil {
						t.Fatal(err)
					}
					neighbor := ""
					if neighbors && cause == nil {
						neighbor = `8: 1 "n" 7`
					}
					must.Equal(t, w.get(5, latest), want)
					must.Equal(t, w.get(8, latest), neighbor)
					must.Equal(t, w.get(5, before), p.text, "before the batch")
					w.checkFree()
					w.flush()
					must.Equal(t, w.get(5, latest), want, "after a flush")
					must.Equal(t, w.get(5, before), p.text, "before the batch, after a flush")
				})
			}
		}
	}
}

// Plan: batches of several operations on few keys, in any order. The result, or the first row
// error, is the same as if the operations ran one after another. After a row error nothing has
// changed.
func TestBatchesResolveAgainstTheirOwnOperations(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(25, 5)
	for range rounds {
		w, pic := newTestStore(t, testSchema), versions{}
		for range 40 {
			w.step(r, pic)
			if r.IntN(8) == 0 {
				w.flush()
			}
		}
		if got, want := w.scan(latest, true),
			pic.scan(mvcc.AsOf(timestampOf(w.lsn))); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// Plan: several goroutines find the rows of a large batch. Its effect is the same as of one batch
// per operation, with keys that repeat, in rowsets, in memory, and absent.
func TestLargeBatchesEqualSingleOperations(t *testing.T) {
	r := seedtest.Rand(t)
	for range seedtest.Rounds(20, 5) {
		at, each := newTestStore(t, testSchema), newTestStore(t, testSchema)
		keys := 50 + r.IntN(2000)
		for range 4 {
			var ops []Op
			for range sharedKeys + r.IntN(2*sharedKeys) {
				kind := []OpKind{Upsert, Upsert, InsertIgnore, UpdateIgnore, DeleteIgnore}[r.IntN(5)]
				k, a, s := r.IntN(keys), r.IntN(5), []string{"", "x", "y"}[r.IntN(3)]
				ops = append(ops, at.op(kind, k, a, s))
				each.mustCommit(each.op(kind, k, a, s))
			}
			at.mustCommit(ops...)
			must.Equal(t, at.scan(latest, true), each.scan(latest, true),
				len(ops), "operations on", keys, "keys")
			if r.IntN(3) > 0 {
				at.flush()
			}
		}
	}
}

// step commits a random batch and updates the model.
func (w *testStore) step(r *rand.Rand, pic versions) {
	w.t.Helper()
	var ops []Op
	var text []string // the row that each op would set
	var keys []int
	for range 1 + r.IntN(6) {
		k, a, s := r.IntN(6)-2, r.IntN(100), []string{"", "x", "long text"}[r.IntN(3)]
		kind := allAsks[r.IntN(len(allAsks))]
		if r.IntN(3) > 0 {
			kind = []OpKind{Upsert, DeleteIgnore, UpdateIgnore, InsertIgnore}[r.IntN(4)] // no errors
		}
		ops, keys = append(ops, w.op(kind, k, a, s)), append(keys, k)
		text = append(text, rowText(w.tab.Schema().RowFormat.AppendCells(nil, w.image(k, a, s))))
	}
	now := map[int]string{}
	var want error
	failed := -1
	for i, op := range ops {
		before, known := now[keys[i]]
		if !known {
			before = pic.at(keys[i], mvcc.AsOf(timestampOf(w.lsn)))
		}
		if now[keys[i]], want = outcome(op.Kind, before, text[i]); want != nil {
			failed = i
			break
		}
	}
	lsn := w.lsn
	_, err := w.commit(ops...)
	var row *change.RowError
	switch {
	case !errors.Is(err, want) || want == nil && err != nil:
		w.t.Fatalf("error %v, want %v of row %d", err, want, failed)
	case want != nil && (!errors.As(err, &row) || row.Row != failed || row.Key != fmt.Sprint(keys[failed]) ||
		w.lsn != lsn):
		w.t.Fatalf("error %v, want row %d of key %d; lsn %d, %d before", err, failed, keys[failed], w.lsn, lsn)
	case want == nil:
		for k, text := range now {
			if pic.at(k, mvcc.AsOf(timestampOf(w.lsn))) != text {
				pic[k] = append(pic[k], version{timestampOf(w.lsn), text})
			}
		}
	}
}

func TestUpsertKeepsColumnsThatAreNotSet(t *testing.T) {
	for _, place := range []string{"in memory", "on disk"} {
		w := newTestStore(t, testSchema)
		w.mustCommit(w.op(Insert, 5, 1, "x"))
		if place == "on disk" {
			w.flush()
		}
		op := w.op(Upsert, 5, 9, "ignored")
		op.Set = batch.MakeBitmap(4)
		op.Set.Set(0)
		must.Equal(t, must.Get(w.commit(op))(t), 0, place, "an upsert of the key alone changes")
		op.Set.Set(1)
		must.Equal(t, must.Get(w.commit(op))(t), 1, place, "changes")
		must.Equal(t, w.get(5, latest), `5: 9 "x" 7`, place)
		op = w.op(UpsertIgnore, 5, 3, "")
		op.Set = batch.MakeBitmap(4)
		op.Set.Set(2)
		if _, err := w.commit(op); err != nil || w.get(5, latest) != `5: 9 NULL 7` {
			t.Errorf("%s: %v: %s", place, err, w.get(5, latest))
		}
	}
}

// An upsert without a required column is refused only if the row is new.
func TestUpsertOfANewRowNeedsRequiredColumns(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "x"))
	op := w.op(Upsert, 5, 0, "y")
	op.Set, op.Lacks = batch.MakeBitmap(4), "a"
	op.Set.Set(2)
	if _, err := w.commit(op); err != nil || w.get(5, latest) != `5: 1 "y" 7` {
		t.Errorf("an existing row: %v, %s", err, w.get(5, latest))
	}
	for _, ops := range [][]Op{
		{w.op(Delete, 5, 0, ""), op},
		{w.op(Upsert, 1, 1, ""), {Kind: Upsert, Key: w.key(6), Body: op.Body, Set: op.Set, Lacks: "a"}},
		{w.op(Upsert, 1, 1, ""), {Kind: Insert, Key: w.key(6), Body: op.Body, Lacks: "a"}},
	} {
		_, err := w.commit(ops...)
		var row *change.RowError
		if !errors.Is(err, ErrNotSet) || !errors.As(err, &row) || row.Column != "a" || row.Row != 1 {
			t.Errorf("a new row: %v", err)
		}
	}
	if got := w.scan(latest, true); len(got) != 1 {
		t.Errorf("rows %v", got)
	}
	w.checkFree()
}

// A row that one batch inserts and deletes is never visible, either before or after a flush.
func TestInsertAndDeleteInOneBatchIsNeverSeen(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, ""))
	w.mustCommit(w.op(Insert, 5, 1, "x"), w.op(Update, 5, 2, "y"), w.op(Delete, 5, 0, ""))
	check := func() {
		t.Helper()
		for snap := mvcc.Before(timestampOf(1)); snap <= mvcc.Before(timestampOf(4)); snap++ {
			must.Equal(t, w.get(5, Snapshot{At: snap}), "", "at", snap)
		}
	}
	check()
	w.flush()
	check()
	if got := w.tab.Info().RowSets; len(got) != 1 || got[0].Rows != 1 {
		t.Errorf("rowsets %+v", got)
	}
}

// After any error of Prepare no lock is held: a flush and a batch succeed.
func TestPrepareReleasesLocksAfterAnError(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "x"), w.op(Insert, 500, 1, "x"))
	w.flush()
	many := []Op{}
	for k := range 300 {
		many = append(many, w.op(Upsert, k, 1, ""))
	}
	for name, last := range map[string]Op{"key exists": w.op(Insert, 5, 1, ""), "not found": w.op(Update, 1000, 1, ""),
		"not set": {Kind: Insert, Key: w.key(1001), Body: w.image(1001, 1, ""), Lacks: "a"}} {
		must.Fail(t, must.Err(w.tab.Prepare(append(many, last), w.tab.Schema(), false, 0)), fault.ErrRow, name)
		w.checkFree()
	}
	w.flush()
	w.mustCommit(many...)
	w.checkFree()

	// A block that cannot be read is not a row error.
	n := w.reopened(w.lsn + 1)
	n.m.Close()
	if _, err := n.tab.Prepare([]Op{n.op(Insert, 9001, 1, ""), n.op(Insert, 5, 1, "")}, n.tab.Schema(), false,
		0); !errors.Is(err, fault.ErrClosed) || errors.Is(err, fault.ErrRow) {
		t.Errorf("with unreadable blocks: %v", err)
	}
	n.checkFree()

	w.tab.Close()
	must.Fail(t, must.Err(w.tab.Prepare(many, w.tab.Schema(), false, 0)), fault.ErrClosed, "after Close")
	w.checkFree()
}

func TestDroppedTableIsNotFound(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 5, 1, "x"))
	w.flush()
	w.mustCommit(w.op(Insert, 6, 1, "x"))
	failure := errors.New("injected failure")
	must.Fail(t, w.drop(func([]*rowset.Metadata) error { return failure }), failure, "drop that failed")
	w.checkFree()
	if got := w.scan(latest, true); len(got) != 2 {
		t.Errorf("after a drop that failed: %v", got)
	}
	calls := 0
	drop := func(sets []*rowset.Metadata) error {
		calls += len(sets)
		return nil
	}
	must.Do(t, w.drop(drop))
	must.Equal(t, calls, 1, "rowsets")
	_, prepare := w.tab.Prepare([]Op{w.op(Insert, 7, 1, "")}, w.tab.Schema(), false, 0)
	_, flush := w.tab.Flush(t.Context())
	_, compact := w.tab.Compact(t.Context())
	_, get := get(w.tab, w.key(5), latest, nil, nil)
	for name, err := range map[string]error{"prepare": prepare, "flush": flush, "compact": compact, "get": get,
		"drop": w.drop(drop)} {
		must.Fail(t, err, fault.ErrNoTable, name)
	}
	w.checkFree()
	if mem, deltas := w.tab.MemBytes(); mem != 0 || deltas != 0 || w.tab.LiveRows() != 0 ||
		w.tab.FirstLSN() != lsn.Max {
		t.Errorf("%d and %d bytes, %d rows, first lsn %d", mem, deltas, w.tab.LiveRows(), w.tab.FirstLSN())
	}
}

func TestKeyTextIsJSON(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{Name: "i", Type: schema.Int8}, {Name: `q"`, Type: schema.String},
		{Name: "b", Type: schema.Binary},
		{Name: "d", Type: schema.Date}, {Name: "m", Type: schema.Decimal32, Precision: 5, Scale: 2},
		{Name: "u", Type: schema.Uint16},
		{Name: "t", Type: schema.Timestamp}, {Name: "w", Type: schema.Int128},
		{Name: "z", Type: schema.Decimal32, Precision: 5}}, 9))(t)
	w := newTestStore(t, s)
	key := w.tab.Schema().Encoder.AppendKey(nil,
		[][]byte{{0xfe}, []byte("a\"\\\x01é"), {0, 0xff}, int32Cell(20778), int32Cell(-5), {0xff, 0xff},
			int64Cell(-1), append(int64Cell(-1), int64Cell(-1)...), int32Cell(12)})
	want := `{"i":-2,"q\"":"a\"\\\u0001é","b":"0x00ff","d":"2026-11-21","m":"-0.05","u":65535,"t":-1,"w":-1,"z":"12"}`
	must.Equal(t, w.tab.KeyText(key), want)
	must.Equal(t, w.tab.KeyText([]byte{1}), "0x01", "no key")
	w = newTestStore(t, testSchema)
	must.Equal(t, w.tab.KeyText(w.key(-42)), "-42", "one column")
}

// An operation whose condition is not met does nothing if it is of an Ignore kind, and is refused
// otherwise. If its condition is met, the condition has no effect.
func TestOperationsWithConditions(t *testing.T) {
	for _, place := range keyPositions {
		for _, kind := range []OpKind{Delete, DeleteIgnore, Update, UpdateIgnore, Upsert, UpsertIgnore,
			Insert, InsertIgnore} {
			for _, absent := range []bool{false, true} {
				w := newTestStore(t, testSchema)
				place.make(w)
				before := w.get(5, latest)
				op := w.op(kind, 5, 9, "new")
				op.Check = &Condition{Absent: absent}
				changes, err := w.commit(op)
				text := fmt.Sprintf("%s, %s, absent %v", place.name, kind, absent)
				if met := absent == (before == ""); met {
					after, cause := outcome(kind, before, `5: 9 "new" 7`)
					must.Equal(t, w.get(5, latest), after, text)
					must.Fail(t, err, cause, text)
					continue
				}
				must.Equal(t, w.get(5, latest), before, text)
				must.Equal(t, changes, 0, text, "changes")
				if kind.Ignores() && err != nil || !kind.Ignores() && !errors.Is(err, fault.ErrConflict) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}

// PrepareAll excludes every other write batch of the table, also on keys that do not exist, and
// MaxTimestamp is the timestamp of the last batch before it.
func TestPrepareAllExcludesOtherWriteBatches(t *testing.T) {
	w := newTestStore(t, testSchema)
	w.mustCommit(w.op(Insert, 1, 1, "x"))
	w.flush()
	w.mustCommit(w.op(Update, 1, 2, "x"))
	all := must.Get(w.tab.PrepareAll())(t)
	must.Equal(t, all.MaxTimestamp(), timestampOf(w.lsn), "the newest change is")
	prepared := make(chan *Write)
	go func() {
		other, err := w.tab.Prepare([]Op{w.op(Insert, 77, 1, "y")}, w.tab.Schema(), false, 0)
		if err != nil {
			t.Error(err)
		}
		prepared <- other
	}()
	must.Do(t, all.Resolve([]Op{w.op(Insert, 77, 1, "z")}, w.tab.Schema()))
	must.Equal(t, all.Changes(), 1, "changes")
	select {
	case <-prepared:
		t.Error("another write batch was prepared")
	default:
	}
	all.Release() // without Apply
	other := <-prepared
	must.Equal(t, other.Changes(), 1, "changes")
	other.Release()
	none := must.Get(w.tab.PrepareAll())(t)
	must.Do(t, none.Resolve(nil, w.tab.Schema()))
	must.Equal(t, none.Changes(), 0, "a batch of no operations")
	none.Release()
}
