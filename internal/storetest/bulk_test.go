package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// bulkStore is a store with a table of numbers; timestamps are 1, 2, 3, and all history is kept.
func bulkStore(t *testing.T, memory int64) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/bulk",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1),
			History: oribi.HistoryForever, MemoryLimit: memory}))(t)
	t.Cleanup(func() {
		must.Do(t, store.Close())
	})
	return store, numbersTable(t, store, "numbers")
}

// putNumbers writes v = f(k) for all k below n, and returns the timestamp of the last write.
func putNumbers(t *testing.T, store *oribi.Store, table *oribi.Table, n int, f func(k int) int) (ts mvcc.Timestamp) {
	t.Helper()
	b := store.NewBatch()
	for k := range n {
		b.Upsert(table, oribi.Row{"k": k, "v": f(k)})
		if b.Len() == 10_000 || k == n-1 {
			var err error
			ts, err = b.Commit(context.Background(), oribi.NoSync)
			must.Do(t, err)
			b.Reset()
		}
	}
	return ts
}

// content returns the rows of the table, at the newest timestamp or as of a given one.
func content(t *testing.T, table *oribi.Table, opts ...oribi.ReadOption) map[int64]int64 {
	t.Helper()
	out := map[int64]int64{}
	scanOptions := []oribi.ScanOption{}
	for _, o := range opts {
		scanOptions = append(scanOptions, o)
	}
	for row := range must.All(t, table.Scan(context.Background(), scanOptions...).Rows()) {
		out[row["k"].(int64)] = row["v"].(int64)
	}
	return out
}

func wantContent(t *testing.T, what string, got, want map[int64]int64) {
	t.Helper()
	must.Equal(t, got, want, what, "rows", len(want), "they differ in", firstWrongNumber(got, want))
}

func firstWrongNumber(got, want map[int64]int64) string {
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			return fmt.Sprintf("key %d: %d, %v, want %d", k, g, ok, v)
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			return fmt.Sprintf("key %d: %d, want no row", k, v)
		}
	}
	return "nothing"
}

func TestBulkCallsRefuseOversizedBatches(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/bulk", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 v:int8 fixed:int64! s:string?")
	at := store.Visible()
	for name, c := range map[string]struct {
		set  oribi.Row
		opts []oribi.BulkOption
		is   error
		want string
	}{
		"nothing to set":    {nil, nil, oribi.ErrSchema, "no column to set"},
		"a key column":      {oribi.Row{"k": 1}, nil, oribi.ErrSchema, `column "k": the column is in the key`},
		"an unknown column": {oribi.Row{"v": 1, "w": 1}, nil, oribi.ErrNoColumn, `column "w"`},
		"immutable":         {oribi.Row{"fixed": 1}, nil, oribi.ErrSchema, `column "fixed": immutable`},
		"NULL":              {oribi.Row{"v": nil}, nil, oribi.ErrSchema, `column "v": NULL`},
		"out of range":      {oribi.Row{"v": 128}, nil, oribi.ErrSchema, `column "v": 128 is out of range`},
		"too long": {oribi.Row{"s": strings.Repeat("x", 65<<10)}, nil, oribi.ErrSchema,
			`column "s": 66560 bytes, limit 65536 (Options.CellLimit)`},
		"a predicate": {oribi.Row{"v": 1}, []oribi.BulkOption{oribi.Where(oribi.Eq("w", 1))}, oribi.ErrNoColumn, `column "w"`},
		"a bound":     {oribi.Row{"v": 1}, []oribi.BulkOption{oribi.From("text")}, oribi.ErrRow, `column "k"`},
	} {
		res, err := table.UpdateWhere(ctx, c.set, c.opts...)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), `oribi: update rows of table "t": `) ||
			res.Timestamp != 0 || res.Rows != 0 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	must.Equal(t, store.Visible(), at, "a refused call has committed")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, must.Err(table.DeleteWhere(canceled)), context.Canceled, "a canceled context")
	must.Do(t, store.DropTable("t"))
	must.Refuse(t, must.Err(table.DeleteWhere(ctx)), "a dropped table")
}

// afterCommit is a context that is canceled once a write batch has become visible.
type afterCommit struct {
	context.Context
	store *oribi.Store
	since mvcc.Timestamp
}

