package storetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// cellRow is a row of a table of any type.
type cellRow struct {
	K int32      `oribi:"k,key"`
	V oribi.Cell `oribi:"v"`
	N oribi.Cell `oribi:"n"`
}

// cellTable is a table with columns k, v, and n, and its store.
type cellTable struct {
	*oribi.Table
	store *oribi.Store
}

// cellWrites are the calls that write a Cell to column v of row 1. Each call that takes rows with
// keys also writes it to n. exists reports whether the call needs row 1; it has none otherwise.
var cellWrites = map[string]struct {
	exists bool
	write  func(ctx context.Context, t cellTable, cell oribi.Cell) error
}{
	"Batch.Insert":       {false, cellOp(oribi.OpInsert)},
	"Batch.InsertIgnore": {false, cellOp(oribi.OpInsertIgnore)},
	"Batch.Upsert":       {true, cellOp(oribi.OpUpsert)},
	"Batch.UpsertIgnore": {true, cellOp(oribi.OpUpsertIgnore)},
	"Batch.Update":       {true, cellOp(oribi.OpUpdate)},
	"Batch.UpdateIgnore": {true, cellOp(oribi.OpUpdateIgnore)},
	"Batch.Cells": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		b := t.store.NewBatch()
		b.Cells(oribi.OpUpsert, t.Table, [][]byte{{1, 0, 0, 0}, cell, cell}, nil)
		return must.Err(b.Commit(ctx))
	}},
	"Batch.UpdateIf": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		b := t.store.NewBatch()
		b.UpdateIf(t.Table, oribi.Row{"k": 1, "v": cell, "n": &cell}, oribi.NotNull("v"))
		return must.Err(b.Commit(ctx))
	}},
	"Table.UpdateWhere": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		return must.Err(t.UpdateWhere(ctx, oribi.Row{"v": cell, "n": cell}))
	}},
	"Tx.Upsert": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		return t.store.Update(ctx, func(tx *oribi.Tx) error {
			return tx.Upsert(t.Table, oribi.Row{"k": 1, "v": cell, "n": cell})
		})
	}},
	"Tx.Cells": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		return t.store.Update(ctx, func(tx *oribi.Tx) error {
			return tx.Cells(oribi.OpUpdate, t.Table, [][]byte{{1, 0, 0, 0}, cell, cell}, nil)
		})
	}},
	"TxOf.Insert": {false, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		typed, err := oribi.Typed[cellRow](t.Table)
		if err != nil {
			return err
		}
		return t.store.Update(ctx, func(tx *oribi.Tx) error { return typed.In(tx).Insert(cellRow{1, cell, cell}) })
	}},
	"TableOf.Put": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		typed, err := oribi.Typed[cellRow](t.Table)
		if err != nil {
			return err
		}
		return must.Err(typed.Put(ctx, cellRow{1, cell, cell}))
	}},
	"TableOf.Ingest": {false, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		typed, err := oribi.Typed[cellRow](t.Table)
		if err != nil {
			return err
		}
		_, _, err = typed.Ingest(ctx, slices.Values([]cellRow{{1, cell, cell}}))
		return err
	}},
	"Patch": {true, func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		return must.Err(oribi.Patch(ctx, t.Table, struct {
			K    int32 `oribi:",key"`
			V, N *oribi.Cell
		}{1, &cell, &cell}))
	}},
}

func cellOp(op oribi.Op) func(ctx context.Context, t cellTable, cell oribi.Cell) error {
	return func(ctx context.Context, t cellTable, cell oribi.Cell) error {
		b := t.store.NewBatch()
		b.Row(op, t.Table, oribi.Row{"k": 1, "v": cell, "n": cell})
		return must.Err(b.Commit(ctx))
	}
}

// malformedCells returns bytes that are no cells of a column's type.
func malformedCells(c *schema.Column) [][]byte {
	switch {
	case c.Type == schema.Array:
		element := c.Elements()
		out := [][]byte{{}, {1}, {1, 0}, {0, 0, 0}, {1, 0, 2},
			schema.AppendArray(nil, c.Element, make([][]byte, 3))[:2]}
		for _, cell := range malformedCells(&element) {
			if w := element.Type.Width(); w == 0 || len(cell) == w {
				out = append(out, schema.AppendArray(nil, c.Element, [][]byte{nil, cell}))
			}
		}
		return append(out, append(schema.AppendArray(nil, c.Element, [][]byte{nil}), 0))
	case c.Type == schema.String:
		return [][]byte{{0xff}, []byte("a\xc3")}
	case c.Type == schema.Varchar:
		return [][]byte{{0xff}, []byte("abc")}
	case c.Type == schema.Binary:
		return nil
	}
	w := c.Type.Width()
	out := [][]byte{{}, make([]byte, w-1), make([]byte, w+1)}
	switch {
	case c.Type == schema.Bool:
		out = append(out, []byte{2})
	case c.Type == schema.Date:
		out = append(out, []byte{0xff, 0xff, 0xff, 0x7f}, []byte{0, 0, 0, 0x80})
	case c.Type.Decimal():
		largest := bytes.Repeat([]byte{0xff}, w)
		largest[w-1] = 0x7f
		lowest := make([]byte, w)
		lowest[w-1] = 0x80
		out = append(out, largest, lowest)
	}
	return out
}

