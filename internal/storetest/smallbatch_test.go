package storetest

import (
	"context"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// A write batch of one row allocates memory in proportion to the row, not a buffer for many rows.
func TestOneRowBatchAllocatesLittle(t *testing.T) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	const batches, mostBytes = 1000, 8 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for k := range int64(batches) {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": k})
		must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / batches; got > mostBytes {
		t.Errorf("a batch of one row allocates %d bytes, want at most %d", got, mostBytes)
	}
}
