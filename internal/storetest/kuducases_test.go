package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// These tests cover items of the tablet specification's checklist (§21) that have no other test.

// commitOps commits one batch of operations on rows; each operation takes two arguments.
func commitOps(t *testing.T, store *oribi.Store, table *oribi.Table, ops ...any) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	for i := 0; i < len(ops); i += 2 {
		b.Row(ops[i].(oribi.Op), table, ops[i+1].(oribi.Row))
	}
	ts, err := b.Commit(context.Background(), oribi.NoSync)
	must.Do(t, err)
	return ts
}

func TestUpdateOfAbsentKeyReturnsErrNotFound(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := 10; k < 40; k += 10 {
		putNumber(t, store, table, k, k)
	}
	must.Do(t, table.Flush(ctx))
	for _, k := range []int{5, 15, 25, 35} {
		b := store.NewBatch()
		b.Update(table, oribi.Row{"k": k, "v": 0})
		if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrNotFound) {
			t.Errorf("update of %d: %v", k, err)
		}
	}
	if res, err := table.FlushDeltas(ctx); err != nil || res.BytesWritten != 0 {
		t.Errorf("changes of %d bytes, %v", res.BytesWritten, err)
	}
}

// Five values of a row are read at five timestamps while the changes are in memory, in a delta
// file, and after a reopening.
func TestSnapshotsOfUpdatesOutliveTheDeltaFlushAndAReopening(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	open := func() (*oribi.Store, *oribi.Table) {
		store, err := oribi.Open("/s", &oribi.Options{FS: fs, Manual: true, History: oribi.HistoryForever})
		must.Do(t, err)
		return store, numbersTable(t, store, "numbers")
	}
	must.Do(t, fs.Mkdir("/s"))
	store, table := open()
	at := []mvcc.Timestamp{putNumber(t, store, table, 1, 0)}
	must.Do(t, table.Flush(ctx))
	for v := range 4 {
		at = append(at, putNumber(t, store, table, 1, v+1))
	}
	check := func() {
		t.Helper()
		for v, ts := range at {
			wantValue(t, table, int64(v), oribi.AsOf(ts))
		}
	}
	check()
	_, err := table.FlushDeltas(ctx)
	must.Do(t, err)
	check()
	must.Do(t, store.Close())
	store, table = open()
	defer store.Close()
	check()
}

