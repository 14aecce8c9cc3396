package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// eventsUntil returns the events of all write batches in (from, until].
func eventsUntil(
	t *testing.T, store *oribi.Store, from, until mvcc.Timestamp,
) (events []string) {
	t.Helper()
	for b := range must.All(t, store.Subscribe(context.Background(), from, until)) {
		events = append(events, eventsOf(b)...)
	}
	return events
}

// The first moment can be read, and subscribed from, until a table has history to drop, also after
// flushes, compactions, and another Open. Then the error has the first time that can be read.
func TestHistoryIsReadFromTheStartUntilSomeIsOld(t *testing.T) {
	w, ctx := newFakeWall(), t.Context()
	store, table := floorStore(t, w)
	first := put(t, store, table, map[int64]int64{1: 1, 2: 2})
	put(t, store, table, map[int64]int64{1: 3})
	must.Do(t, table.Flush(ctx))
	w.move(59 * time.Minute)
	last := put(t, store, table, map[int64]int64{2: 4})
	must.Do(t, table.Flush(ctx))
	must.Do(t, table.Compact(ctx))
	must.Do(t, store.Close())
	store, table = floorStore(t, w)
	defer func() { must.Do(t, store.Close()) }()

	must.Equal(t, eventsUntil(t, store, oribi.FromStart, last),
		append(eventsUntil(t, store, first-1, first), eventsUntil(t, store, first, last)...))
	must.Equal(t, len(eventsUntil(t, store, oribi.FromStart, first)), 2)
	for _, ts := range []mvcc.Timestamp{oribi.FromStart, mvcc.First, first - 1} {
		must.Equal(t, must.Get(table.Count(ctx, oribi.AsOf(ts)))(t), 0, ts)
	}
	sn := must.Get(store.SnapshotAt(ctx, oribi.FromStart))(t)
	defer sn.Close()

	w.move(2 * time.Minute)
	must.Do(t, must.Err(table.Count(ctx, oribi.At(sn))))
	begins := "history begins at " + mvcc.FromTime(w.time().Add(-time.Hour)).String()
	err := must.Err(table.Count(ctx, oribi.AsOf(first)))
	must.Fail(t, err, oribi.ErrTooOld, begins)
	for _, err := range store.Subscribe(ctx, oribi.FromStart, last) {
		must.Fail(t, err, oribi.ErrTooOld, begins)
	}
	put(t, store, table, map[int64]int64{2: 5})
	must.Do(t, table.Flush(ctx))
	must.Do(t, table.Compact(ctx))
	must.Equal(t, must.Get(table.Count(ctx, oribi.At(sn)))(t), 0)
	must.Fail(t, must.Err(table.Count(ctx, oribi.AsOf(first))), oribi.ErrTooOld, begins)
}

// A subscription fails at the start if the history that it needs was dropped. Once it has begun, it
// keeps its history.
func TestSubscriptionPinsHistory(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	from := put(t, store, table, map[int64]int64{1: 1})
	for v := int64(2); v < 6; v++ {
		put(t, store, table, map[int64]int64{1: v})
	}
	next, stop := iter.Pull2(store.Subscribe(context.Background(), from, mvcc.Max))
	age := func() mvcc.Timestamp {
		w.move(2 * time.Hour)
		ts := put(t, store, table, map[int64]int64{2: 1})
		must.Do(t, table.Flush(t.Context()))
		must.Do(t, table.Compact(t.Context()))
		return ts
	}
	for v := int64(2); v < 6; v++ {
		b, err, _ := next()
		if err != nil || b.Changes[0].AfterRow()["v"] != v {
			t.Fatalf("%+v, %v, want value %d", b, err, v)
		}
		if v == 3 {
			age()
		}
	}
	stop()
	age()
	for _, err := range store.Subscribe(context.Background(), from, mvcc.Max) {
		must.Fail(t, err, oribi.ErrTooOld)
	}
}

// The pin follows a slow loop, also among batches that were all committed before its next step.
func TestSubscriptionPinsOnlyWhatItHasToRead(t *testing.T) {
	store, table := txStore(t)
	from := put(t, store, table, map[int64]int64{1: 0})
	next, stop := iter.Pull2(store.Subscribe(context.Background(), from, mvcc.Max))
	defer stop()
	const batches, behind = 500, 100
	var all []mvcc.Timestamp
	for v := range int64(batches) {
		all = append(all, put(t, store, table, map[int64]int64{1: v + 1}))
	}
	for i, ts := range all {
		b, err, _ := next()
		must.Do(t, err)
		must.Equal(t, b.Timestamp, ts, b, "batch", i)
		info := must.Get(store.Info())(t)
		if pinned := info.Snapshots[0].Timestamp; pinned > ts || i >= behind && pinned < all[i-behind] {
			t.Fatalf("batch %d at %v: pinned above %v", i, ts, pinned)
		}
	}
}

// A table is truncated, restored, renamed, and another one is dropped, after a subscription has
// read the first batch. It goes on as one does that begins later and reads everything from history.
func TestSubscriptionAmongBulkWritesAndRenames(t *testing.T) {
	ctx := t.Context()
	store, table := txStore(t)
	other := numbersTable(t, store, "other")
	from := put(t, store, table, map[int64]int64{1: 1}) - 1
	next, stop := iter.Pull2(store.Subscribe(ctx, from, mvcc.Max))
	defer stop()
	pull := func(want ...string) {
		t.Helper()
		if b, err, ok := next(); !ok || err != nil || !slices.Equal(eventsOf(b), want) {
			t.Fatalf("%+v, %v, want %q", b, err, want)
		}
	}
	pull("numbers 1: none, 1")
	then := put(t, store, table, map[int64]int64{1: 2, 2: 2})
	put(t, store, other, map[int64]int64{1: 7})
	_, truncated := table.Truncate(ctx)
	_, restored := table.RestoreTo(ctx, then)
	must.Do(t, errors.Join(truncated, restored, table.Rename(ctx, "renamed"), table.Compact(ctx),
		store.DropTable("other")))
	until := put(t, store, table, map[int64]int64{2: 3})
	rest := [][]string{{"renamed 1: 1, 2", "renamed 2: none, 2"}, {"renamed 1: 2, none", "renamed 2: 2, none"},
		{"renamed 1: none, 2", "renamed 2: none, 2"}, {"renamed 2: 2, 3"}}
	all := []string{"renamed 1: none, 1"}
	for _, events := range rest {
		pull(events...)
		all = append(all, events...)
	}
	must.Equal(t, eventsUntil(t, store, from, until), all, "events")
}
