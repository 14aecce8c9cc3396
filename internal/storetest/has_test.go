package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

type document struct {
	Host string `oribi:"host,key"`
	Path string `oribi:"path,key"`
	Size int64  `oribi:"size"`
}

// openPages opens a store in memory with a table of pages.
func openPages(t *testing.T, options ...oribi.OpenOption) (*oribi.Store, *oribi.TableOf[document]) {
	t.Helper()
	store := must.Get(oribi.Open("/pages", &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 12}))(t)
	t.Cleanup(func() { store.Close() })
	pages := must.Get(oribi.OpenTable[document](store, "pages", options...))(t)
	return store, pages
}

// Has returns what Get finds: of rows in memory and in files, changed, deleted, inserted again, now
// and at earlier timestamps, and in transactions.
func TestHasFindsWhatGetFinds(t *testing.T) {
	for _, rowFile := range []bool{false, true} {
		t.Run(fmt.Sprint("row file=", rowFile), func(t *testing.T) {
			r, ctx := seedtest.Rand(t), context.Background()
			store, pages := openPages(t, oribi.RowFile(schema.RowFileOf(&rowFile)))
			at := []oribi.ReadOption{oribi.Latest()}
			key := func() oribi.Key { return oribi.Key{fmt.Sprint("host", r.IntN(3)), fmt.Sprint("/", r.IntN(40))} }
			check := func() {
				t.Helper()
				k, opt := key(), at[r.IntN(len(at))]
				_, missing := pages.Get(ctx, k, opt)
				got, err := pages.Has(ctx, k, opt)
				if err != nil || got != (missing == nil) || missing != nil && !errors.Is(missing, oribi.ErrNotFound) {
					t.Fatalf("%v: has %t, %v; get: %v", k, got, err, missing)
				}
			}
			for i := range 600 {
				k := key()
				p := document{k[0].(string), k[1].(string), int64(i)}
				tx := begin(t, store)
				rows := pages.In(tx)
				var err error
				if r.IntN(3) == 0 {
					err = tx.Row(oribi.OpDeleteIgnore, pages.Table, oribi.Row{"host": p.Host, "path": p.Path})
				} else {
					err = rows.Upsert(p)
				}
				for _, k := range []oribi.Key{k, key()} {
					_, missing := rows.Get(k)
					must.Equal(t, must.Get(rows.Has(k))(t), missing == nil, k, "in the transaction")
				}
				var ts mvcc.Timestamp
				if err == nil {
					ts, err = tx.Commit(oribi.NoSync)
				}
				switch {
				case err != nil:
				case i%50 == 10:
					at = append(at, oribi.AsOf(ts))
				case i%70 == 20:
					err = pages.Table.Flush(ctx)
				case i%200 == 30:
					err = pages.Table.Compact(ctx)
				}
				must.Do(t, err)
				check()
				check()
			}
		})
	}
}

func TestHasReturnsErrors(t *testing.T) {
	store, pages := openPages(t)
	ctx, cancel := context.WithCancel(context.Background())
	key := oribi.Key{"a", "/"}
	tx := begin(t, store)
	for _, c := range []struct {
		name string
		has  func() (bool, error)
		want error
	}{
		{"key of another form", func() (bool, error) { return pages.Has(ctx, "a") }, oribi.ErrRow},
		{"key of another form in a transaction", func() (bool, error) {
			return tx.Has(pages.Table, "a")
		}, oribi.ErrRow},
		{"future", func() (bool, error) { return pages.Has(ctx, key, oribi.AsOf(mvcc.Last)) }, oribi.ErrFuture},
		{"canceled", func() (bool, error) { cancel(); return pages.Has(ctx, key) }, context.Canceled},
		{"ended transaction", func() (bool, error) {
			tx.Rollback()
			return tx.Has(pages.Table, key)
		}, oribi.ErrTxEnded},
		{"closed store", func() (bool, error) {
			store.Close()
			return pages.Has(context.Background(), key)
		}, oribi.ErrClosed},
	} {
		if got, err := c.has(); got || !errors.Is(err, c.want) {
			t.Errorf("%s: %t, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestHasOfAnAbsentKeyDoesNotAllocate(t *testing.T) {
	if invariant.Race {
		t.Skip("the race detector drops values of pools")
	}
	ctx := context.Background()
	store, pages := openPages(t)
	b := store.NewBatch()
	for i := range 500 {
		pages.InBatch(b).Insert(document{"host", fmt.Sprint("/", i), 0})
	}
	ts, err := b.Commit(ctx, oribi.NoSync)
	if err == nil {
		err = pages.Table.Flush(ctx)
	}
	if err == nil { // some rows in memory, some deleted in files
		pages.InBatch(b).Insert(document{"host", "/in memory", 1})
		pages.InBatch(b).Delete(document{Host: "host", Path: "/7"})
		_, err = b.Commit(ctx, oribi.NoSync)
	}
	must.Do(t, err)
	asOf := []oribi.ReadOption{oribi.AsOf(ts)}
	for _, path := range []string{"/x", "/in", "/in memory, too", "/499/" + strings.Repeat("long ", 30)} {
		var key any = oribi.Key{"host", path}
		for _, opts := range [][]oribi.ReadOption{nil, asOf} {
			has := func() {
				must.Equal(t, must.Get(pages.Has(ctx, key, opts...))(t), false)
			}
			for range 600 { // until there is a key directory
				has()
			}
			must.Equal(t, testing.AllocsPerRun(100, has), 0, path, len(opts), "options: allocations")
			get := func() {
				must.Fail(t, must.Err2(pages.Table.GetCells(ctx, key)), oribi.ErrNotFound)
			}
			must.Equal(t, testing.AllocsPerRun(100, get), float64(1+len(path)/100),
				path, "allocations of GetCells: one for the error, and one for a long key")
		}
	}
	must.Equal(t, must.Get(pages.Has(ctx, oribi.Key{"host", "/7"}))(t), false, "a deleted row")
	must.Equal(t, must.Get(pages.Has(ctx, oribi.Key{"host", "/7"}, asOf...))(t), true, "the row before")
}

// The error of a missing row names its key, of any length, also after the call's memory was used
// again.
func TestMissingRowsAreNamed(t *testing.T) {
	ctx := context.Background()
	_, pages := openPages(t)
	missing := map[string]error{}
	for n := range 60 {
		path := strings.Repeat("p", n)
		_, missing[path] = pages.Table.Get(ctx, oribi.Key{"host", path})
	}
	for path, err := range missing {
		must.Fail(t, err, oribi.ErrNotFound, "path", path)
		must.Contain(t, err.Error(), fmt.Sprintf("%q", path), "path", path)
	}
}