// Every call that writes takes a Cell of the column's type, and stores its bytes. Bytes that are no
// cell of the type are refused and never stored. The same is true of predicates, keys, and
// defaults.
func TestCellsOfAllTypesInAllCalls(t *testing.T) {
	for _, c := range typeCases {
		t.Run("type="+c.name, func(t *testing.T) { checkCells(t, c) })
	}
}

func checkCells(t *testing.T, c typeCase) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/cells", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	v := schema.Column{Name: "v"}
	must.Do(t, v.ParseTypeName(c.name))
	n := v
	n.Name, n.Nullable = "n", true
	created := must.Get(store.CreateTable("t", mustSchema(t, schema.Column{Name: "k", Type: schema.Int32}, v, n)))(t)
	table := cellTable{created, store}
	var cells []oribi.Cell // of the values of the case
	b := store.NewBatch()
	for i, value := range c.rows {
		b.Insert(created, oribi.Row{"k": 10 + i, "v": value})
	}
	must.Get(b.Commit(ctx))(t)
	for i := range c.rows {
		_, row := must.Get2(table.GetCells(ctx, 10+i))(t)
		cells = append(cells, row[1])
	}
	must.Get(table.DeleteWhere(ctx))(t)
	stored := func() [][]byte {
		_, row, err := table.GetCells(ctx, 1)
		if err != nil && !errors.Is(err, oribi.ErrNotFound) {
			t.Fatal(err)
		}
		return row
	}
	for name, call := range cellWrites {
		begin := func() {
			must.Get(table.DeleteWhere(ctx))(t)
			b.Reset()
			if call.exists {
				b.Insert(created, oribi.Row{"k": 1, "v": cells[0]})
			}
			must.Get(b.Commit(ctx))(t)
		}
		for i, cell := range cells {
			begin()
			if err := call.write(ctx, table, cell); err != nil {
				t.Errorf("%s: %x: %v", name, cell, err)
				continue
			}
			if row := stored(); row == nil || !bytes.Equal(row[1], cell) ||
				!bytes.Equal(row[2], cell) || row[2] == nil {
				t.Errorf("%s: %x is stored as %x", name, cell, row)
			}
			got, err := oribi.GetAs[cellRow](ctx, created, 1)
			if err != nil || !bytes.Equal(got.V, cell) || !bytes.Equal(got.N, cell) {
				t.Errorf("%s: value %d: %x is read as %x, %v", name, i, cell, got, err)
			}
		}
		for _, cell := range malformedCells(&v) {
			begin()
			before := stored()
			if err := call.write(ctx, table, cell); !errors.Is(err, oribi.ErrRow) &&
				(name != "Table.UpdateWhere" || !errors.Is(err, oribi.ErrSchema)) {
				t.Errorf("%s: %x: %v", name, cell, err)
			}
			if after := stored(); !slices.EqualFunc(before, after, bytes.Equal) {
				t.Errorf("%s: %x changes the row to %x", name, cell, after)
			}
		}
		begin()
		must.Refuse(t, call.write(ctx, table, nil), name, "NULL in a column that is not nullable")
	}
	checkCellSchemas(t, table, &v, cells)
	checkCellReads(t, table, &v, cells)
}

// checkCellSchemas checks cells that are defaults.
func checkCellSchemas(t *testing.T, table cellTable, v *schema.Column, cells []oribi.Cell) {
	t.Helper()
	ctx := context.Background()
	for _, cell := range cells {
		if err := table.Alter(ctx, oribi.SetDefault("n", cell)); err != nil {
			t.Errorf("SetDefault: %x: %v", cell, err)
		}
		if got := table.Schema().Columns[2].Default; !bytes.Equal(got, cell) {
			t.Errorf("SetDefault: %x is stored as %x", cell, got)
		}
	}
	for _, cell := range malformedCells(v) {
		added := *v
		added.Name, added.Default = "added", cell
		for _, change := range []oribi.Alteration{oribi.SetDefault("n", oribi.Cell(cell)),
			oribi.SetDefaultCell("n", cell), oribi.AddColumn(added)} {
			must.Fail(t, table.Alter(ctx, change), oribi.ErrSchema, "a default of", cell)
		}
	}
}

