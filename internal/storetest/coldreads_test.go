package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// wide describes the table of wideStore: rows of a key and columns with cells of random bytes, and
// the size of cblocks.
type wide struct{ rows, columns, cell, block int }

// wideStore makes a store with a table of one rowset.
func wideStore(t *testing.T, w wide, options ...oribi.TableOption) vfs.FS {
	t.Helper()
	r, mem, ctx := seedtest.Rand(t), vfs.NewMem(), context.Background()
	store, err := oribi.Open("/wide", &oribi.Options{FS: mem, Manual: true})
	must.Do(t, err)
	columns := []schema.Column{{Name: "k", Type: schema.Int64}}
	for i := range w.columns {
		columns = append(columns, schema.Column{Name: fmt.Sprintf("f%d", i),
			Type: schema.Binary, BlockBytes: int32(w.block)})
	}
	s := must.Get(schema.New(columns, 1))(t)
	table := must.Get(store.CreateTable("wide", s, options...))(t)
	b := store.NewBatch()
	for k := range w.rows {
		row := oribi.Row{"k": k}
		for _, c := range columns[1:] {
			cell := make([]byte, w.cell)
			for i := range cell {
				cell[i] = byte(r.Uint32())
			}
			row[c.Name] = cell
		}
		b.Insert(table, row)
	}
	if _, err = b.Commit(ctx); err == nil {
		err = table.Flush(ctx)
	}
	must.Do(t, err)
	must.Do(t, store.Close())
	return mem
}

// openWide opens the store of wideStore. reads returns the number of reads of containers since its
// last call.
func openWide(t *testing.T, mem vfs.FS, o oribi.Options) (table *oribi.Table, reads func() int) {
	t.Helper()
	history.Usual()
	fsys := &readsFS{FS: mem, pages: map[string]bool{}}
	o.FS, o.ReadOnly = fsys, true
	store := must.Get(oribi.Open("/wide", &o))(t)
	t.Cleanup(func() { store.Close() })
	table = must.Get(store.Table("wide"))(t)
	reads = func() int {
		fsys.mu.Lock()
		defer fsys.mu.Unlock()
		n := fsys.reads
		fsys.reads = 0
		return n
	}
	reads()
	return table, reads
}

// A read by key of a table that was just opened opens the files that it needs, each with one read
// of its end, and reads one cblock of each. With a row file it opens no column.
func TestColdGetReadsEachFileOnceAndItsEnd(t *testing.T) {
	ctx, of := context.Background(), wide{rows: 1500, columns: 10, cell: 100, block: 16 << 10}
	get := func(table *oribi.Table, k int) {
		t.Helper()
		if row, err := table.Get(ctx, k); err != nil || len(row["f9"].([]byte)) != 100 {
			t.Fatalf("key %d: %d columns, %v", k, len(row), err)
		}
	}
	t.Run("columns", func(t *testing.T) {
		table, reads := openWide(t, wideStore(t, of), oribi.Options{})
		get(table, 700)
		// The bloom file, the key column and ten others, each its end and one cblock. The ends of
		// the ten take two reads, since their dictionaries are large.
		if n := reads(); n > 2*2+3*10 {
			t.Errorf("the first Get took %d reads, want at most 34", n)
		}
		get(table, 20)
		if n := reads(); n > 11 {
			t.Errorf("the second Get took %d reads, want one for each of 10 columns and at most one for the key", n)
		}
	})
	t.Run("row file", func(t *testing.T) {
		table, reads := openWide(t, wideStore(t, of, oribi.RowFile(schema.FullRowFile)), oribi.Options{})
		get(table, 700)
		// The key directory, which is so small that the first Get reads it. The row file: its end
		// and one cblock.
		if n := reads(); n > 3 {
			t.Errorf("the first Get took %d reads, want at most 3", n)
		}
		get(table, 20)
		must.Equal(t, reads(), 1, "reads of the second Get")
	})
	t.Run("large row file", func(t *testing.T) {
		of := of
		of.rows = 6000
		table, reads := openWide(t, wideStore(t, of, oribi.RowFile(schema.FullRowFile)), oribi.Options{})
		// The value index takes more than the end of a file that is read otherwise.
		for i, k := range []int{700, 20, 5999, 3000} {
			get(table, k)
			want := 1
			if i < 2 {
				want++ // the end of the row file; at the second Get, the key directory
			}
			must.Equal(t, reads(), want, "Get", i, "reads")
		}
	})
}

// GetMany of neighboring rows reads adjacent cblocks of a row file at once, and returns what Get
// returns.
func TestGetManyReadsNeighborsTogether(t *testing.T) {
	ctx, of := context.Background(), wide{rows: 1500, columns: 10, cell: 100, block: 16 << 10}
	table, reads := openWide(t, wideStore(t, of, oribi.RowFile(schema.FullRowFile)), oribi.Options{})
	must.Get(table.Get(ctx, 1499))(t)
	reads()
	var keys []any
	for k := 400; k < 500; k++ {
		keys = append(keys, k)
	}
	keys = append(keys, 900, 5000, 401)
	rows := must.Get(table.GetMany(ctx, keys))(t)
	if n := reads(); n > 3 {
		t.Errorf("%d reads for 100 neighbors and a row elsewhere, want at most 3", n)
	}
	for i, k := range keys {
		want, err := table.Get(ctx, k)
		if err != nil && !errors.Is(err, oribi.ErrNotFound) || !reflect.DeepEqual(rows[i], want) {
			t.Errorf("key %d: %v, want %v, %v", k, rows[i], want, err)
		}
	}
}

// With ReadAheadBytes, Open reads every page of the files that reads of all rows need, once, unless
// they are larger.
func TestOpenReadsAhead(t *testing.T) {
	mem := wideStore(t, wide{rows: 300, columns: 3, cell: 1000, block: 16 << 10}, oribi.RowFile(schema.FullRowFile))
	pages := func(ahead int64, read bool) map[string]bool {
		fsys := &readsFS{FS: mem, pages: map[string]bool{}}
		store := must.Get(oribi.Open("/wide", &oribi.Options{FS: fsys, ReadOnly: true, ReadAheadBytes: ahead}))(t)
		defer store.Close()
		if !read {
			return fsys.pages
		}
		table := must.Get(store.Table("wide"))(t)
		if n := counted(t, table.Scan(context.Background()).Batches()); n == 0 {
			t.Fatal("no rows")
		}
		for k := range 300 {
			must.Get(table.Get(context.Background(), k))(t)
		}
		return fsys.pages
	}
	plain, needed, all := pages(0, false), pages(0, true), pages(4<<20, false)
	if len(plain) >= len(needed)/2 {
		t.Errorf("Open reads %d pages, the rows need %d", len(plain), len(needed))
	}
	for page := range needed {
		must.Equal(t, all[page], true, "page", page, "was not read ahead")
	}
	must.Equal(t, len(pages(1<<20, false)), len(plain), "pages of a larger store were read")
}
