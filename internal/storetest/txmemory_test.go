package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// What open transactions have read and written is counted in the memory of the store, within a
// quarter of its limit for all of them together. Other writers are not kept waiting by it.
func TestMemoryOfTransactionsIsBounded(t *testing.T) {
	const limit = 16 << 20
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
	txs := []*oribi.Tx{begin(t, store), begin(t, store)}
	full := func(i int64) error {
		switch tx := txs[i%2]; i % 4 {
		case 0, 1:
			return tx.Upsert(table, number(i, i))
		default:
			_, err := tx.Get(table, i)
			return err
		}
	}
	n := int64(0)
	for ; ; n++ {
		if err := full(n); errors.Is(err, oribi.ErrBatchTooLarge) {
			break
		} else if err != nil && !errors.Is(err, oribi.ErrNotFound) {
			t.Fatal(err)
		}
		if n > 1<<20 {
			t.Fatal("transactions grow without bound")
		}
	}
	if got := counted(); got > limit/4+1024 || got < limit/5 {
		t.Errorf("%d bytes are counted, limit %d", got, limit/4)
	}
	if held := heap() - before; held > limit/4*3/2 {
		t.Errorf("%d transactions take %d bytes, %d are counted", len(txs), held, counted())
	}
	for range 2 { // the refused call has no effect; neither do further ones
		must.Fail(t, full(n), oribi.ErrBatchTooLarge, "call", n)
	}
	put(t, store, table, map[int64]int64{-1: 1})
	txs[0].Rollback()
	if err := full(n | 1); err != nil && !errors.Is(err, oribi.ErrNotFound) {
		t.Errorf("after the other transaction has ended: %v", err)
	}
	must.Do(t, must.Err(txs[1].Commit(oribi.NoSync)))
	must.Equal(t, counted(), 0, "bytes are counted after the end")
	if count, err := table.Count(ctx); err != nil || count < n/4 {
		t.Errorf("%d rows, %v, want about %d", count, err, n/4)
	}
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
		for range rng.IntN(60) {
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
			tx.Rollback()
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
