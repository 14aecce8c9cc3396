package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// The timestamp of an empty batch, and a timestamp to which the clock was advanced, is below the
// timestamps of all later batches, even if the store is reopened after the machine's clock was set
// back.
func TestTimestampsAscendAfterReopeningWithClockSetBack(t *testing.T) {
	fs := vfs.NewMem()
	must.Do(t, fs.Mkdir("/s"))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	open := func() *oribi.Store {
		store := must.Get(oribi.Open("/s", &oribi.Options{FS: fs, Clock: mvcc.NewHybridClock(func() time.Time {
			return now
		})}))(t)
		return store
	}
	ctx := context.Background()
	store := open()
	table := numbersTable(t, store, "numbers")
	empty := must.Get(store.NewBatch().Commit(ctx))(t)
	ahead := mvcc.FromTime(now.Add(5 * time.Second))
	must.Do(t, store.AdvanceClock(ahead))
	if n, err := table.Count(ctx, oribi.AsOf(ahead)); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	must.Do(t, store.Close())
	now = now.Add(-time.Hour)
	store = open()
	defer store.Close()
	table = must.Get(store.Table("numbers"))(t)
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

// With a wall clock past the last timestamp, in the year 2112, commits fail and change nothing.
// They succeed again once the clock is right: no lock is left held.
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
		if sn, err := store.Snapshot(ctx); err != nil { // needs no timestamp of its own
			t.Errorf("snapshot: %v", err)
		} else {
			sn.Close()
		}
		if err := table.Flush(ctx); err != nil {
			t.Errorf("flush: %v", err)
		}
		if n, err := table.Count(ctx); err != nil || n != 10 {
			t.Errorf("%d rows, %v; want 10", n, err)
		}
	})
	w.move(right.Sub(w.time()))
	must.Do(t, commit(10))
	if n, err := table.Count(ctx); err != nil || n != 11 {
		t.Errorf("after the clock was corrected: %d rows, %v; want 11", n, err)
	}
}

// A read ahead of the clock is refused and does not change the clock; AdvanceClock moves it by at
// most ten seconds.
func TestReadsAheadOfTheClockAreRefused(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	before := putNumber(t, store, table, 1, 1)
	now := mvcc.EndOf(w.time())
	if _, err := table.Get(ctx, 1, oribi.AsOf(now)); err != nil {
		t.Fatalf("a read in the clock's microsecond: %v", err)
	}
	next := putNumber(t, store, table, 1, 2)
	if next <= now || next > mvcc.EndOf(w.time().Add(time.Microsecond)) {
		t.Fatalf("the batch after it is at %v, want one above %v", next, now)
	}
	if _, err := table.Get(ctx, 1, oribi.AsOf(next)); err != nil {
		t.Errorf("a read at the newest timestamp, ahead of the wall clock: %v", err)
	}
	beyond := mvcc.FromTime(w.time().Add(time.Second))
	for name, read := range map[string]func(mvcc.Timestamp) error{
		"get":      func(ts mvcc.Timestamp) error { _, err := table.Get(ctx, 1, oribi.AsOf(ts)); return err },
		"count":    func(ts mvcc.Timestamp) error { _, err := table.Count(ctx, oribi.AsOf(ts)); return err },
		"snapshot": func(ts mvcc.Timestamp) error { _, err := store.SnapshotAt(ctx, ts); return err },
		"diff": func(ts mvcc.Timestamp) (err error) {
			for _, err = range table.Diff(ctx, before, ts) {
			}
			return err
		},
	} {
		if err := read(beyond); !errors.Is(err, oribi.ErrFuture) {
			t.Errorf("%s ahead of the clock: %v", name, err)
		}
	}
	if ts := putNumber(t, store, table, 1, 3); ts >= beyond {
		t.Errorf("a refused read moved the clock to %v", ts)
	}
	most := mvcc.EndOf(w.time().Add(mvcc.MaxAhead))
	if err := store.AdvanceClock(most + 1); !errors.Is(err, oribi.ErrFuture) {
		t.Errorf("more than ten seconds ahead: %v", err)
	}
	must.Do(t, store.AdvanceClock(most))
	if _, err := table.Get(ctx, 1, oribi.AsOf(most)); err != nil {
		t.Error(err)
	}
	if ts := putNumber(t, store, table, 1, 4); ts <= most {
		t.Errorf("after AdvanceClock a batch is at %v, want one above %v", ts, most)
	}
}
