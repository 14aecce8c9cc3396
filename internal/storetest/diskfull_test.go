package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// narrowFS reports the free space that the test sets.
type narrowFS struct {
	vfs.FS
	free atomic.Int64
}

func (n *narrowFS) FreeBytes(string) int64 { return n.free.Load() }

// A disk that fills up first refuses rows; deletes, flushes and compactions continue within the
// space reserved for them, and then only metadata commits. No failure poisons the store, and all
// operations succeed again once there is space.
func TestFullDiskAllowsOperationsThatFreeSpace(t *testing.T) {
	ctx := context.Background()
	disk := &narrowFS{FS: vfs.NewMem()}
	disk.free.Store(1 << 30)
	open := func() (*oribi.Store, *oribi.Table) {
		s := must.Get(oribi.Open("/store", &oribi.Options{FS: disk, Manual: true}))(t)
		return s, numbersTable(t, s, "numbers")
	}
	next := 0 // the highest key passed to a delete
	store, table := open()
	fillNumbers(t, store, table, 0, 1000)
	must.Do(t, store.Close())
	insert := func(k int) error {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": -k})
		_, err := b.Commit(ctx)
		return err
	}
	remove := func(k int) error {
		b := store.NewBatch()
		b.Delete(table, oribi.Row{"k": k})
		_, err := b.Commit(ctx)
		return err
	}
	check := func(what string, free int64, inserts, deletes, flushes bool) {
		t.Helper()
		disk.free.Store(free)
		for _, step := range []struct {
			name string
			ok   bool
			do   func() error
		}{
			{"insert", inserts, func() error { return insert(5000) }},
			{"delete", deletes, func() error { next++; return remove(next) }},
			{"flush", flushes, func() error { return table.Flush(ctx) }},
		} {
			switch err := step.do(); {
			case step.ok && err != nil:
				t.Errorf("%s: %s: %v", what, step.name, err)
			case !step.ok && !errors.Is(err, oribi.ErrNoSpace):
				t.Errorf("%s: %s: %v, want ErrNoSpace", what, step.name, err)
			}
		}
		must.Do(t, store.Poisoned(), what)
	}
	store, table = open()
	disk.free.Store(8 << 20)
	must.Do(t, remove(0))
	check("only metadata has room", 2<<20, false, false, false)
	check("rows have no room", 8<<20, false, true, true)
	disk.free.Store(2 << 20)
	spare := must.Get(store.CreateTable("spare", table.Schema()))(t)
	must.Do(t, store.DropTable(spare.Name()))
	disk.free.Store(1 << 10)
	must.Fail(t, store.DropTable("numbers"), oribi.ErrNoSpace, "a drop on a full disk")
	check("space again", 1<<30, true, true, true)
	must.Do(t, store.Close())
	store, table = open()
	defer store.Close()
	must.Equal(t, must.Get(table.Count(ctx))(t), 998, "rows")
}
