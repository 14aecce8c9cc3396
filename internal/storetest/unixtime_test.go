package storetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	kvstore "github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// Every call that takes a timestamp refuses a number that looks like a Unix time: as a hybrid time
// it is a moment of 1970 or 1971, at which the store was empty.
func TestUnixTimesAreNoTimestamps(t *testing.T) {
	ctx := t.Context()
	store := must.Get(oribi.Open("/unix", &oribi.Options{FS: vfs.NewMem(), History: oribi.HistoryForever}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	typed := must.Get(oribi.Typed[numberRow](table))(t)
	db := kvstore.In(store)
	bucket := must.Get(db.CreateBucket("b"))(t)
	must.Get(bucket.Put(ctx, []byte("k"), []byte("v")))(t)
	now := time.Now()
	newest := store.Visible()
	calls := func(ts mvcc.Timestamp) []failingCall {
		at := oribi.AsOf(ts)
		return []failingCall{
			{"Table.Get", "", func() error { return must.Err(table.Get(ctx, 1, at)) }},
			{"Table.Has", "", func() error { return must.Err(table.Has(ctx, 1, at)) }},
			{"Table.GetMany", "", func() error { return must.Err(table.GetMany(ctx, []any{1}, at)) }},
			{"Table.AppendCells", "", func() error { return must.Err(table.AppendCells(ctx, nil, 1, at)) }},
			{"Table.Scan", "", func() error { return lastErr(table.Scan(ctx, at).Rows()) }},
			{"Table.Count", "", func() error { return must.Err(table.Count(ctx, at)) }},
			{"Table.Aggregate", "", func() error {
				return must.Err(table.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, at))
			}},
			{"Table.Cursor", "", func() error {
				c := table.Cursor(ctx, at)
				c.First()
				return c.Close()
			}},
			{"Table.History", "", func() error { return lastErr(table.History(ctx, 1, at)) }},
			{"Table.Diff from", "", func() error { return lastErr(table.Diff(ctx, ts, newest)) }},
			{"Table.Diff to", "", func() error { return lastErr(table.Diff(ctx, 0, ts)) }},
			{"Table.RestoreTo", "", func() error { return must.Err(table.RestoreTo(ctx, ts)) }},
			{"TableOf.Scan", "", func() error { return lastErr(typed.Scan(ctx, at)) }},
			{"TableOf.Diff", "", func() error { return lastErr(typed.Diff(ctx, ts, newest)) }},
			{"Store.SnapshotAt", "", func() error { return must.Err(store.SnapshotAt(ctx, ts)) }},
			{"Store.Subscribe", "", func() error { return lastErr(store.Subscribe(ctx, ts, newest)) }},
			{"Store.Subscribe until", "", func() error { return lastErr(store.Subscribe(ctx, 0, ts)) }},
			{"Store.AdvanceClock", "", func() error { return store.AdvanceClock(ts) }},
			{"Bucket.Get", "", func() error { return must.Err(bucket.Get(ctx, []byte("k"), at)) }},
			{"DB.ViewAt", "", func() error { return db.ViewAt(ctx, ts, func(*kvstore.Tx) error { return nil }) }},
		}
	}
	for name, n := range map[string]int64{"seconds": now.Unix(), "milliseconds": now.UnixMilli(),
		"microseconds": now.UnixMicro(), "nanoseconds": now.UnixNano()} {
		ts := mvcc.Timestamp(n)
		if unix, ok := ts.LooksLikeUnix(); !ok || now.Sub(unix) >= time.Second {
			t.Errorf("%s: %v, %v, want %v", name, unix, ok, now)
		}
		for _, c := range calls(ts) {
			err := c.call()
			if !errors.Is(err, oribi.ErrTooOld) ||
				!strings.Contains(err.Error(), "looks like the Unix time of "+now.UTC().Format(time.DateOnly)) ||
				!strings.HasPrefix(err.Error(), "oribi: ") && !strings.HasPrefix(err.Error(), "kv: ") {
				t.Errorf("%s of %s: %v", c.name, name, err)
			}
		}
	}
	for _, ts := range []mvcc.Timestamp{mvcc.Min, mvcc.First, newest,
		mvcc.FromTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))} {
		for _, c := range calls(ts) {
			if err := c.call(); err != nil && !errors.Is(err, oribi.ErrNotFound) &&
				!errors.Is(err, kvstore.ErrNotFound) {
				t.Errorf("%s of %v: %v", c.name, ts, err)
			}
		}
	}
}

// A store with a clock of its own, or a store that was written with such a clock, has any
// timestamps.
func TestLowTimestampsOfAnotherClock(t *testing.T) {
	ctx := t.Context()
	fs := vfs.NewMem()
	store := must.Get(oribi.Open("/low",
		&oribi.Options{FS: fs, Clock: mvcc.NewLogicalClock(1000), History: oribi.HistoryForever}))(t)
	table := numbersTable(t, store, "t")
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 100, "v": 1})
	ts := must.Get(b.Commit(ctx))(t)
	if _, low := ts.LooksLikeUnix(); !low {
		t.Fatalf("the commit has timestamp %v", ts)
	}
	check := func(table *oribi.Table) {
		t.Helper()
		if row, err := table.Get(ctx, 100, oribi.AsOf(ts)); err != nil || row["v"] != int64(1) {
			t.Errorf("as of %v: %v, %v", ts, row, err)
		}
	}
	check(table)
	must.Do(t, store.Close())
	store = must.Get(oribi.Open("/low", &oribi.Options{FS: fs, ReadOnly: true}))(t)
	defer store.Close()
	table = must.Get(store.Table("t"))(t)
	check(table)
}
