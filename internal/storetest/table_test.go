package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// A flush commits the table's metadata row too: neither commit may overwrite the other's update.
func TestRenameWithConcurrentWritersAndFlushes(t *testing.T) {
	ctx := context.Background()
	options := &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true}
	store := must.Get(oribi.Open("/rename", options))(t)
	table := numbersTable(t, store, "t0")
	const rounds = 30
	var wg sync.WaitGroup
	do := func(step func(i int) error) {
		wg.Go(func() {
			for i := range rounds {
				if err := step(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	do(func(i int) error { return table.Rename(ctx, fmt.Sprint("t", i+1)) })
	do(func(int) error { return table.Flush(ctx) })
	do(func(i int) error {
		b := store.NewBatch()
		b.Upsert(table, oribi.Row{"k": i, "v": i})
		_, err := b.Commit(ctx, oribi.NoSync)
		return err
	})
	wg.Wait()
	must.Do(t, store.Close())
	store = must.Get(oribi.Open("/rename", options))(t)
	defer store.Close()
	table = must.Get(store.Table(fmt.Sprint("t", rounds)))(t)
	must.Equal(t, must.Get(table.Count(ctx))(t), rounds, "rows")
}

func TestCommitRefusesUnknownOperations(t *testing.T) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	for _, op := range []oribi.Op{0, oribi.OpDeleteIgnore + 1, 255} {
		b := store.NewBatch()
		b.Row(op, table, oribi.Row{"k": int64(1), "v": int64(1)})
		must.Fail(t, must.Err(b.Commit(t.Context())), oribi.ErrRow, op)
	}
}