// checkCellReads checks cells in predicates and keys.
func checkCellReads(t *testing.T, table cellTable, v *schema.Column, cells []oribi.Cell) {
	t.Helper()
	ctx := context.Background()
	must.Get(table.DeleteWhere(ctx))(t)
	b := table.store.NewBatch()
	for i, cell := range cells {
		b.Insert(table.Table, oribi.Row{"k": i, "v": cell})
	}
	must.Get(b.Commit(ctx))(t)
	predicates := func(cell oribi.Cell) []oribi.Predicate {
		return []oribi.Predicate{oribi.Eq("v", cell), oribi.In("v", cell), oribi.In[any]("v", &cell),
			oribi.Between("v", cell, cell), oribi.Not(oribi.Ne("v", cell))}
	}
	for i, cell := range cells {
		for _, p := range predicates(cell) {
			n, err := table.Count(ctx, oribi.Where(p))
			switch {
			case v.Type == schema.Array && !errors.Is(err, oribi.ErrSchema):
				t.Errorf("%v: %v", p, err)
			case v.Type != schema.Array && (err != nil || n != 1):
				t.Errorf("%v: %d rows, %v", p, n, err)
			}
			b.Reset()
			b.If(table.Table, oribi.Row{"k": i}, p)
			b.DeleteIf(table.Table, oribi.Row{"k": i}, p)
			if v.Type == schema.Array {
				must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrSchema, p, "a condition")
			} else if b.Err() != nil {
				t.Errorf("%v: a condition: %v", p, b.Err())
			}
		}
	}
	for _, cell := range malformedCells(v) {
		for _, p := range predicates(cell) {
			must.Fail(t, must.Err(table.Count(ctx, oribi.Where(p))), oribi.ErrSchema, p)
		}
		must.Fail(t, must.Err(oribi.BloomBytes(v, oribi.Cell(cell))), oribi.ErrSchema, "BloomBytes of", cell)
	}
	if v.Type.Keyable() {
		checkCellKeys(t, table.store, *v, cells)
	}
}

// checkCellKeys checks cells that are keys.
func checkCellKeys(t *testing.T, store *oribi.Store, v schema.Column, cells []oribi.Cell) {
	t.Helper()
	ctx := context.Background()
	table := must.Get(store.CreateTable("keys",
		mustSchema(t, v, schema.Column{Name: "x", Type: schema.Int32, Nullable: true})))(t)
	b := store.NewBatch()
	for i, cell := range cells {
		b.Insert(table, oribi.Row{"v": cell, "x": i})
	}
	must.Get(b.Commit(ctx))(t)
	for i, cell := range cells {
		for _, key := range []any{cell, &cell, oribi.Key{cell}, oribi.Row{"v": cell}, [][]byte{cell}} {
			row, err := table.Get(ctx, key)
			if err != nil || row["x"] != int32(i) {
				t.Errorf("key %x as a %T: %v, %v", cell, key, row, err)
			}
		}
	}
	for _, cell := range malformedCells(&v) {
		for _, key := range []any{oribi.Cell(cell), oribi.Key{oribi.Cell(cell)},
			oribi.Row{"v": oribi.Cell(cell)}, [][]byte{cell}} {
			if _, err := table.Get(ctx, key); !errors.Is(err, oribi.ErrRow) {
				t.Errorf("key %x as a %T: %v", cell, key, err)
			}
			if _, err := table.Count(ctx, oribi.From(key)); !errors.Is(err, oribi.ErrRow) {
				t.Errorf("From %x as a %T: %v", cell, key, err)
			}
		}
		b.Reset()
		b.Insert(table, oribi.Row{"v": oribi.Cell(cell)})
		must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrRow, "an insert of key", cell)
	}
}

// The elements of an array may be cells, too. An array of cells of more elements than fit is
// refused.
func TestCellsAsElements(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/elements", &oribi.Options{FS: vfs.NewMem(), CellLimit: 4 << 20}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int32 a:array(uint8)?")
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "a": []oribi.Cell{{7}, nil, {9}}})
	b.Insert(table, oribi.Row{"k": 2, "a": [2]uint8{7, 9}})
	b.Insert(table, oribi.Row{"k": 3, "a": make([]byte, math.MaxUint16)})
	must.Get(b.Commit(ctx))(t)
	for i, want := range [][]byte{{3, 0, 5, 7, 9}, {2, 0, 3, 7, 9}} {
		_, cells, err := table.GetCells(ctx, i+1)
		if err != nil || !bytes.Equal(cells[1], want) {
			t.Errorf("row %d: %x, %v, want %x", i+1, cells, err, want)
		}
	}
	for _, a := range []any{[]oribi.Cell{{7, 8}}, []oribi.Cell{{}}, make([]byte, math.MaxUint16+1)} {
		b.Reset()
		b.Upsert(table, oribi.Row{"k": 1, "a": a})
		if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrRow) {
			t.Errorf("%T: %v", a, err)
		}
	}
}
