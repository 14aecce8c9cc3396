package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// historyOf returns the versions of a key of the numbers table as text, and their timestamps.
func historyOf(t *testing.T, table *oribi.Table, key any, opts ...oribi.GetOption) (text string, ts []mvcc.Timestamp) {
	t.Helper()
	for v, err := range table.History(context.Background(), key, opts...) {
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%v %v, ", v.Kind, v.Row()["v"])
		ts = append(ts, v.Timestamp)
	}
	return text, ts
}

// A history ends with the row as of its start: the retention determines the start, not the versions
// that compactions have dropped so far.
func TestHistoryStartsWithTheOldestRetainedVersion(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	var at []mvcc.Timestamp
	for i := range 5 {
		at = append(at, putNumber(t, store, table, 1, i))
		w.move(20 * minute)
	}
	w.move(-minute) // the third is 59 minutes old
	const want = "update 4, update 3, update 2, base 1, "
	for _, step := range []func(context.Context) error{func(context.Context) error {
		return nil
	}, table.Flush, table.Compact, table.Compact} {
		must.Do(t, step(ctx))
		text, ts := historyOf(t, table, 1)
		if text != want || ts[0] != at[4] || ts[2] != at[2] || ts[3] != 0 {
			t.Fatalf("%s at %v, want %s", text, ts, want)
		}
		if text, _ := historyOf(t, table, 1, oribi.AsOf(at[3])); text != want[len("update 4, "):] {
			t.Fatalf("as of the fourth: %s", text)
		}
	}
	w.move(2 * time.Hour)
	if text, _ := historyOf(t, table, 1); text != "base 4, " {
		t.Errorf("two hours later: %s", text)
	}
	b := store.NewBatch()
	b.Delete(table, oribi.Row{"k": 1})
	must.Get(b.Commit(ctx))(t)
	if text, _ := historyOf(t, table, 1); text != "delete <nil>, base 4, " {
		t.Errorf("deleted: %s", text)
	}
	w.move(2 * time.Hour)
	for _, err := range table.History(ctx, 1) {
		if !errors.Is(err, oribi.ErrNotFound) {
			t.Errorf("deleted before the history begins: %v", err)
		}
	}
}

