package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// What open transactions have read and written is counted in the memory of the store, within a
// quarter of its limit for all of them together, besides 1 MiB for each. Others are not kept waiting
// by a transaction that has taken all of it.
func TestMemoryOfTransactionsIsBounded(t *testing.T) {
	const limit, share = 16 << 20, 1 << 20
	ctx := context.Background()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: limit}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	counted := func() int64 {
		m := must.Get(store.Metrics())(t)
		return m.Memory.Transactions
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	// fill reads and writes rows until the transaction gets an error other than ErrNotFound.
	fill := func(tx *oribi.Tx, from int64) (n int64, err error) {
		for ; n < 1<<20; n++ {
			if n%2 == 0 {
				err = tx.Upsert(table, number(from+n, n))
			} else if _, err = tx.Get(table, from+n); errors.Is(err, oribi.ErrNotFound) {
				err = nil
			}
			if err != nil {
				return n, err
			}
		}
		t.Fatal("transactions grow without bound")
		return n, nil
	}
	large := begin(t, store)
	n, err := fill(large, 0)
	must.Fail(t, err, oribi.ErrBatchTooLarge)
	if got := counted(); got > limit/4+share+1024 || got < limit/4+share-1024 {
		t.Errorf("%d bytes are counted, limit %d", got, limit/4+share)
	}
	if held := heap() - before; held > (limit/4+share)*3/2 {
		t.Errorf("the transaction takes %d bytes, %d are counted", held, counted())
	}
	_, err = fill(large, n+1) // the refused call has no effect; neither do further ones
	must.Fail(t, err, oribi.ErrBatchTooLarge)
	put(t, store, table, map[int64]int64{-1: 1})
	for k := range int64(20) {
		must.Do(t, store.Update(ctx, func(tx *oribi.Tx) error {
			return tx.Upsert(table, number(-2-k, k))
		}, oribi.NoSync))
	}

	short, cancel := context.WithCancel(ctx)
	defer cancel()
	small := must.Get(store.Begin(short))(t)
	defer small.Rollback()
	for range 2 {
		done := make(chan error)
		go func() {
			_, err := fill(small, 10_000_000)
			done <- err
		}()
		for counted() < limit/4+share+share {
			runtime.Gosched()
		}
		cancel()
		must.Fail(t, <-done, oribi.ErrTransactionsFull)
	}
	small.Rollback()
	must.Get(large.Commit(oribi.NoSync))(t)
	small = begin(t, store)
	if m, err := fill(small, 10_000_000); !errors.Is(err, oribi.ErrBatchTooLarge) || m < n/2 {
		t.Errorf("after the other transaction has ended: %d steps, %v", m, err)
	}
	small.Rollback()
	must.Equal(t, counted(), 0, "bytes are counted after the end")
	if count, err := table.Count(ctx); err != nil || count < n/2 {
		t.Errorf("%d rows, %v, want about %d", count, err, n/2)
	}
}

// Updates that need more than half of the memory each wait for each other, give way, and all end.
func TestLargeUpdatesShareMemory(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: 16 << 20, CellLimit: 1 << 20}))(t)
	defer store.Close()
	table := tableOf(t, store, "large", "k*:int64 v:binary")
	value := make([]byte, 128<<10)
	var wg sync.WaitGroup
	for g := range int64(4) {
		wg.Go(func() {
			for range 5 {
				if err := store.Update(ctx, func(tx *oribi.Tx) error {
					for k := range int64(28) {
						if err := tx.Upsert(table, oribi.Row{"k": 100*g + k, "v": value}); err != nil {
							return err
						}
					}
					return nil
				}, oribi.NoSync); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must.Equal(t, must.Get(table.Count(ctx))(t), 112, "rows")

}

// Close does not wait for transactions that wait for memory.
func TestCloseEndsTheWaitForMemory(t *testing.T) {
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: 16 << 20, CellLimit: 1 << 20}))(t)
	table := tableOf(t, store, "large", "k*:int64 v:binary")
	value := make([]byte, 256<<10)
	fill := func(tx *oribi.Tx, n int64) (err error) {
		for k := int64(0); k < n && err == nil; k++ {
			err = tx.Upsert(table, oribi.Row{"k": k, "v": value})
		}
		return err
	}
	must.Do(t, fill(begin(t, store), 17))
	done := make(chan error)
	go func() { done <- fill(begin(t, store), 17) }()
	for must.Get(store.Metrics())(t).Memory.Transactions < 24*int64(len(value)) {
		runtime.Gosched()
	}
	must.Do(t, store.Close())
	must.Fail(t, <-done, oribi.ErrClosed)
}

