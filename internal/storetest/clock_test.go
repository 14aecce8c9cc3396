package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// The timestamp of an empty batch, and of a read ahead of all batches, is below those of all later
// batches, over a reopening during which the machine's clock went back.
func TestPromisedTimestampsHoldOverReopening(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.Mkdir("/s"); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := func() *oribi.Store {
		store, err := oribi.Open("/s", &oribi.Options{FS: fs, Clock: mvcc.NewHybridClock(func() time.Time { return now })})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	ctx := context.Background()
	store := open()
	table := numbersTable(t, store, "numbers")
	empty, err := store.NewBatch().Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ahead := mvcc.FromTime(now.Add(5 * time.Second))
	if n, err := table.Count(ctx, oribi.AsOf(ahead)); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	store = open()
	defer store.Close()
	if table, err = store.Table("numbers"); err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 1})
	ts, err := b.Commit(ctx)
	if err != nil || ts <= empty || ts <= ahead {
		t.Errorf("timestamp %d after %d and %d, %v", ts, empty, ahead, err)
	}
	if n, err := table.Count(ctx, oribi.AsOf(ahead)); err != nil || n != 0 {
		t.Errorf("%d rows where there was none, %v", n, err)
	}
}