func (c afterCommit) Err() error {
	if c.store.Visible() > c.since {
		return context.Canceled
	}
	return nil
}

// skipLargeWithRace skips a test whose calls other tests make with fewer rows.
func skipLargeWithRace(t *testing.T) {
	if invariant.Race {
		t.Skip("many rows, read and written by one goroutine")
	}
}

func TestBulkCallsLargerThanAWriteBatch(t *testing.T) {
	skipLargeWithRace(t)
	ctx := context.Background()
	const rows = 70_000
	store, table := bulkStore(t, 16<<20) // write batches are at most 4 MiB
	putNumbers(t, store, table, rows, func(k int) int { return 1 })
	at := store.Visible()
	if res, err := table.UpdateWhere(ctx, oribi.Row{"v": 2}); !errors.Is(err, oribi.ErrBatchTooLarge) || res.Rows != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	must.Fail(t, must.Err(table.DeleteWhere(ctx, oribi.Where(oribi.Eq("v", 1)))), oribi.ErrBatchTooLarge, "delete")
	must.Equal(t, store.Visible(), at, "a call that was too large has changed something")
	res, err := table.UpdateWhere(afterCommit{ctx, store, at}, oribi.Row{"v": 2}, oribi.InPieces(), oribi.Where(oribi.Ne("v", 2)))
	if !errors.Is(err, context.Canceled) || res.Rows == 0 || res.Rows == rows || res.Next == nil {
		t.Fatalf("canceled after the first piece: %+v, %v", res, err)
	}
	n, err := table.Count(ctx, oribi.Where(oribi.Eq("v", 2)), oribi.To(res.Next))
	if err != nil || n < res.Rows-1 || n > res.Rows {
		t.Fatalf("%d rows are updated below %v, want %d, %v", n, res.Next, res.Rows, err)
	}
	must.Equal(t, must.Get(table.Count(ctx, oribi.Where(oribi.Eq("v", 2))))(t), res.Rows, "updated rows")
	rest, err := table.UpdateWhere(ctx, oribi.Row{"v": 2}, oribi.InPieces(), oribi.Where(oribi.Ne("v", 2)), oribi.From(res.Next))
	if err != nil || res.Rows+rest.Rows != rows || rest.Next != nil {
		t.Fatalf("resumed: %d and %d rows, %v", res.Rows, rest.Rows, err)
	}
	if rest, err = table.Truncate(ctx, oribi.NoSync); err != nil || rest.Rows != rows {
		t.Fatalf("truncate: %+v, %v", rest, err)
	}
	must.Equal(t, must.Get(table.Count(ctx))(t), 0, "rows")
	must.Equal(t, must.Get(table.Count(ctx, oribi.AsOf(at)))(t), rows, "rows before")
	must.Fail(t, must.Err(table.RestoreTo(ctx, at)), oribi.ErrBatchTooLarge, "restore")
}

// Rows among as many deleted ones are deleted one by one, since a list of their runs would take too much
// memory.
func TestScatteredRowsAreDeletedOneByOne(t *testing.T) {
	ctx := context.Background()
	const rows = 180_000
	store, table := bulkStore(t, 16<<20) // write batches are at most 4 MiB
	putNumbers(t, store, table, rows, func(k int) int { return k % 2 })
	must.Do(t, table.Flush(ctx))
	res := must.Get(table.DeleteWhere(ctx, oribi.Where(oribi.Eq("v", 1)), oribi.InPieces(), oribi.NoSync))(t)
	must.Equal(t, res.Rows, rows/2)
	must.Do(t, table.Flush(ctx))
	at := store.Visible()
	must.Fail(t, must.Err(table.DeleteRange(ctx, nil, nil)), oribi.ErrBatchTooLarge)
	must.Fail(t, must.Err(table.Truncate(ctx)), oribi.ErrBatchTooLarge)
	must.Equal(t, store.Visible(), at, "a call that was too large has changed something")
	res = must.Get(table.DeleteRange(ctx, nil, rows/2, oribi.NoSync))(t)
	must.Equal(t, res.Rows, rows/4, "rows of a part that fits")
	res = must.Get(table.DeleteRange(ctx, nil, nil, oribi.InPieces(), oribi.NoSync))(t)
	must.Equal(t, res.Rows, rows/4, "rows")
	must.Equal(t, must.Get(table.Count(ctx))(t), 0, "rows left")
	must.Equal(t, must.Get(table.Count(ctx, oribi.AsOf(at)))(t), rows/2, "rows before")
}

