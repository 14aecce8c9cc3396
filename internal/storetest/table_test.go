package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

func TestRenameKeepsHandlesRowsAndHistory(t *testing.T) {
	ctx := context.Background()
	options := &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1)}
	store := must.Get(oribi.Open("/rename", options))(t)
	table := numbersTable(t, store, "before")
	other := numbersTable(t, store, "other")
	first := putNumber(t, store, table, 1, 10)
	b := store.NewBatch()
	b.Update(table, oribi.Row{"k": 1, "v": 20})
	must.Do(t, table.Rename(ctx, "after"))
	if _, err := b.Commit(ctx); err != nil {
		t.Errorf("a write batch that was begun before the rename: %v", err)
	}
	check := func(table *oribi.Table) {
		t.Helper()
		if got := table.Name(); got != "after" {
			t.Errorf("the name is %q", got)
		}
		wantValue(t, table, 20)
		wantValue(t, table, 10, oribi.AsOf(first))
	}
	check(table)
	if _, err := table.Get(ctx, 2); !strings.Contains(fmt.Sprint(err), `table "after"`) {
		t.Errorf("an error names the table: %v", err)
	}
	if found, err := store.Table("after"); found != table {
		t.Errorf("found another table: %v", err)
	}
	if _, err := store.Table("before"); !errors.Is(err, oribi.ErrNoTable) {
		t.Errorf("the old name: %v", err)
	}
	if err := other.Rename(ctx, "after"); !errors.Is(err, oribi.ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, bad := range []string{"", "a\x00b", strings.Repeat("x", 257), "\xff"} {
		if err := other.Rename(ctx, bad); !errors.Is(err, oribi.ErrSchema) {
			t.Errorf("name %.10q: %v", bad, err)
		}
	}
	if err := table.Rename(ctx, "after"); err != nil {
		t.Errorf("its own name: %v", err)
	}
	if err := other.Rename(ctx, "before"); err != nil {
		t.Errorf("a name that is free again: %v", err)
	}
	must.Do(t, store.Close())
	store = must.Get(oribi.Open("/rename", options))(t)
	defer store.Close()
	table = must.Get(store.Table("after"))(t)
	check(table)
	must.Do(t, store.DropTable("after"))
	if err := table.Rename(ctx, "again"); !errors.Is(err, oribi.ErrNoTable) {
		t.Errorf("a dropped table: %v", err)
	}
}

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
	if n, err := table.Count(ctx); n != rounds || err != nil {
		t.Errorf("%d rows, %v, want %d", n, err, rounds)
	}
}

func TestCommitRefusesUnknownOperations(t *testing.T) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	for _, op := range []oribi.Op{0, oribi.OpDeleteIgnore + 1, 255} {
		b := store.NewBatch()
		b.Row(op, table, oribi.Row{"k": int64(1), "v": int64(1)})
		if _, err := b.Commit(t.Context()); !errors.Is(err, oribi.ErrRow) {
			t.Errorf("%v: %v, want ErrRow", op, err)
		}
	}
}
