package carbondata

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// tableColumn returns a column of a table.
func tableColumn(t *testing.T, name, typ string) schema.Column {
	t.Helper()
	c := schema.Column{Name: name, Nullable: true}
	must.Do(t, c.ParseTypeName(typ))
	return c
}

func TestColumnOfTables(t *testing.T) {
	for _, c := range []struct{ typ, want, back string }{
		{"bool", "BOOLEAN", ""}, {"int8", "BYTE", ""}, {"int16", "SHORT", ""},
		{"int32", "INT", ""}, {"int64", "LONG", ""},
		{"uint8", "SHORT", "int16"}, {"uint16", "INT", "int32"},
		{"uint32", "LONG", "int64"}, {"uint64", "LONG", "int64"},
		{"float", "FLOAT", ""}, {"double", "DOUBLE", ""}, {"date", "DATE", ""}, {"timestamp", "TIMESTAMP", ""},
		{"decimal(9,2)", "DECIMAL(9,2)", ""}, {"decimal(18,0)", "DECIMAL(18,0)", ""},
		{"decimal(38,38)", "DECIMAL(38,38)", ""},
		{"string", "STRING", ""}, {"varchar(7)", "STRING", "string"}, {"binary", "BINARY", ""},
		{"array(uint8)", "ARRAY<SHORT>", "array(int16)"}, {"array(decimal(18,3))", "ARRAY<DECIMAL(18,3)>", ""},
		{"array(varchar(7))", "ARRAY<STRING>", "array(string)"},
	} {
		from := tableColumn(t, "a", c.typ)
		column, ok := ColumnOf(from)
		if !ok || column.Name != "a" || column.TypeName() != c.want {
			t.Errorf("%s: %+v, want %s", c.typ, column, c.want)
		}
		if c.back == "" {
			c.back = c.typ
		}
		if back, ok := column.TableType(); !ok || back.TypeName() != c.back {
			t.Errorf("%s: back as %s, want %s", c.typ, back.TypeName(), c.back)
		}
	}
	if column, ok := ColumnOf(tableColumn(t, "a", "int128")); ok {
		t.Errorf("int128: %+v", column)
	}
}

// A batch of three rows, of which the second is not selected, with a value that is refused in the
// third.
func TestAppendBatchNamesTheRefusedRow(t *testing.T) {
	array := func(element schema.Type, elements ...[]byte) []byte {
		return schema.AppendArray(nil, element, elements)
	}
	for _, c := range []struct {
		typ       string
		as        Type
		good, bad []byte
		want      string
	}{
		{"uint64", 0, make([]byte, 8), []byte{0, 0, 0, 0, 0, 0, 0, 0x80},
			"9223372036854775808 is out of the range of LONG"},
		{"timestamp", 0, make([]byte, 8), []byte{1, 0, 0, 0, 0, 0, 0, 0}, "1 microseconds"},
		{"string", 0, []byte("x"), []byte(nullText), "NULL"},
		{"string", Varchar, []byte("x"), nil, "NULL"},
		{"binary", 0, []byte{1}, []byte{}, "NULL"},
		{"decimal(3,0)", 0, make([]byte, 4), []byte{0xff, 0xff, 0, 0}, "65535 is out of the range of DECIMAL(3,0)"},
		{"decimal(19,0)", 0, make([]byte, 16), []byte{15: 0x7f}, "is out of the range of DECIMAL(19,0)"},
		{"array(int8)", 0, array(schema.Int8), array(schema.Int8, nil), "exactly one NULL"},
		{"array(timestamp)", 0, array(schema.Timestamp),
			array(schema.Timestamp, make([]byte, 8), []byte{1, 0, 0, 0, 0, 0, 0, 0}),
			"element 1: a time of 1 microseconds"},
		{"array(string)", 0, array(schema.String, []byte("x"), nil),
			array(schema.String, nil, nil, []byte(nullText)), "element 2: "},
	} {
		table := []schema.Column{tableColumn(t, "id", "int32"), tableColumn(t, "c", c.typ)}
		columns := make([]Column, 2)
		for i := range table {
			columns[i], _ = ColumnOf(table[i])
		}
		if c.as != 0 {
			columns[1].Type = c.as
		}
		for _, sorted := range []bool{false, true} {
			var o WriterOptions
			if sorted { // the first rows are out of order: the batch goes to the sorter
				o.SortColumns = []string{"id"}
			}
			dir := filepath.Join(t.TempDir(), "out")
			w := must.Get(Create(dir, columns, o))(t)
			b := batch.New(table, 3)
			b.Selection = batch.MakeBitmap(3)
			b.Selection.Set(0)
			b.Selection.Set(2)
			for i, cell := range [][]byte{c.good, c.bad, c.good} {
				b.Columns[0].SetCell(i, []byte{byte(9 - i), 0, 0, 0})
				b.Columns[1].SetCell(i, cell)
			}
			must.Do(t, w.AppendBatch(b), c.typ)
			b.Columns[1].SetCell(2, c.bad)
			err := w.AppendBatch(b)
			bad, ok := errors.AsType[*RowError](err)
			if !ok || bad.Row != 2 || bad.Column != "c" || !strings.Contains(bad.Err.Error(), c.want) {
				t.Errorf("%s, sorted %t: %v, want row 2, column c: %s", c.typ, sorted, err, c.want)
			}
			must.Equal(t, fmt.Sprint(w.AppendBatch(b)), err.Error(), c.typ)
			must.Do(t, w.Abort())
			if left := namesIn(t, filepath.Dir(dir)); len(left) > 0 {
				t.Errorf("%s: %v is left", c.typ, left)
			}
		}
	}
}

func TestFootersHaveProperties(t *testing.T) {
	dir := writeFolder(t, []Column{column("a", Int)},
		WriterOptions{WrittenBy: "test", Properties: map[string]string{"some.key": "é", "written_by": "else"}},
		[][]any{{int32(1)}})
	table := must.Get(Open(dir))(t)
	defer table.Close()
	if p := table.Files()[0].Properties; len(p) != 3 || p["some.key"] != "é" || p["written_by"] != "test" ||
		p["version"] != table.Files()[0].Writer {
		t.Errorf("%v", p)
	}
}
