package arrowio

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// roundTrip exports a table in each format, and reads the file and ingests it into another table.
func roundTrip(t *testing.T, store *oribi.Store, table *oribi.Table) {
	t.Helper()
	want := rowsOf(t, table)
	for format := range formats {
		mem := checked(t)
		f, rows := opened(t, format, exported(t, format, table.Scan(context.Background()), mem), mem, ReadOptions{})
		s := must.Get(f.Definition().Table())(t)
		into := must.Get(store.CreateTable("from "+format, s))(t)
		if _, n, err := Ingest(context.Background(), into, rows); err != nil || n != int64(len(want)) {
			t.Fatalf("%s: %d rows, want %d: %v", format, n, len(want), err)
		}
		same(t, format, rowsOf(t, into), want)
		rows.Release()
		f.Close()
	}
}

// Tables of unusual shapes go through each format.
func TestUnusualTables(t *testing.T) {
	wide := func(n int) (columns []schema.Column) {
		all := scalarColumns()
		for i := range n {
			c := all[i%len(all)]
			c.Name = fmt.Sprint("column ", i)
			columns = append(columns, c)
		}
		return columns
	}
	keys := []schema.Column{{Name: "a", Type: schema.Int64}, {Name: "b", Type: schema.String},
		{Name: "c", Type: schema.Binary}}
	rows := 300
	if invariant.Race {
		rows = 50
	}
	for _, c := range []struct {
		name    string
		columns []schema.Column // without the key columns
		keys    []schema.Column
		rows    int
		nulls   bool // all cells outside the key are NULL
	}{
		{name: "300 columns", columns: wide(296), keys: keys, rows: rows},
		{name: "300 columns, empty", columns: wide(296), keys: keys},
		{name: "only keys", keys: keys, rows: 5000},
		{name: "one key", keys: keys[1:2], rows: 5000},
		{name: "only keys, empty", keys: keys},
		{name: "NULLs", columns: wide(38), keys: keys[:1], rows: 5000, nulls: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := must.Get(schema.New(append(append([]schema.Column(nil), c.keys...), c.columns...), len(c.keys)))(t)
			store := openStore(t)
			table := must.Get(store.CreateTable("t", s))(t)
			r, b := values.NewRand(5), store.NewBatch()
			for range c.rows {
				cells := make([][]byte, len(s.Columns))
				for i := range cells {
					if i < len(c.keys) || !c.nulls {
						cells[i] = randomCell(r, &s.Columns[i])
					}
				}
				b.Cells(oribi.OpUpsert, table, cells, nil)
			}
			must.Get(b.Commit(context.Background()))(t)
			must.Do(t, table.Flush(context.Background()))
			roundTrip(t, store, table)
		})
	}
}

// Cells of a megabyte go through each format: all different, and all alike.
func TestLargeCells(t *testing.T) {
	const size = 1 << 20
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true, CellLimit: size}))(t)
	defer store.Close()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "s", Type: schema.String},
		{Name: "b", Type: schema.Binary, Nullable: true}}, 1))(t)
	for _, alike := range []bool{false, true} {
		table := must.Get(store.CreateTable(fmt.Sprint("alike ", alike), s))(t)
		for k := range 10 {
			word := k
			if alike {
				word = 0
			}
			text, b := bytes.Repeat([]byte{byte('a' + word)}, size-word), store.NewBatch()
			row := oribi.Row{"k": k, "s": string(text), "b": text}
			if k%5 == 0 {
				row["b"] = nil
			}
			b.Insert(table, row)
			must.Get(b.Commit(context.Background()))(t)
		}
		want := rowsOf(t, table)
		for format := range formats {
			mem := checked(t)
			data := exported(t, format, table.Scan(context.Background()), mem)
			f, rows := opened(t, format, data, mem, ReadOptions{})
			same(t, format+", records", recordRows(t, rows), want)
			rows.Release()
			f.Close()
			f, rows = opened(t, format, data, mem, ReadOptions{})
			var got []string
			for b, err := range rows.Batches() {
				must.Do(t, err)
				got = selectedRows(got, b)
			}
			same(t, format+", batches", got, want)
			rows.Release()
			f.Close()
		}
	}
}
