package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// alterStore is a store that keeps all history, with a table of key k, a required number n and a
// text s that may be NULL.
func alterStore(t *testing.T) (*oribi.Store, *oribi.Table, func() (*oribi.Store, *oribi.Table)) {
	t.Helper()
	mem := vfs.NewMem()
	open := func() *oribi.Store {
		store, err := oribi.Open("/alter",
			&oribi.Options{FS: mem, Clock: mvcc.NewLogicalClock(mvcc.Min), History: oribi.HistoryForever, Manual: true})
		must.Do(t, err)
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := open()
	table := tableOf(t, store, "t", "k*:int64 n:int32 s:string?")
	return store, table, func() (*oribi.Store, *oribi.Table) {
		must.Do(t, store.Close())
		store = open()
		table := must.Get(store.Table("t"))(t)
		return store, table
	}
}

func putRow(t *testing.T, store *oribi.Store, table *oribi.Table, op oribi.Op, row oribi.Row) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	b.Row(op, table, row)
	return must.Get(b.Commit(context.Background()))(t)
}

func alter(t *testing.T, table *oribi.Table, changes ...oribi.Alteration) {
	t.Helper()
	must.Do(t, table.Alter(context.Background(), changes...))
}

// wantRows compares the result of a scan with want, and reads each row by its key.
func wantRows(t *testing.T, what string, table *oribi.Table, want []oribi.Row, opts ...oribi.ReadOption) {
	t.Helper()
	at := oribi.Latest()
	for _, o := range opts {
		at = o
	}
	var got []oribi.Row
	for row, err := range table.Scan(context.Background(), at).Rows() {
		must.Do(t, err, what)
		got = append(got, row)
	}
	if !slices.EqualFunc(got, want, maps.Equal) {
		t.Fatalf("%s: got %v\nwant %v", what, got, want)
	}
	for _, row := range want {
		for range 2 { // the second may come from the cache
			got := must.Get(table.Get(context.Background(), row[table.Schema().Columns[0].Name], at))(t)
			must.Equal(t, got, row, what)
		}
	}
}

// The schema changes after a write batch is filled and before it is committed: cells follow their
// columns by ID.
func TestWriteBatchFilledBeforeAlterFollowsColumnIDs(t *testing.T) {
	ctx := context.Background()
	store, table, _ := alterStore(t)
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "n": 10, "s": "one"})
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "n": 20, "s": "two"})
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 3, "n": 30, "s": "three"})
	b.Upsert(table, oribi.Row{"k": 2, "s": "ii"})
	b.Upsert(table, oribi.Row{"k": 1, "n": 11})
	b.Update(table, oribi.Row{"k": 2, "s": "II"})
	b.Vectors(oribi.OpInsert, table, []*batch.Vector{
		{Type: schema.Int64, Len: 1, Data: []byte{4, 0, 0, 0, 0, 0, 0, 0}},
		{Type: schema.Int32, Len: 1, Data: []byte{40, 0, 0, 0}}, nil})
	nullable := func(name string) oribi.Alteration {
		return oribi.AddColumn(schema.Column{Name: name, Type: schema.String, Nullable: true})
	}
	alter(t, table, oribi.DropColumn("s"), nullable("s"), oribi.RenameColumn("n", "m"),
		oribi.AddColumn(schema.Column{Name: "n", Type: schema.Int32, Default: []byte{5, 0, 0, 0}}))
	b.Insert(table, oribi.Row{"k": 5, "n": 50}) // by the schema that the batch started with
	if s := b.Schema(table); s.Index("m") >= 0 || table.Schema().Index("m") < 0 {
		t.Error("the batch's schema has changed")
	}
	must.Get(b.Commit(ctx))(t)
	row := func(k, m int) oribi.Row { return oribi.Row{"k": int64(k), "m": int32(m), "n": int32(5), "s": nil} }
	want := []oribi.Row{row(1, 11), row(2, 20), row(3, 30), row(4, 40), row(5, 50)}
	wantRows(t, "committed", table, want)
	b.Insert(table, oribi.Row{"k": 6, "m": 60, "n": 6, "s": "six"}) // a committed batch starts empty
	must.Get(b.Commit(ctx))(t)
	want = append(want, oribi.Row{"k": int64(6), "m": int32(60), "n": int32(6), "s": "six"})
	must.Do(t, table.Flush(ctx))
	wantRows(t, "flushed", table, want)

	// A row that lacks a column which the new schema requires is refused, and so is a row whose
	// required column has no value.
	b.Insert(table, oribi.Row{"k": 7, "m": 70})
	b.Upsert(table, oribi.Row{"k": 1, "n": 1})
	alter(t, table, oribi.SetDefault("n", nil),
		oribi.AddColumn(schema.Column{Name: "r", Type: schema.Bool, Default: []byte{1}}), oribi.SetDefault("r", nil))
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrRow, "a row without a required column")
	b.Reset()
	// An update of dropped columns alone does not change an existing row, and is refused for an
	// absent one.
	b.Update(table, oribi.Row{"k": 6, "s": "gone"})
	alter(t, table, oribi.DropColumn("s"))
	must.Do(t, must.Err(b.Commit(ctx)))
	b.Update(table, oribi.Row{"k": 66, "n": 1})
	alter(t, table, oribi.DropColumn("n"))
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrNotFound)
}