// A flush of rows that one batch inserted and deleted writes no rowset and leaves no block.
func TestFlushOfRowsDeletedInOneBatchLeavesNoBlock(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 100 {
		commitOps(t, store, table, oribi.OpInsert, oribi.Row{"k": k, "v": k}, oribi.OpDelete, oribi.Row{"k": k})
	}
	must.Do(t, table.Flush(ctx))
	if n := len(table.Layout().RowSets); n != 0 {
		t.Errorf("%d rowsets", n)
	}
	if info, err := store.Info(); err != nil || info.Bytes.Live+info.Bytes.Dead != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestCompactionFreesHistoryBelowTheFloor(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	for round := range 4 {
		fillRows(t, store, table, 0, 3000, round)
		must.Do(t, table.Flush(ctx))
	}
	bytes := func() (n int64) {
		for _, s := range table.Layout().RowSets {
			n += s.Bytes
		}
		return n
	}
	before := bytes()
	w.move(2 * time.Hour)
	must.Do(t, table.Compact(ctx))
	if after := bytes(); after*2 > before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

// fillRows upserts rows [from, to), with values that depend on the round.
func fillRows(t *testing.T, store *oribi.Store, table *oribi.Table, from, to, round int) {
	t.Helper()
	var ops []any
	for k := from; k < to; k++ {
		ops = append(ops, oribi.OpUpsert, oribi.Row{"k": k, "v": (k*7919 + round*104729) % 1000003})
	}
	commitOps(t, store, table, ops...)
}

// Every other row is deleted, and a compaction drops these rows permanently while changes of the
// remaining rows are in memory. These changes, and later ones, stay with their rows, whose row IDs
// change.
func TestChangesKeepTheirRowsThroughCompaction(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	const n = 2000
	fillRows(t, store, table, 0, n, 0)
	must.Do(t, table.Flush(ctx))
	var deletes, updates, again []any
	for k := range n {
		if k%2 == 0 {
			deletes = append(deletes, oribi.OpDelete, oribi.Row{"k": k})
			continue
		}
		updates = append(updates, oribi.OpUpdate, oribi.Row{"k": k, "v": k})
		again = append(again, oribi.OpUpdate, oribi.Row{"k": k, "v": -k})
	}
	commitOps(t, store, table, deletes...)
	w.move(2 * time.Hour)
	check := func(sign int64, opts ...oribi.ScanOption) {
		t.Helper()
		want := int64(1)
		for row, err := range table.Scan(ctx, opts...).Rows() {
			must.Do(t, err)
			if row["k"] != want || row["v"] != sign*want {
				t.Fatalf("row %v, want %d", row, want)
			}
			want += 2
		}
		if want != n+1 {
			t.Fatalf("the rows end before %d", want)
		}
	}
	first := commitOps(t, store, table, updates...)
	must.Do(t, table.Compact(ctx))
	rows := int64(0)
	for _, s := range table.Layout().RowSets {
		rows += s.Rows
	}
	if check(1); rows != n/2 {
		t.Errorf("%d rows are left in files", rows)
	}
	commitOps(t, store, table, again...)
	must.Do(t, table.Flush(ctx))
	check(-1)
	check(1, oribi.AsOf(first))
}

// A key that is deleted in one rowset and inserted again in another is one row after a compaction,
// with its whole history.
func TestRowDeletedAndInsertedAgainCompactsToOne(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	row := func(v int) oribi.Row { return oribi.Row{"k": 1, "v": v} }
	var at []mvcc.Timestamp
	for v := range 3 {
		at = append(at, commitOps(t, store, table, oribi.OpInsert, row(v)))
		must.Do(t, table.Flush(ctx))
		if v < 2 {
			commitOps(t, store, table, oribi.OpDelete, oribi.Row{"k": 1})
		}
	}
	if n := len(table.Layout().RowSets); n != 3 {
		t.Fatalf("%d rowsets before", n)
	}
	must.Do(t, table.Compact(ctx))
	if sets := table.Layout().RowSets; len(sets) != 1 || sets[0].Rows != 1 || sets[0].LiveRows != 1 {
		t.Errorf("after: %+v", sets)
	}
	for v, ts := range at {
		wantValue(t, table, int64(v), oribi.AsOf(ts))
	}
	if text, _ := historyOf(t, table, 1); text != "insert 2, delete <nil>, insert 1, delete <nil>, insert 0, " {
		t.Error(text)
	}
}

// A batch that inserts and deletes the same rows adds nothing to a diff, wherever the rows are
// stored.
func TestDiffOverABatchThatInsertsAndDeletesIsEmpty(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	before := putNumber(t, store, table, 7, 7)
	insert := []any{oribi.OpInsert, oribi.Row{"k": 1, "v": 1}, oribi.OpUpdate, oribi.Row{"k": 1, "v": 2},
		oribi.OpDelete, oribi.Row{"k": 1}}
	after := commitOps(t, store, table, insert...)
	for _, step := range []func(context.Context) error{nil, table.Flush, table.Compact} {
		if step != nil {
			must.Do(t, step(ctx))
		}
		for d, err := range table.Diff(ctx, before, after) {
			t.Errorf("%v %v, %v", d.Kind, d.KeyRow(), err)
		}
	}
}

// Delta files from before and after one column was dropped and one added are merged into one file,
// without the changes of the dropped column.
func TestMinorCompactionJoinsFilesOfTwoSchemas(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 50 {
		putNumber(t, store, table, k, k)
	}
	must.Do(t, table.Alter(ctx, oribi.AddColumn(schema.Column{Name: "old", Type: schema.Int32, Nullable: true})))
	must.Do(t, table.Flush(ctx))
	update := func(row oribi.Row) mvcc.Timestamp { return commitOps(t, store, table, oribi.OpUpdate, row) }
	first := update(oribi.Row{"k": 3, "v": 30, "old": 300})
	must.Do(t, table.Alter(ctx, oribi.DropColumn("old"),
		oribi.AddColumn(schema.Column{Name: "new", Type: schema.String, Nullable: true})))
	second := update(oribi.Row{"k": 3, "new": "x"})
	commitOps(t, store, table, oribi.OpDelete, oribi.Row{"k": 4})
	_, err := table.FlushDeltas(ctx)
	must.Do(t, err)
	sets := table.Layout().RowSets
	if len(sets) != 1 || sets[0].Redos != 2 {
		t.Fatalf("before: %+v", sets)
	}
	_, err = table.CompactMinor(ctx)
	must.Do(t, err)
	if sets = table.Layout().RowSets; sets[0].Redos != 1 {
		t.Fatalf("after: %+v", sets)
	}
	for ts, want := range map[mvcc.Timestamp]string{first: "map[k:3 new:<nil> v:30]", second: "map[k:3 new:x v:30]"} {
		if row, err := table.Get(ctx, 3, oribi.AsOf(ts)); err != nil || fmt.Sprint(row) != want {
			t.Errorf("as of %d: %v, %v, want %s", ts, row, err, want)
		}
	}
	if _, err := table.Get(ctx, 4); !errors.Is(err, oribi.ErrNotFound) {
		t.Errorf("a deleted row: %v", err)
	}
}

// A reinserted row has the defaults of the columns that are not given, not its earlier values, also
// within one batch.
func TestReinsertedRowHasDefaults(t *testing.T) {
	ctx := context.Background()
	store, table, _ := alterStore(t)
	alter(t, table, oribi.AddColumn(schema.Column{Name: "d", Type: schema.Int32, Default: []byte{9, 0, 0, 0}}))
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "n": 1, "s": "one", "d": 1})
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "n": 1, "s": "one", "d": 1})
	for _, flushed := range []bool{false, true} {
		if flushed {
			must.Do(t, table.Flush(ctx))
		}
		commitOps(t, store, table, oribi.OpDelete, oribi.Row{"k": 1}, oribi.OpUpsert, oribi.Row{"k": 1, "n": 5})
		putRow(t, store, table, oribi.OpDelete, oribi.Row{"k": 2})
		putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "n": 5})
		for range 2 {
			for k := range 2 {
				row, err := table.Get(ctx, k+1)
				if want := fmt.Sprintf("map[d:9 k:%d n:5 s:<nil>]", k+1); err != nil || fmt.Sprint(row) != want {
					t.Errorf("flushed=%v: %v, %v, want %s", flushed, row, err, want)
				}
			}
			must.Do(t, table.Compact(ctx))
		}
	}
}

// An update and a delete in one batch follow a delete and a reinsert that were made with fewer
// columns. A scan of the past meets the undo of the reinsert first, but must also apply the undo of
// the update.
func TestScanAsOfAppliesUndosOfUpdatesAfterAReinsert(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	first := commitOps(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "v": 1})
	commitOps(t, store, table, oribi.OpDelete, oribi.Row{"k": 1})
	commitOps(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "v": 2})
	must.Do(t,
		table.Alter(ctx,
			oribi.AddColumn(schema.Column{Name: "d", Type: schema.Int8, Nullable: true, Default: []byte{7}})))
	commitOps(t, store, table, oribi.OpUpsert, oribi.Row{"k": 1, "v": 3, "d": 8}, oribi.OpDelete, oribi.Row{"k": 1})
	must.Do(t, table.Compact(ctx))
	wantRows(t, "as of the first batch", table,
		[]oribi.Row{{"k": int64(1), "v": int64(1), "d": int8(7)}}, oribi.AsOf(first))
}
