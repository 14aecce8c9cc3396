package storetest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
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
