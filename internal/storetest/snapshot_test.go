package storetest

import (
	"context"
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
	return must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
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
	must.Do(t, err)
	must.Equal(t, n, 1, "rows with", want)
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
				must.Equal(t, must.Get(table.Count(ctx, oribi.AsOf(ts), oribi.Where(oribi.Eq("v", 1))))(t), rows,
					"past", past, "rows as of the scan")
			}
			n++
		}
		must.Equal(t, n, rows, "past", past, "rows")
		for range table.Scan(ctx).Rows() {
			break
		}
		putNumber(t, store, table, 1, 3)
		must.Do(t, table.Compact(ctx))
		must.Fail(t, must.Err(table.Count(ctx, oribi.AsOf(ts))), oribi.ErrTooOld, "past", past)
		must.Do(t, store.Close())
	}
}