// A key column of type string may be empty, and so may be the encoded key.
func TestBulkCallsInPiecesChangeTheRowOfAnEmptyKey(t *testing.T) {
	ctx := context.Background()
	disk := faultfs.New(vfs.NewMem())
	store := must.Get(oribi.Open("/bulk", &oribi.Options{FS: disk, Clock: mvcc.NewLogicalClock(1)}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:string v:int64")
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": "", "v": 1})
	b.Insert(table, oribi.Row{"k": "a", "v": 1})
	at := must.Get(b.Commit(ctx))(t)
	res, err := table.UpdateWhere(afterCommit{ctx, store, at}, oribi.Row{"v": 2}, oribi.PieceBytes(1))
	if !errors.Is(err, context.Canceled) || res.Rows != 1 || len(res.Next) != 1 || res.Next[0] != "" {
		t.Fatalf("canceled after the first piece: %+v, %v", res, err)
	}
	res, err = table.UpdateWhere(ctx, oribi.Row{"v": 3}, oribi.PieceBytes(1))
	if err != nil || res.Rows != 2 || res.Timestamp != at+3 {
		t.Errorf("two pieces: %+v, %v", res, err)
	}
	must.Equal(t, must.Get(table.Count(ctx, oribi.Where(oribi.Eq("v", 3))))(t), 2, "updated rows")
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write}})
	res, err = table.UpdateWhere(ctx, oribi.Row{"v": 4}, oribi.PieceBytes(1<<20))
	if !errors.Is(err, oribi.ErrPoisoned) || res.Rows != 0 || len(res.Next) != 1 || res.Next[0] != "" {
		t.Errorf("failed in the first piece: %+v, %v", res, err)
	}
}

