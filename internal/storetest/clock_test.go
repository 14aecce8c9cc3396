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

// With a wall clock past the last timestamp, in the year 2112, commits and snapshots fail and
// change nothing. They work again once the clock is right: no lock is left held.
func TestWallClockPastTheLastTimestamp(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	fillNumbers(t, store, table, 0, 10)
	right := w.time()
	w.move(time.Date(2113, 1, 1, 0, 0, 0, 0, time.UTC).Sub(right))
	ctx := t.Context()
	commit := func(k int) error {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": -k})
		_, err := b.Commit(ctx)
		return err
	}
	within(t, time.Minute, func() {
		for range 2 { // the second would wait for locks that the first left
			if err := commit(10); err == nil {
				t.Error("a batch was committed")
			}
		}
		if _, err := store.NewBatch().Commit(ctx); err == nil {
			t.Error("an empty batch was committed")
		}
		if sn, err := store.Snapshot(ctx, "late"); err == nil {
			sn.Close()
			t.Error("a snapshot was taken")
		}
		if err := table.Flush(ctx); err != nil {
			t.Errorf("flush: %v", err)
		}
		if n, err := table.Count(ctx); err != nil || n != 10 {
			t.Errorf("%d rows, %v; want 10", n, err)
		}
	})
	w.move(right.Sub(w.time()))
	if err := commit(10); err != nil {
		t.Fatal(err)
	}
	if n, err := table.Count(ctx); err != nil || n != 11 {
		t.Errorf("after the clock was corrected: %d rows, %v; want 11", n, err)
	}
}