// A running scan keeps the columns that it started with, even if they are dropped and the blocks of
// their files are removed.
func TestRunningScanKeepsItsColumns(t *testing.T) {
	ctx := context.Background()
	store, table, _ := alterStore(t)
	for k := range 3 {
		putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": k, "n": 10 * k, "s": fmt.Sprint("text ", k)})
		if k < 2 {
			must.Do(t, table.Flush(ctx))
		}
	}
	putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 0, "s": "text zero"})
	var got []string
	for row := range must.All(t, table.Scan(ctx).Rows()) {
		if len(got) == 0 {
			alter(t, table, oribi.DropColumn("s"), oribi.RenameColumn("n", "s"))
			must.Do(t, table.Compact(ctx))
			alter(t, table, oribi.SetComment("and again"))
			putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "s": -1})
			must.Do(t, table.Compact(ctx))
		}
		got = append(got, fmt.Sprintf("%v %v %v", row["k"], row["n"], row["s"]))
	}
	must.Equal(t, got, []string{"0 0 text zero", "1 10 text 1", "2 20 text 2"})
}

func TestTypedTableRebindsFieldsAfterAlter(t *testing.T) {
	type record struct {
		K int64
		S *string
	}
	ctx := context.Background()
	store, table, _ := alterStore(t)
	alter(t, table, oribi.SetDefault("n", 1))
	typed := must.Get(oribi.Typed[record](table))(t)
	text := "text"
	b := store.NewBatch()
	typed.InBatch(b).Insert(record{1, &text})
	alter(t, table, oribi.DropColumn("n"),
		oribi.AddColumn(schema.Column{Name: "x", Type: schema.Int64, Nullable: true}))
	typed.InBatch(b).Insert(record{2, &text})
	must.Get(b.Commit(ctx))(t)
	typed.InBatch(b).Insert(record{3, &text})
	must.Get(b.Commit(ctx))(t)
	n := 0
	for r, err := range typed.Scan(ctx) {
		if n++; err != nil || r.K != int64(n) || *r.S != text {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if r, err := typed.Get(ctx, 2); n != 3 || err != nil || *r.S != text {
		t.Errorf("%d rows, %+v, %v", n, r, err)
	}
	test := oribi.Eq("s", text)
	alter(t, table, oribi.DropColumn("s"),
		oribi.AddColumn(schema.Column{Name: "s", Type: schema.Int32, Nullable: true}))
	must.Fail(t, must.Err(typed.Get(ctx, 2)), oribi.ErrSchema, "a field whose column has another type")
	must.Fail(t, must.Err(table.Count(ctx, oribi.Where(test))), oribi.ErrSchema,
		"a predicate whose column has another type")
	typed.InBatch(b).Insert(record{4, &text})
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrSchema, "an insert by a field whose column has another type")
}

// Writers and readers wait only for the alteration itself and never see a value in a column that it
// was not written to: n is always ten times the key, under any name, d is never below its default,
// and the text of a dropped column does not appear.
func TestAlterWithConcurrentWritersAndReaders(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, table, _ := alterStore(t)
	var wg sync.WaitGroup
	var written sync.Map
	for w := range 2 {
		wg.Go(func() {
			b := store.NewBatch()
			for k := w; ctx.Err() == nil && k < 4000; k += 2 {
				s := b.Schema(table)
				row := oribi.Row{"k": k, s.Columns[1].Name: 10 * k}
				if s.Index("s") >= 0 {
					row["s"] = "gone"
				}
				b.Upsert(table, row)
				if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
					t.Error(err)
					return
				}
				written.Store(k, true)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				for b, err := range table.Scan(ctx).Batches() {
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
						k, n := int64(binary.LittleEndian.Uint64(b.Columns[0].Cell(i))),
							int32(binary.LittleEndian.Uint32(b.Columns[1].Cell(i)))
						if int64(n) != 10*k {
							t.Errorf("key %d: %s is %d", k, b.Schema[1].Name, n)
							return
						}
						for c := 2; c < len(b.Columns); c++ {
							if cell := b.Columns[c].Cell(i); b.Schema[c].Name == "t" && cell != nil ||
								b.Schema[c].Name == "d" && cell[0] != 7 {
								t.Errorf("key %d: %s is %q", k, b.Schema[c].Name, cell)
								return
							}
						}
					}
				}
			}
		})
	}
	names := []string{"n", "m"}
	for i := range 30 {
		alter(t, table, oribi.RenameColumn(names[i%2], names[(i+1)%2]))
		switch i % 3 {
		case 0:
			alter(t, table, oribi.DropColumn("s"),
				oribi.AddColumn(schema.Column{Name: "t", Type: schema.String, Nullable: true}))
		case 1:
			alter(t, table, oribi.DropColumn("t"),
				oribi.AddColumn(schema.Column{Name: "d", Type: schema.Int64, Default: []byte{7, 0, 0, 0, 0, 0, 0, 0}}))
		case 2:
			alter(t, table, oribi.DropColumn("d"),
				oribi.AddColumn(schema.Column{Name: "s", Type: schema.String, Nullable: true}))
			must.Do(t, table.Compact(ctx))
		}
	}
	cancel()
	wg.Wait()
	want := int64(0)
	written.Range(func(any, any) bool { want++; return true })
	must.Equal(t, must.Get(table.Count(context.Background()))(t), want, "rows")
}
