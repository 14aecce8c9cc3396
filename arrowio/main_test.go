package arrowio

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/maintest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func TestMain(m *testing.M) { os.Exit(maintest.Run(m)) }

// openStore opens an empty store in memory.
func openStore(t testing.TB) *oribi.Store {
	t.Helper()
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true, RowSetBytes: 1 << 15}))(t)
	t.Cleanup(func() { store.Close() })
	return store
}

// scalarColumns returns a nullable column of each type but int128, and arrays of each type that
// arrays can have.
func scalarColumns() []schema.Column {
	var columns []schema.Column
	for _, name := range []string{"bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
		"uint32", "uint64", "float", "double",
		"string", "varchar(7)", "binary", "date", "timestamp", "decimal(1,0)", "decimal(9,4)", "decimal(10,10)",
		"decimal(18,2)", "decimal(19,3)", "decimal(38,38)"} {
		c := schema.Column{Name: name, Nullable: true}
		if err := c.ParseTypeName(name); err != nil {
			panic(err)
		}
		columns = append(columns, c)
		if c.Type.Width() <= 8 {
			c.Name = "array(" + name + ")"
			if err := c.ParseTypeName(c.Name); err != nil {
				panic(err)
			}
			columns = append(columns, c)
		}
	}
	return columns
}

// everyTable creates a table with a key of two columns and a column of each type, and writes rows
// at the limits of the types, random ones, and many NULLs. Some rows are on disk and some in
// memory. With the race detector, a large table has a third of the rows.
func everyTable(
	t testing.TB, store *oribi.Store, name string, rows int, seed uint64, options ...oribi.TableOption,
) *oribi.Table {
	t.Helper()
	columns := append([]schema.Column{{Name: "k", Type: schema.Int32},
		{Name: "name", Type: schema.Varchar, Length: 20}}, scalarColumns()...)
	columns = append(columns, schema.Column{Name: "set", Type: schema.Int64, Default: []byte{7, 0, 0, 0, 0, 0, 0, 0},
		Encoding: schema.Plain, Compression: schema.Zlib, BlockBytes: 4096, Comment: "é <&>"})
	s := must.Get(schema.New(columns, 2))(t)
	table := must.Get(store.CreateTable(name, s, options...))(t)
	if invariant.Race && rows >= 2000 {
		rows /= 3
	}
	fillRandom(t, store, table, rows, seed)
	return table
}

// fillRandom upserts random rows, and flushes at times.
func fillRandom(t testing.TB, store *oribi.Store, table *oribi.Table, rows int, seed uint64) {
	t.Helper()
	r, s := values.NewRand(seed), table.Schema()
	for done := 0; done < rows; {
		b := store.NewBatch()
		for range min(rows-done, 1+r.IntN(500)) {
			cells := make([][]byte, len(s.Columns))
			for i := range cells {
				cells[i] = randomCell(r, &s.Columns[i])
			}
			b.Cells(oribi.OpUpsert, table, cells, nil)
			done++
		}
		must.Get(b.Commit(context.Background()))(t)
		if r.IntN(4) == 0 {
			must.Do(t, table.Flush(context.Background()))
		}
	}
}

// randomCell returns a cell of a column, nil for NULL.
func randomCell(r *rand.Rand, c *schema.Column) []byte {
	switch {
	case c.Nullable && r.IntN(4) == 0:
		return nil
	case c.Type == schema.Double && r.IntN(4) == 0:
		return binary.LittleEndian.AppendUint64(nil,
			math.Float64bits([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)]))
	}
	return values.RandomCell(r, c)
}

// rowsOf returns the rows of a table in key order, as text.
func rowsOf(t testing.TB, table *oribi.Table, o ...oribi.ScanOption) []string {
	t.Helper()
	var rows []string
	for cells, err := range table.Scan(context.Background(), o...).Cells() {
		must.Do(t, err)
		rows = append(rows, rowText(cells))
	}
	return rows
}

// rowText returns cells as text that differs if they do, NULL from no bytes too: the length of each
// and its bytes as they are, which takes a tenth of the time of digits.
func rowText(cells [][]byte) string {
	var text []byte
	for _, cell := range cells {
		if cell == nil {
			text = append(text, "NULL|"...)
			continue
		}
		text = append(strconv.AppendInt(text, int64(len(cell)), 10), ':')
		text = append(append(text, cell...), '|')
	}
	return string(text)
}

// rowDigits returns cells as rowText does, with two digits for each byte.
func rowDigits(cells [][]byte) (text string) {
	for _, cell := range cells {
		if cell == nil {
			text += "NULL|"
		} else {
			text += hex.EncodeToString(cell) + "|"
		}
	}
	return text
}

// selectedRows appends the selected rows of a batch as text.
func selectedRows(dst []string, b *batch.RecordBatch) []string {
	cells := make([][]byte, len(b.Columns))
	for i := range b.Rows() {
		for c, v := range b.Columns {
			cells[c] = v.Cell(i)
		}
		dst = append(dst, rowText(cells))
	}
	return dst
}

// same fails the test if two lists of rows differ.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	must.Equal(t, len(got), len(want), what)
	for i := range got {
		must.Equal(t, got[i], want[i], what, i)
	}
}
