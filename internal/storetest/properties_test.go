package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// The history floor of a table's properties is the earliest timestamp that a read accepts: it
// follows the clock, pins, and the versions that compactions have dropped.
func TestHistoryFloorIsWhatReadsObey(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	check := func(when string) mvcc.Timestamp {
		t.Helper()
		floor := table.Properties().HistoryFloor
		if _, err := table.Count(ctx, oribi.AsOf(floor)); err != nil {
			t.Errorf("%s: a read at the floor: %v", when, err)
		}
		if _, err := table.Count(ctx, oribi.AsOf(floor-1)); !errors.Is(err, oribi.ErrTooOld) {
			t.Errorf("%s: a read below the floor: %v", when, err)
		}
		return floor
	}
	put(t, store, table, map[int64]int64{1: 1})
	w.move(2 * time.Hour)
	check("two hours later")
	sn := must.Get(store.Snapshot(ctx))(t)
	w.move(2 * time.Hour)
	pinned := check("with a snapshot")
	if pinned != sn.Timestamp() {
		t.Errorf("floor %v with a snapshot at %v", pinned, sn.Timestamp())
	}
	must.Do(t, table.Compact(ctx))
	check("after a compaction")
	sn.Close()
	if last := check("without the snapshot"); last <= pinned {
		t.Errorf("floor %v, before %v", last, pinned)
	}
}

// A subscription to no table is not concerned by the history of tables.
func TestSubscriptionToNoTablesIsNeverTooOld(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	from := put(t, store, table, map[int64]int64{1: 1})
	w.move(2 * time.Hour)
	last := put(t, store, table, map[int64]int64{1: 2})
	ctx := context.Background()
	for _, err := range store.Subscribe(ctx, from, oribi.OfTables(), oribi.Until(last)) {
		t.Errorf("of no table: a batch, or %v", err)
	}
	var got error
	for _, err := range store.Subscribe(ctx, from, oribi.OfTables(table), oribi.Until(last)) {
		got = err
	}
	if !errors.Is(got, oribi.ErrTooOld) {
		t.Errorf("of a table whose history begins later: %v", got)
	}
}

func TestBulkCallsThatChangeNothingHaveNoTimestamp(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	calls := map[string]func(...oribi.TruncateOption) (oribi.BulkResult, error){
		"update": func(o ...oribi.TruncateOption) (oribi.BulkResult, error) {
			return table.UpdateWhere(ctx, oribi.Row{"v": 2}, append(asBulkOptions(o), oribi.Eq("k", 99))...)
		},
		"delete": func(o ...oribi.TruncateOption) (oribi.BulkResult, error) {
			return table.DeleteWhere(ctx, append(asBulkOptions(o), oribi.Eq("k", 99))...)
		},
		"restore": func(o ...oribi.TruncateOption) (oribi.BulkResult, error) {
			return table.RestoreTo(ctx, store.Visible(), o...)
		},
	}
	check := func(state string) {
		t.Helper()
		for name, call := range calls {
			for _, o := range [][]oribi.TruncateOption{nil, {oribi.InPieces()}, {oribi.NoSync}} {
				if res, err := call(o...); err != nil || res.Rows != 0 || res.Timestamp != 0 {
					t.Errorf("%s, %s, %d options: %+v, %v", state, name, len(o), res, err)
				}
			}
		}
	}
	put(t, store, table, map[int64]int64{1: 1})
	check("with a row")
	for _, o := range [][]oribi.TruncateOption{nil, {oribi.InPieces()}} {
		if res, err := table.Truncate(ctx, o...); err != nil || (res.Rows == 0) != (res.Timestamp == 0) {
			t.Errorf("truncate: %+v, %v", res, err)
		}
	}
	check("empty")
}

func asBulkOptions(opts []oribi.TruncateOption) []oribi.BulkOption {
	var out []oribi.BulkOption
	for _, o := range opts {
		out = append(out, o)
	}
	return out
}

func TestStatsOfColumnsOfArrays(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "a", Type: schema.Array, Element: schema.String, Nullable: true}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "a": []string{"x", "y"}})
	must.Do(t, table.Flush(ctx))
	st := must.Get(table.Stats(true))(t)
	if len(st.Columns) != 2 || st.Columns[1].Bytes == 0 || len(st.Columns[1].Encodings) != 1 {
		t.Errorf("%+v", st.Columns)
	}
	if _, err := table.CompressionAdvice(ctx); err != nil {
		t.Error(err)
	}
}
