package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// putNumber writes v under k and returns the timestamp.
func putNumber(t *testing.T, store *oribi.Store, table *oribi.Table, k, v int) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	b.Upsert(table, oribi.Row{"k": k, "v": v})
	ts := must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
	return ts
}

// wantValue reads key 1 and compares its value.
func wantValue(t *testing.T, table *oribi.Table, want int64, opts ...oribi.ReadOption) {
	t.Helper()
	at := oribi.Latest()
	for _, o := range opts {
		at = o
	}
	row, err := table.Get(context.Background(), 1, at)
	if err != nil || row["v"] != want {
		t.Fatalf("got %v, %v, want %d", row, err, want)
	}
	n, err := table.Count(context.Background(), at, oribi.Where(oribi.Eq("v", want)))
	if err != nil || n != 1 {
		t.Fatalf("a scan finds %d rows with %d, %v", n, want, err)
	}
}

// A snapshot keeps its state readable beyond the table's retention, over flushes and compactions,
// until it is closed; then the history is dropped.
func TestSnapshotPinsHistoryUntilItIsClosed(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	putNumber(t, store, table, 1, 10)
	sn := must.Get(store.Snapshot(ctx))(t)
	sn.SetName("first")
	for i := range 5 {
		w.move(30 * minute)
		putNumber(t, store, table, 1, 20+i)
		must.Do(t, table.Compact(ctx))
		wantValue(t, table, 10, oribi.At(sn))
		wantValue(t, table, 10, oribi.AsOf(sn.Timestamp()))
		wantValue(t, table, 20+int64(i))
		wantValue(t, table, 20+int64(i), oribi.At(sn), oribi.Latest())
	}
	if p := table.Properties(); p.HistoryFloor > sn.Timestamp() {
		t.Errorf("the floor is at %v, above the snapshot at %v", p.HistoryFloor, sn.Timestamp())
	}
	sn.Close()
	sn.Close()
	if _, err := table.Get(ctx, 1, oribi.At(sn)); !errors.Is(err, oribi.ErrClosed) {
		t.Errorf("a read of a closed snapshot: %v", err)
	}
	if _, err := table.Count(ctx, oribi.At(sn)); !errors.Is(err, oribi.ErrClosed) {
		t.Errorf("a scan of a closed snapshot: %v", err)
	}
	if _, err := table.Get(ctx, 1, oribi.AsOf(sn.Timestamp())); !errors.Is(err, oribi.ErrTooOld) {
		t.Errorf("a read beyond the retention: %v", err)
	}
	must.Do(t, table.Compact(ctx))
	putNumber(t, store, table, 1, 30)
	must.Do(t, table.Compact(ctx))
	if p := table.Properties(); p.HistoryFloor <= sn.Timestamp() {
		t.Errorf("the floor is still at %v", p.HistoryFloor)
	}
}

// A running scan also pins history, whether of a past state or of the newest, until it ends or is
// abandoned.
func TestRunningScanPinsHistory(t *testing.T) {
	ctx := context.Background()
	for _, past := range []bool{false, true} {
		w := newFakeWall()
		store, table := floorStore(t, w)
		b := store.NewBatch()
		const rows = 10000
		for k := range rows {
			b.Upsert(table, oribi.Row{"k": k, "v": 1})
		}
		ts := must.Get(b.Commit(ctx))(t)
		at := oribi.Latest()
		if past {
			at = oribi.AsOf(ts)
		}
		n := 0
		for row, err := range table.Scan(ctx, at).Rows() {
			if err != nil || row["v"] != int64(1) {
				t.Fatalf("past=%v: row %d: %v, %v", past, n, row, err)
			}
			if n%5000 == 0 {
				putNumber(t, store, table, rows-1, 2)
				w.move(2 * time.Hour)
				must.Do(t, table.Compact(ctx))
				if p := table.Properties(); p.HistoryFloor > ts {
					t.Fatalf("past=%v: the floor is at %v, above the scan's %v", past, p.HistoryFloor, ts)
				}
			}
			n++
		}
		if n != rows {
			t.Errorf("past=%v: %d rows", past, n)
		}
		for range table.Scan(ctx).Rows() {
			break
		}
		putNumber(t, store, table, 1, 3)
		must.Do(t, table.Compact(ctx))
		if p := table.Properties(); p.HistoryFloor <= ts {
			t.Errorf("past=%v: the floor is still at %v", past, p.HistoryFloor)
		}
		must.Do(t, store.Close())
	}
}

// A snapshot of the past pins the history that still exists. It is refused if no table can serve it
// or if the clock may not advance to it.
func TestSnapshotAtReturnsErrorsOfReads(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	old := putNumber(t, store, table, 1, 10)
	w.move(50 * minute)
	putNumber(t, store, table, 1, 11)
	sn := must.Get(store.SnapshotAt(ctx, old))(t)
	sn.SetName("past")
	w.move(50 * minute)
	must.Do(t, table.Compact(ctx))
	wantValue(t, table, 10, oribi.At(sn))
	future := mvcc.FromTime(w.time().Add(9 * time.Second))
	must.Do(t, store.AdvanceClock(future))
	ahead := must.Get(store.SnapshotAt(ctx, future))(t)
	ahead.SetName("ahead")
	if ts := putNumber(t, store, table, 1, 12); ts <= ahead.Timestamp() {
		t.Errorf("a batch at %v, not above the snapshot at %v", ts, ahead.Timestamp())
	}
	wantValue(t, table, 11, oribi.At(ahead))
	info, err := store.Info()
	if want := []oribi.SnapshotInfo{{Name: "past", Timestamp: old},
		{Name: "ahead", Timestamp: ahead.Timestamp()}}; err != nil || !slices.Equal(info.Snapshots, want) {
		t.Errorf("%v, %v, want %v", info.Snapshots, err, want)
	}
	sn.Close()
	ahead.Close()
	if info, _ = store.Info(); len(info.Snapshots) != 0 {
		t.Errorf("%v after all were closed", info.Snapshots)
	}
	if _, err := store.SnapshotAt(ctx, old); !errors.Is(err, oribi.ErrTooOld) {
		t.Errorf("a snapshot beyond the retention: %v", err)
	}
	if _, err := store.SnapshotAt(ctx, mvcc.FromTime(w.time().Add(time.Hour))); !errors.Is(err, oribi.ErrFuture) {
		t.Errorf("a snapshot an hour ahead: %v", err)
	}
	last := must.Get(store.Snapshot(ctx))(t)
	last.SetName("last")
	must.Do(t, store.Close())
	if _, err := store.Snapshot(ctx); !errors.Is(err, oribi.ErrClosed) {
		t.Errorf("a snapshot of a closed store: %v", err)
	}
	if _, err := table.Get(ctx, 1, oribi.At(last)); !errors.Is(err, oribi.ErrClosed) {
		t.Errorf("a read of a closed store: %v", err)
	}
	last.Close()
}
