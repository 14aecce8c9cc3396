package storetest

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// readsFS records which pages of containers are read, and counts the reads.
type readsFS struct {
	vfs.FS
	mu    sync.Mutex
	pages map[string]bool
	reads int
}

type readsFile struct {
	vfs.File
	fs   *readsFS
	name string
}

func (f *readsFS) Open(name string, write bool) (vfs.File, error) {
	file, err := f.FS.Open(name, write)
	if err != nil || filepath.Ext(name) != ".data" {
		return file, err
	}
	return &readsFile{file, f, name}, nil
}

func (f *readsFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	f.fs.reads++
	for page := off / 4096; page*4096 < off+int64(len(p)); page++ { // blocks start at page boundaries
		f.fs.pages[fmt.Sprint(f.name, " ", page)] = true
	}
	f.fs.mu.Unlock()
	return f.File.ReadAt(p, off)
}

// There are six rowsets with disjoint keys; one is changed before the interval, one in it, one
// after it. A diff of the interval, and the history of a row, read only blocks of the affected
// rowset.
func TestDiffsAndHistoriesReadOnlyRowSetsWithChanges(t *testing.T) {
	const sets, rows = 6, 100
	ctx := context.Background()
	mem := vfs.NewMem()
	open := func(fsys vfs.FS, readOnly bool) *oribi.Store {
		store := must.Get(oribi.Open("/reads",
			&oribi.Options{FS: fsys, Manual: true, ReadOnly: readOnly, Clock: mvcc.NewLogicalClock(mvcc.Min),
				History: oribi.HistoryForever}))(t)
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := open(mem, false)
	table := numbersTable(t, store, "numbers")
	last := mvcc.Min
	put := func(op oribi.Op, set int, v int, keys ...int) mvcc.Timestamp {
		b := store.NewBatch()
		for _, k := range keys {
			b.Row(op, table, oribi.Row{"k": set*rows + k, "v": v})
		}
		ts := must.Get(b.Commit(ctx))(t)
		must.Do(t, table.Flush(ctx))
		last = ts
		return ts
	}
	all := make([]int, rows)
	for i := range all {
		all[i] = i
	}
	for set := range sets {
		put(oribi.OpInsert, set, 0, all...)
	}
	from := put(oribi.OpUpdate, 1, 1, 5)
	to := put(oribi.OpUpdate, 3, 1, 7)
	put(oribi.OpUpdate, 4, 1, 9)
	must.Equal(t, len(table.Layout().RowSets), sets, "rowsets")
	must.Do(t, store.Close())
	// pages returns the pages of containers that read loads in a newly opened store with an empty
	// cache.
	pages := func(read func(*oribi.Table) int) (map[string]bool, int) {
		fsys := &readsFS{FS: mem, pages: map[string]bool{}}
		store := open(fsys, true)
		defer store.Close()
		table := must.Get(store.Table("numbers"))(t)
		fsys.mu.Lock()
		fsys.pages = map[string]bool{} // ignore the pages that Open reads
		fsys.mu.Unlock()
		n := read(table)
		return fsys.pages, n
	}
	var of [sets]map[string]bool // pages that a scan and a Get in each rowset read
	for set := range sets {
		of[set], _ = pages(func(table *oribi.Table) int {
			must.Get(table.Get(ctx, set*rows, oribi.AsOf(last)))(t)
			return counted(t, table.Scan(ctx, oribi.AsOf(last), oribi.From(set*rows), oribi.To((set+1)*rows)).Batches())
		})
	}
	check := func(what string, got map[string]bool, n, want, asked int) {
		t.Helper()
		must.Equal(t, n, want, what, "answers")
		for set := range sets {
			touched := 0
			for page := range got {
				if of[set][page] {
					touched++
				}
			}
			must.Equal(t, touched > 0, set == asked, what, touched, "pages of rowset", set, "were read")
		}
	}
	got, n := pages(func(table *oribi.Table) int { return counted(t, table.Diff(ctx, from, to)) })
	check("diff", got, n, 1, 3)
	got, n = pages(func(table *oribi.Table) int { return counted(t, table.Diff(ctx, last, last)) })
	check("diff of nothing", got, n, 0, -1)
	got, n = pages(func(table *oribi.Table) int { return counted(t, table.History(ctx, 3*rows+7)) })
	check("history", got, n, 2, 3)
}

// counted returns the number of elements of seq.
func counted[T any](t *testing.T, seq iter.Seq2[T, error]) (n int) {
	t.Helper()
	for range must.All(t, seq) {
		n++
	}
	return n
}
