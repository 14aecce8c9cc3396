package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// A subscription to some tables is not concerned by the history of others.
func TestSubscriptionIgnoresHistoryOfOtherTables(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	from := put(t, store, table, map[int64]int64{1: 1})
	w.move(2 * time.Hour)
	last := put(t, store, table, map[int64]int64{1: 2})
	ctx := context.Background()
	other := must.Get(store.CreateTable("other", table.Schema(), oribi.History(oribi.HistoryForever)))(t)
	for _, err := range store.Subscribe(ctx, from, last, other) {
		t.Errorf("of another table: a batch, or %v", err)
	}
	var got error
	for _, err := range store.Subscribe(ctx, from, last, table) {
		got = err
	}
	must.Fail(t, got, oribi.ErrTooOld, "of a table whose history begins later")
}

func TestStatsOfColumnsOfArrays(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 a:array(string)?")
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "a": []string{"x", "y"}})
	must.Do(t, table.Flush(ctx))
	st := must.Get(table.Stats(true))(t)
	if len(st.Columns) != 2 || st.Columns[1].Bytes == 0 || len(st.Columns[1].Encodings) != 1 {
		t.Errorf("%+v", st.Columns)
	}
	must.Do(t, must.Err(table.CompressionAdvice(ctx)))
}