// Reads of versions are refused in the same cases as other reads: beyond the retention, ahead of
// the clock, in the wrong order, on a closed store.
func TestReadsOfVersionsReturnErrorsOfReads(t *testing.T) {
	ctx := context.Background()
	w := newFakeWall()
	store, table := floorStore(t, w)
	old := putNumber(t, store, table, 1, 1)
	w.move(2 * time.Hour)
	now := putNumber(t, store, table, 1, 2)
	ahead := mvcc.FromTime(w.time().Add(time.Minute))
	diff := func(from, to mvcc.Timestamp, opts ...oribi.DiffOption) (err error) {
		for _, err = range table.Diff(ctx, from, to, opts...) {
		}
		return err
	}
	history := func(opts ...oribi.GetOption) (err error) {
		for _, err = range table.History(ctx, 1, opts...) {
		}
		return err
	}
	many := func(opts ...oribi.GetOption) error {
		_, err := table.GetMany(ctx, []any{1}, opts...)
		return err
	}
	cells := func(opts ...oribi.GetOption) error {
		_, _, err := table.GetManyCells(ctx, []any{1}, opts...)
		return err
	}
	for name, c := range map[string]struct{ err, want error }{
		"diff too old":       {diff(old, now), oribi.ErrTooOld},
		"diff ahead":         {diff(now, ahead), oribi.ErrFuture},
		"diff both ahead":    {diff(ahead, ahead+1), oribi.ErrFuture},
		"history too old":    {history(oribi.AsOf(old)), oribi.ErrTooOld},
		"history ahead":      {history(oribi.AsOf(ahead)), oribi.ErrFuture},
		"get many too old":   {many(oribi.AsOf(old)), oribi.ErrTooOld},
		"get many ahead":     {many(oribi.AsOf(ahead)), oribi.ErrFuture},
		"get at the maximum": {many(oribi.AsOf(mvcc.Max)), oribi.ErrFuture},
		"get at zero":        {many(oribi.AsOf(0)), oribi.ErrTooOld},
		"cells too old":      {cells(oribi.AsOf(old)), oribi.ErrTooOld},
		"cells, bad key": {func() error {
			_, _, err := table.GetManyCells(ctx, []any{1, "one"})
			return err
		}(), oribi.ErrRow},
		"get many, bad key": {func() error {
			_, err := table.GetMany(ctx, []any{1, "one"})
			return err
		}(), oribi.ErrRow},
		"diff of no column": {diff(now, now, oribi.Columns("nope")), oribi.ErrNoColumn},
	} {
		if !errors.Is(c.err, c.want) || strings.Count(fmt.Sprint(c.err), "oribi: ") > 1 {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if diff(now, now-1) == nil {
		t.Error("no error for a diff whose end is before its start")
	}
	if err := diff(now, now); err != nil {
		t.Error(err)
	}
	putNumber(t, store, table, 2, 2)
	for range table.Diff(ctx, now, now+10) {
		must.Do(t, store.Close())
	}
	for name, err := range map[string]error{"diff": diff(now, now), "history": history(),
		"get many": many(), "get many cells": cells()} {
		if !errors.Is(err, oribi.ErrClosed) {
			t.Errorf("%s of a closed store: %v", name, err)
		}
	}
}

// GetMany returns rows in the order of the keys, one for each occurrence of a key, and nil for
// absent ones.
func TestGetManyKeepsTheOrderOfTheKeys(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 2000 {
		putNumber(t, store, table, k, 10*k)
		if k == 1000 {
			must.Do(t, table.Compact(ctx))
		}
	}
	keys := []any{1999, 0, 5000, 1999, oribi.Row{"k": 7}, -1, oribi.Key{1000}}
	rows, err := table.GetMany(ctx, keys, oribi.Columns("v"))
	if err != nil || fmt.Sprint(rows) != "[map[v:19990] map[v:0] map[] map[v:19990] map[v:70] map[] map[v:10000]]" ||
		rows[2] != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// GetManyCells returns the same cells as GetCells for each key, of rows on disk, changed and in
// memory, more than fit in one chunk of memory. It returns nil for absent rows, and rows without
// cells if no column is requested.
func TestGetManyCellsEqualsGetCells(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 300 {
		putNumber(t, store, table, k, 10*k)
		if k == 200 {
			must.Do(t, table.Compact(ctx))
			putNumber(t, store, table, 100, -1)
		}
	}
	var keys []any
	for i := range 600 {
		keys = append(keys, i*7%500)
	}
	for name, opts := range map[string][]oribi.GetOption{"all": nil,
		"one": {oribi.Columns("v")}, "none": {oribi.Columns()}} {
		columns, rows, err := table.GetManyCells(ctx, keys, opts...)
		if err != nil || len(rows) != len(keys) {
			t.Fatalf("%s: %d rows, %v", name, len(rows), err)
		}
		for i, key := range keys {
			wantColumns, want, err := table.GetCells(ctx, key, opts...)
			if errors.Is(err, oribi.ErrNotFound) {
				if rows[i] != nil {
					t.Errorf("%s: key %v: %x, want no row", name, key, rows[i])
				}
				continue
			}
			if err != nil || rows[i] == nil || fmt.Sprint(rows[i]) != fmt.Sprint(want) ||
				fmt.Sprint(columns) != fmt.Sprint(wantColumns) {
				t.Errorf("%s: key %v: %x of %v, want %x of %v, %v", name, key, rows[i], columns, want, wantColumns, err)
			}
		}
	}
	if columns, rows, err := table.GetManyCells(ctx, nil); err != nil || len(rows) != 0 || len(columns) != 2 {
		t.Errorf("no keys: %v, %v, %v", columns, rows, err)
	}
}

// Timestamps of batches ascend over reopenings, clean and after a kill, while the machine's clock
// jumps back and forth, and with a logical clock.
func TestTimestampsAscendOverReopenings(t *testing.T) {
	ctx := context.Background()
	for _, logical := range []bool{false, true} {
		fs := vfs.NewMem()
		must.Do(t, fs.Mkdir("/s"))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		last := mvcc.Min
		var seen []mvcc.Timestamp
		for round, jump := range []time.Duration{0, -time.Hour, time.Minute, -24 * time.Hour,
			48 * time.Hour, -time.Microsecond} {
			now = now.Add(jump)
			var clock mvcc.Clock = mvcc.NewHybridClock(func() time.Time { return now })
			if logical {
				clock = mvcc.NewLogicalClock(mvcc.First)
			}
			store := must.Get(oribi.Open("/s",
				&oribi.Options{FS: fs, Clock: clock, Manual: true, History: oribi.HistoryForever}))(t)
			table := numbersTable(t, store, "numbers")
			for i := range 3 {
				ts := putNumber(t, store, table, 1, 3*round+i)
				if ts <= last {
					t.Fatalf("logical=%v: batch at %d after one at %d", logical, ts, last)
				}
				last = ts
				seen = append(seen, ts)
				now = now.Add(-time.Second)
			}
			for v, ts := range seen {
				if row, err := table.Get(ctx, 1, oribi.AsOf(ts)); err != nil || row["v"] != int64(v) {
					t.Fatalf("logical=%v: as of %d: %v, %v, want %d", logical, ts, row, err, v)
				}
			}
			if round%2 == 1 {
				fs = fs.Clone() // a kill: the old store's later writes are lost
			}
			store.Close()
		}
	}
}

// A batch deletes an ingested row, inserts its key again and deletes that row too, while memory has
// a ghost of the key from before the ingest. Two copies of the row then end at one timestamp; a
// compaction merges them and keeps all versions. Other keys determine which of the two rowsets
// reaches the key first.
func TestCompactionKeepsVersionsOfKeyDeletedTwiceInABatch(t *testing.T) {
	ctx := context.Background()
	for name, brought := range map[string][]int64{"memory comes to the key last": {-1, 1},
		"the ingested rowset does": {0, 1}} {
		store, table, _ := ingestStore(t, vfs.NewMem())
		putNumber(t, store, table, int(-brought[0]-1), 0)
		at := []mvcc.Timestamp{putNumber(t, store, table, 1, 7), commitRows(t, store, oribi.OpDelete, table, 1)}
		ts, _ := must.Get2(table.Ingest(ctx, steps(nil, numbers(brought...))))(t)
		b := store.NewBatch()
		b.Delete(table, oribi.Row{"k": 1})
		b.Insert(table, oribi.Row{"k": 1, "v": 30})
		b.Delete(table, oribi.Row{"k": 1})
		end := must.Get(b.Commit(ctx))(t)
		at = append(at, ts, end)
		for _, step := range []struct {
			state string
			do    func(context.Context) error
		}{{"in memory", func(context.Context) error {
			return nil
		}}, {"flushed", table.Flush}, {"compacted", table.Compact}} {
			must.Do(t, step.do(ctx))
			text := ""
			for _, ts := range at {
				row, err := table.Get(ctx, 1, oribi.AsOf(ts))
				if err != nil && !errors.Is(err, oribi.ErrNotFound) {
					t.Fatal(err)
				}
				text += fmt.Sprint(row["v"], ", ")
			}
			if text != "7, <nil>, 10, <nil>, " {
				t.Errorf("%s, %s: values %s", name, step.state, text)
			}
			if text, _ := historyOf(t, table, 1); text != "delete <nil>, insert 10, delete <nil>, insert 7, " {
				t.Errorf("%s, %s: history %s", name, step.state, text)
			}
		}
		store.Close()
	}
}