// Plan: each writer upserts and deletes its own rows, one goroutine flushes and compacts, and
// another makes bulk calls in sequence. The table's own history is the oracle: the effect of a bulk
// call is the difference between its timestamp and the one before.
func TestBulkCallsWithConcurrentWriters(t *testing.T) {
	ctx := context.Background()
	const keys, writers = 400, 3
	rounds := seedtest.Needed(40, 12)
	store, table := bulkStore(t, 0)
	putNumbers(t, store, table, keys, func(k int) int { return k % 10 })
	stop := make(chan struct{})
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	type put struct {
		k, v int64 // v is −1 for a delete
		ts   mvcc.Timestamp
	}
	seed := seedtest.Seed(t)
	puts := make([][]put, writers)
	var wg sync.WaitGroup
	for w := range writers {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			b := store.NewBatch()
			for !stopped() {
				p := put{k: int64(rng.IntN(keys/writers)*writers + w), v: int64(rng.IntN(11) - 1)}
				b.Reset()
				if p.v < 0 {
					b.DeleteIgnore(table, oribi.Row{"k": p.k})
				} else {
					b.Upsert(table, oribi.Row{"k": p.k, "v": p.v})
				}
				var err error
				if p.ts, err = b.Commit(ctx, oribi.NoSync); err != nil {
					t.Error(err)
					return
				}
				puts[w] = append(puts[w], p)
			}
		})
	}
	wg.Go(func() {
		for i := 0; !stopped(); i++ {
			err := table.Flush(ctx)
			if err == nil && i%4 == 3 {
				err = table.Compact(ctx)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	rng := rand.New(rand.NewPCG(seed, 99))
	for round := range rounds {
		since := store.Visible()
		x := int64(rng.IntN(10))
		var res oribi.BulkResult
		var err error
		what := ""
		passes := func(k, v int64) bool { return v == x }
		switch round % 4 {
		case 0:
			what = "update"
			res, err = table.UpdateWhere(ctx, oribi.Row{"v": 100 + round}, oribi.Where(oribi.Eq("v", x)))
		case 1:
			what = "delete"
			res, err = table.DeleteWhere(ctx, oribi.Where(oribi.Eq("v", x)))
		case 2:
			what = "restore"
			res, err = table.RestoreTo(ctx, since-min(since-1, mvcc.Timestamp(rng.IntN(50))))
		case 3:
			what = "truncate"
			res, err = table.Truncate(ctx)
		}
		if err != nil {
			t.Error(what, err)
			break
		}
		at := res.Timestamp
		if res.Rows == 0 {
			if at, err = store.NewBatch().Commit(ctx); err != nil { // after the call
				t.Error(err)
				break
			}
		}
		before, after := content(t, table, oribi.AsOf(at-1)), content(t, table, oribi.AsOf(at))
		changed := int64(0)
		for k := range int64(keys) {
			old, was := before[k]
			now, is := after[k]
			if old != now || was != is {
				changed++
			}
			if what != "update" && what != "delete" {
				continue
			}
			wanted := was && passes(k, old)
			did := was && (what == "update" && is && now == 100+int64(round) || what == "delete" && !is)
			if !wanted && (was != is || old != now) {
				t.Errorf("%s %d: key %d was %d, %v, is %d, %v", what, x, k, old, was, now, is)
			}
			// A row that matched before the call and was not written since must be changed.
			if v, ok := numberAt(t, table, k, since); wanted && !did && ok && v == old &&
				!writtenBetween(t, table, k, since, at-1) {
				t.Errorf("%s %d: key %d was left at %d", what, x, k, now)
			}
		}
		must.Equal(t, changed, res.Rows, what, "rows changed")
		if what == "truncate" && len(after) != 0 {
			t.Errorf("%d rows are left at the timestamp of a truncate", len(after))
		}
		if t.Failed() {
			break
		}
	}
	close(stop)
	wg.Wait()
	n := 0
	for _, written := range puts {
		for i, p := range written {
			if n++; i%7 != 0 {
				continue // all of them take too long
			}
			got, ok := numberAt(t, table, p.k, p.ts)
			if ok != (p.v >= 0) || ok && got != p.v {
				t.Fatalf("key %d at %v: %d, %v, want %d", p.k, p.ts, got, ok, p.v)
			}
		}
	}
	t.Logf("%d rounds, %d writes", rounds, n)
}

// numberAt reads the value of one key as of a timestamp.
func numberAt(t *testing.T, table *oribi.Table, k int64, at mvcc.Timestamp) (int64, bool) {
	t.Helper()
	row, err := table.Get(context.Background(), k, oribi.AsOf(at))
	if errors.Is(err, oribi.ErrNotFound) {
		return 0, false
	}
	must.Do(t, err)
	return row["v"].(int64), true
}

// writtenBetween reports whether a row has versions in (from, to].
func writtenBetween(t *testing.T, table *oribi.Table, k int64, from, to mvcc.Timestamp) bool {
	t.Helper()
	for v := range must.All(t, table.History(context.Background(), k, oribi.AsOf(to))) {
		return v.Timestamp > from
	}
	return false
}

// A restore is exact with concurrent writers: at its timestamp the table equals the restored state,
// even if rows were written while the difference was read.
func TestRestoreWithConcurrentWriters(t *testing.T) {
	ctx := context.Background()
	store, table := bulkStore(t, 0)
	first := putNumbers(t, store, table, 2000, func(k int) int { return k })
	want := content(t, table)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		b := store.NewBatch()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			b.Reset()
			b.Upsert(table, oribi.Row{"k": i * 7 % 3000, "v": -i})
			b.DeleteIgnore(table, oribi.Row{"k": i * 11 % 3000})
			if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for range 5 {
		res := must.Get(table.RestoreTo(ctx, first))(t)
		if res.Rows > 0 { // else the call has found nothing to undo, and has no timestamp
			wantContent(t, "restored", content(t, table, oribi.AsOf(res.Timestamp)), want)
		}
	}
}

// The number of rows that Confirm's function accepts is the most that the call changes, whatever
// other writers do meanwhile.
func TestBulkCallsChangeNoMoreRowsThanConfirmed(t *testing.T) {
	ctx := context.Background()
	errNo := errors.New("no")
	var first mvcc.Timestamp
	calls := map[string]struct {
		rows int64 // that the call would change, of 30
		do   func(table *oribi.Table, opts ...oribi.BulkOption) (oribi.BulkResult, error)
	}{
		"update": {10, func(table *oribi.Table, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
			return table.UpdateWhere(ctx, oribi.Row{"v": 9}, append(opts, oribi.Where(oribi.Eq("v", 1)))...)
		}},
		"delete": {10, func(table *oribi.Table, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
			return table.DeleteWhere(ctx, append(opts, oribi.Where(oribi.Eq("v", 1)))...)
		}},
		"truncate": {30, func(table *oribi.Table, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
			return table.Truncate(ctx, opts...)
		}},
		"restore": {20, func(table *oribi.Table, opts ...oribi.BulkOption) (oribi.BulkResult, error) {
			return table.RestoreTo(ctx, first, opts...)
		}},
	}
	for name, call := range calls {
		for _, pieces := range []oribi.BulkOption{nil, oribi.PieceBytes(300)} {
			store, table := bulkStore(t, 0)
			first = putNumbers(t, store, table, 10, func(int) int { return 0 })
			last := putNumbers(t, store, table, 30, func(k int) int { return (k + 1) % 3 })
			is := content(t, table)
			want := call.rows
			if name == "restore" {
				want = 0
				for k, v := range is {
					if k >= 10 || v != 0 {
						want++
					}
				}
			}
			asked := int64(0)
			res, err := call.do(table, pieces, oribi.Confirm(func(n int64) error { asked = n; return errNo }))
			if !errors.Is(err, errNo) || asked != want || res.Rows != 0 || store.Visible() != last {
				t.Fatalf("%s: asked about %d rows, want %d; %+v, %v", name, asked, want, res, err)
			}
			wantContent(t, name+" refused", content(t, table), is)
			// One more row matches when the call has its answer.
			res, err = call.do(table, pieces, oribi.Confirm(func(int64) error {
				b := store.NewBatch()
				b.Insert(table, oribi.Row{"k": 1000, "v": 1})
				_, err := b.Commit(ctx)
				return err
			}))
			if !errors.Is(err, oribi.ErrConflict) || res.Rows > want || pieces == nil && res.Rows != 0 {
				t.Fatalf("%s: one row more: %+v, %v", name, res, err)
			}
			if _, ok := content(t, table)[1000]; !ok {
				t.Fatalf("%s has changed the row that was not confirmed", name)
			}
			res2, err := call.do(table, pieces, oribi.Confirm(func(n int64) error { asked = n; return nil }))
			if err != nil || res2.Rows != asked || res.Rows+res2.Rows != want+1 {
				t.Fatalf("%s: confirmed %d: %+v, %+v, %v", name, asked, res, res2, err)
			}
		}
	}
}

// What is too much for one write batch can be restored in several, and in parts by several calls.
func TestRestoreInPieces(t *testing.T) {
	skipLargeWithRace(t)
	ctx := context.Background()
	const rows = 70_000
	store, table := bulkStore(t, 16<<20) // write batches are at most 4 MiB
	full := putNumbers(t, store, table, rows, func(k int) int { return k })
	was := content(t, table)
	must.Do(t, table.Flush(ctx))
	must.Get(table.UpdateWhere(ctx, oribi.Row{"v": -1}, oribi.InPieces(), oribi.From(30_000)))(t)
	must.Get(table.DeleteWhere(ctx, oribi.InPieces(), oribi.To(20_000)))(t)
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": rows + 5, "v": 1})
	changed := must.Get(b.Commit(ctx))(t)
	is := content(t, table)
	if _, err := table.RestoreTo(ctx, full); !errors.Is(err, oribi.ErrBatchTooLarge) || store.Visible() != changed {
		t.Fatalf("in one batch: %v", err)
	}
	res, err := table.RestoreTo(afterCommit{ctx, store, changed}, full, oribi.InPieces())
	if !errors.Is(err, context.Canceled) || res.Rows == 0 || res.Rows > 60_000 {
		t.Fatalf("canceled after the first piece: %+v, %v", res, err)
	}
	rest := must.Get(table.RestoreTo(ctx, full, oribi.InPieces(), oribi.NoSync))(t)
	wantContent(t, "restored", content(t, table), was)
	wantContent(t, "before it was restored", content(t, table, oribi.AsOf(changed)), is)
	must.Equal(t, res.Rows+rest.Rows, 20_000+(rows-30_000)+1, "rows were restored")
	if rest.Timestamp <= changed+1 || rest.Timestamp != store.Visible() {
		t.Errorf("%d is the last timestamp, visible %d", rest.Timestamp, store.Visible())
	}
}