// A row that a transaction writes again and again takes the memory of one write, whatever the kinds
// of its writes are, and so does each row of a queue that is popped.
func TestMemoryOfRewrittenRowsIsThatOfOneWrite(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	rng := seedtest.Rand(t)
	tx := begin(t, store)
	counted := func() int64 { return must.Get(store.Metrics())(t).Memory.Transactions }
	var v int64
	for i := range 20_000 {
		ops := []oribi.Op{oribi.OpUpsert, oribi.OpUpdate, oribi.OpUpdateIgnore, oribi.OpUpsertIgnore}
		row, op := number(1, v+1), ops[rng.IntN(len(ops))]
		if i%100 == 50 {
			must.Do(t, tx.Delete(table, oribi.Row{"k": 1}))
			op = oribi.OpInsert
		}
		if i == 0 {
			op = oribi.OpInsert
		}
		must.Do(t, tx.Row(op, table, row))
		v++
		got := must.Get(tx.Get(table, 1))(t)
		must.Equal(t, got["v"].(int64), v, "step", i, "value")
	}
	if n := counted(); n > 512 {
		t.Errorf("one row of 16 bytes that was written often takes %d bytes", n)
	}
	must.Get(tx.Commit(oribi.NoSync))(t)
	got := must.Get(table.Get(ctx, 1))(t)
	must.Equal(t, got["v"].(int64), v, "committed value")

	tx = begin(t, store)
	const rows = 1000
	for k := range int64(rows) {
		must.Do(t, tx.Upsert(table, number(k, k)))
	}
	if n := counted(); n > 150*rows {
		t.Errorf("%d rows of 16 bytes take %d bytes", rows, n)
	}
}

// Operations of all kinds on few rows leave the rows that they leave in a map, in the transaction and
// after its commit.
func TestOperationsOnOneRowMatchAMap(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "rows", "k*:int64 a:int64? b:string?")
	rng := seedtest.Rand(t)
	type row struct{ a, b any }
	model := map[int64]row{}
	ops := []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpDelete, oribi.OpInsertIgnore,
		oribi.OpUpsertIgnore, oribi.OpUpdateIgnore, oribi.OpDeleteIgnore}
	for range 300 {
		tx := begin(t, store)
		mine := maps.Clone(model)
		type saved struct {
			sp   *oribi.Savepoint
			rows map[int64]row
		}
		var stack []saved
		for range rng.IntN(60) {
			switch n := rng.IntN(20); {
			case n < 2:
				stack = append(stack, saved{must.Get(tx.Savepoint())(t), maps.Clone(mine)})
			case n == 2 && len(stack) > 0:
				at := rng.IntN(len(stack))
				must.Do(t, tx.RollbackTo(stack[at].sp))
				mine = maps.Clone(stack[at].rows)
				if at+1 < len(stack) {
					must.Fail(t, tx.RollbackTo(stack[at+1].sp), oribi.ErrSavepoint)
				}
				stack = stack[:at+1]
				seen := map[int64]row{}
				for r := range must.All(t, tx.Scan(table).Rows()) {
					seen[r["k"].(int64)] = row{r["a"], r["b"]}
				}
				if !maps.Equal(seen, mine) {
					t.Fatalf("after the rollback, rows are %v, want %v", seen, mine)
				}
			}
			k, op := rng.Int64N(4), ops[rng.IntN(len(ops))]
			cells, now := oribi.Row{"k": k}, row{}
			old, exists := mine[k]
			if exists && !op.Inserts() {
				now = old
			}
			if op != oribi.OpDelete && op != oribi.OpDeleteIgnore {
				set := 1 + rng.IntN(3)
				if set&1 != 0 {
					now.a = rng.Int64N(100)
					cells["a"] = now.a
				}
				if set&2 != 0 {
					now.b = fmt.Sprint(rng.IntN(100))
					cells["b"] = now.b
				}
			}
			var want error
			switch op {
			case oribi.OpInsert:
				if want = nil; exists {
					want = oribi.ErrKeyExists
				} else {
					mine[k] = now
				}
			case oribi.OpInsertIgnore:
				if !exists {
					mine[k] = now
				}
			case oribi.OpUpsert, oribi.OpUpsertIgnore:
				mine[k] = now
			case oribi.OpUpdate, oribi.OpDelete:
				if !exists {
					want = oribi.ErrNotFound
				} else if mine[k] = now; op == oribi.OpDelete {
					delete(mine, k)
				}
			case oribi.OpUpdateIgnore:
				if exists {
					mine[k] = now
				}
			case oribi.OpDeleteIgnore:
				delete(mine, k)
			}
			if err := tx.Row(op, table, cells); !errors.Is(err, want) {
				t.Fatalf("%v of %v: %v, want %v", op, cells, err, want)
			}
			got, err := tx.Get(table, k)
			if after, ok := mine[k]; ok != (err == nil) || ok && (got["a"] != after.a || got["b"] != after.b) {
				t.Fatalf("%v of %v leaves %v, %v, want %v, %v", op, cells, got, err, after, ok)
			}
		}
		if rng.IntN(3) == 0 {
			other := begin(t, store)
			must.Fail(t, other.RollbackTo(must.Get(tx.Savepoint())(t)), oribi.ErrSavepoint)
			tx.Rollback()
			must.Fail(t, must.Err(tx.Savepoint()), oribi.ErrTxEnded)
			continue
		}
		must.Get(tx.Commit(oribi.NoSync))(t)
		model = mine
		seen := map[int64]row{}
		for r := range must.All(t, table.Scan(ctx).Rows()) {
			seen[r["k"].(int64)] = row{r["a"], r["b"]}
		}
		if !maps.Equal(seen, model) {
			t.Fatalf("committed rows %v, want %v", seen, model)
		}
	}
}
