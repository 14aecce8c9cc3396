package carbondata

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/must"
)

func TestDefaultValues(t *testing.T) {
	for _, c := range []struct {
		column Column
		stored string // hex
		want   any
	}{
		{Column{Type: Byte}, "2d313238", int8(-128)},
		{Column{Type: Short}, "2d33", int16(-3)},
		{Column{Type: Int}, "32313437343833363437", int32(1<<31 - 1)},
		{Column{Type: Long}, "2d39", int64(-9)},
		{Column{Type: Float}, "312e3235", float32(1.25)},
		{Column{Type: Double}, "312e30453130", 1e10},
		{Column{Type: Double}, "4e614e", nil},
		{Column{Type: Double}, "496e66696e697479", nil},
		{Column{Type: Boolean}, "54525545", true},
		{Column{Type: Boolean}, "6e6f", false},
		{Column{Type: Decimal, Precision: 8, Scale: 2}, "0204d3", batch.Int128Of(1235)},
		{Column{Type: Decimal, Precision: 8, Scale: 4}, "0204d3", batch.Int128Of(123500)},
		{Column{Type: Date}, "31303733373539373830", Days(17957)},
		{Column{Type: Date}, "31", nil},
		{Column{Type: Timestamp}, "80000000000003e8", Micros(1000000)},
		{Column{Type: Timestamp}, "7fffffffffffffff", Micros(-1000)},
		{Column{Type: String}, "6162", "ab"},
		{Column{Type: String}, "", ""},
		{Column{Type: String}, hex.EncodeToString([]byte(nullText)), nil},
		{Column{Type: Varchar}, "6162", "ab"},
		{Column{Type: Binary}, "00ff", []byte{0, 255}},
		{Column{Type: Int}, "", nil},
	} {
		c.column.Default, _ = hex.DecodeString(c.stored)
		must.Equal(t, must.Get(defaultValue(&c.column))(t), c.want, c.column.TypeName(), c.stored)
		c.column.Default = nil
		if got, err := defaultValue(&c.column); got != nil || err != nil {
			t.Errorf("%s without a default: %v, %v", c.column.TypeName(), got, err)
		}
	}
	for _, c := range []struct {
		column Column
		stored string
	}{
		{Column{Type: Byte}, "128"}, {Column{Type: Short}, "x"}, {Column{Type: Long}, "9223372036854775808"},
		{Column{Type: Double}, "1.5x"}, {Column{Type: Date}, "-1"},
		{Column{Type: Timestamp}, "1234567"},
		{Column{Type: Decimal, Precision: 4, Scale: 1}, "\x02\x01"}, {Column{Type: Array}, "1"},
	} {
		c.column.Default = []byte(c.stored)
		must.Fail(t, must.Err(defaultValue(&c.column)), ErrCorrupt, c.column.Type, c.stored)
	}
}

// editFile changes the one file that matches.
func editFile(t *testing.T, pattern string, edit func([]byte) []byte) {
	t.Helper()
	paths := must.Get(filepath.Glob(pattern))(t)
	must.Equal(t, len(paths), 1, pattern)
	b, err := os.ReadFile(paths[0])
	if err == nil {
		err = os.WriteFile(paths[0], edit(b), 0o644)
	}
	must.Do(t, err)
}

// editSchema changes the columns of a schema file.
func editSchema(t *testing.T, dir string, edit func(columns []anyStruct) []anyStruct) {
	t.Helper()
	editFile(t, filepath.Join(dir, "Metadata", "schema"), func(b []byte) []byte {
		return editMessages(t, b, func(list []anyStruct) {
			table := list[0][infoTable].(anyStruct)
			var columns []anyStruct
			for _, c := range table[tableColumns].(anyList).elements {
				columns = append(columns, c.(anyStruct))
			}
			columns = edit(columns)
			elements := make([]any, len(columns))
			for i := range columns {
				elements[i] = columns[i]
			}
			table[tableColumns] = anyList{thrift.Struct, elements}
		})
	})
}

// newColumn returns the schema of a column that no file has.
func newColumn(name string, typ Type, dimension bool, ordinal int) anyStruct {
	return anyStruct{columnType: i32(int(typ)), columnName: []byte(name), columnID: []byte("id-of-" + name),
		4: true, 5: anyList{typ: thrift.I32},
		columnDimension: dimension, columnScale: i32(-1), columnPrecision: i32(-1),
		columnChildren: i32(0), columnOrdinal: i32(ordinal)}
}

// tableRows returns the rows of a table and its columns. The table must verify, and filters and
// batches must agree with the rows.
func tableRows(t *testing.T, dir string) (columns []Column, rows [][]any) {
	t.Helper()
	table := must.Get(Open(dir))(t)
	defer table.Close()
	for row, err := range table.Rows(context.Background(), ScanOptions{}) {
		must.Do(t, err)
		rows = append(rows, row)
	}
	must.Do(t, table.Verify(context.Background()))
	checkFilters(t, table, rows, 10)
	if got, _ := batchRows(t, table, ScanOptions{}, table.Schema()); !sameRows(got, rows) {
		t.Errorf("%d rows in batches, want %d", len(got), len(rows))
	}
	return table.Schema(), rows
}

func TestColumnsAddedToATable(t *testing.T) {
	_, before := tableRows(t, filepath.Join(goldenDir(t), "table"))
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	editSchema(t, dir, func(columns []anyStruct) []anyStruct {
		text := newColumn("added", String, true, 5)
		text[columnDefault] = []byte("new")
		number := newColumn("number", Long, false, 1) // before others
		number[columnDefault] = []byte("-7")
		dropped := newColumn("id", Int, false, 9) // dropped and added again
		dropped[columnInvisible] = true
		return append([]anyStruct{text}, append(columns, number, newColumn("empty", Double, false, 7), dropped)...)
	})
	columns, rows := tableRows(t, dir)
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "id name number day price note added empty" &&
		got != "id number name day price note added empty" {
		t.Errorf("columns %s", got)
	}
	must.Equal(t, len(rows), len(before))
	added := map[string]any{"added": "new", "number": int64(-7), "empty": nil}
	old := map[string]int{"id": 0, "name": 1, "day": 2, "price": 3, "note": 4}
	for n, row := range rows {
		for i, name := range names {
			want, isNew := added[name]
			if !isNew {
				want = before[n][old[name]]
			}
			must.Equal(t, row[i], want, n, name)
		}
	}
	rows[0][0] = "changed" // a row belongs to the caller
	if _, again := tableRows(t, dir); reflect.DeepEqual(again[0], rows[0]) {
		t.Error("a change to a row changed the table's")
	}
}

func TestColumnsDroppedFromATable(t *testing.T) {
	_, before := tableRows(t, filepath.Join(goldenDir(t), "table"))
	dir := filepath.Join(copyFolder(t, "table"), "db", "t")
	editSchema(t, dir, func(columns []anyStruct) []anyStruct {
		for _, c := range columns {
			if string(c[columnName].([]byte)) == "day" {
				c[columnInvisible] = true
			}
		}
		return columns
	})
	columns, rows := tableRows(t, dir)
	must.Equal(t, len(columns), 4)
	must.Equal(t, len(rows), len(before))
	for n, row := range rows {
		must.Equal(t, row, slices.Delete(slices.Clone(before[n]), 2, 3), n)
	}
}

func TestColumnsWithAWiderType(t *testing.T) {
	_, before := tableRows(t, filepath.Join(goldenDir(t), "table"))
	for _, precision := range []int{14, 18, 19, 38} {
		dir := filepath.Join(copyFolder(t, "table"), "db", "t")
		scale := min(4, precision-10)
		editSchema(t, dir, func(columns []anyStruct) []anyStruct {
			for _, c := range columns {
				switch string(c[columnName].([]byte)) {
				case "id":
					c[columnType] = i32(int(Long))
				case "price":
					c[columnPrecision], c[columnScale] = i32(precision), i32(scale)
				}
			}
			return columns
		})
		columns, rows := tableRows(t, dir)
		if want := fmt.Sprintf("DECIMAL(%d,%d)", precision, scale); columns[0].TypeName() != "LONG" ||
			columns[3].TypeName() != want {
			t.Errorf("%s and %s, want LONG and %s", columns[0].TypeName(), columns[3].TypeName(), want)
		}
		for n, row := range rows {
			want := slices.Clone(before[n])
			if id, ok := want[0].(int32); ok {
				want[0] = int64(id)
			}
			if price, ok := want[3].(batch.Int128); ok {
				want[3] = batch.Int128Of(int64(price.Lo) * map[int]int64{2: 1, 4: 100}[scale])
			}
			must.Equal(t, row, want, precision, scale, n)
		}
	}
}

func TestColumnsWithANarrowerTypeAreRefused(t *testing.T) {
	for name, change := range map[string]func(c anyStruct){
		"SHORT":                  func(c anyStruct) { c[columnType] = i32(int(Short)) },
		"DOUBLE":                 func(c anyStruct) { c[columnType] = i32(int(Double)) },
		"fewer digits":           func(c anyStruct) { c[columnPrecision] = i32(11) },
		"fewer before the point": func(c anyStruct) { c[columnPrecision], c[columnScale] = i32(13), i32(4) },
		"fewer after the point":  func(c anyStruct) { c[columnPrecision], c[columnScale] = i32(18), i32(1) },
		"a DECIMAL that is an INT": func(c anyStruct) {
			c[columnType], c[columnPrecision], c[columnScale] = i32(int(Decimal)), i32(12), i32(0)
		},
	} {
		dir := filepath.Join(copyFolder(t, "table"), "db", "t")
		column := "price"
		if !strings.HasPrefix(name, "fewer") {
			column = "id"
		}
		editSchema(t, dir, func(columns []anyStruct) []anyStruct {
			for _, c := range columns {
				if string(c[columnName].([]byte)) == column {
					change(c)
				}
			}
			return columns
		})
		must.Fail(t, must.Err(Open(dir)), ErrUnsupported, name)
	}
}

func TestNestedColumnsAreWidened(t *testing.T) {
	field := func(name, id string, typ Type) Column { return Column{Name: name, ID: id, Type: typ, nested: true} }
	of := func(fields ...Column) Column { return Column{Name: "s", Type: Struct, Children: fields} }
	list := func(e Column) Column { return Column{Name: "a", Type: Array, Children: []Column{e}} }
	for name, c := range map[string]struct {
		file, table Column
		want        bool
	}{
		"the same": {of(field("a", "1", Int)), of(field("a", "1", Int)), true},
		"a wider field": {of(field("a", "1", Int), field("b", "2", String)),
			of(field("a", "1", Long), field("b", "2", String)), true},
		"a renamed field":      {of(field("a", "1", Int)), of(field("b", "1", Int)), true},
		"another field":        {of(field("a", "1", Int)), of(field("b", "2", Int)), false},
		"no IDs":               {of(field("a", "", Int)), of(field("b", "", Int)), false},
		"fewer fields":         {of(field("a", "1", Int), field("b", "2", Int)), of(field("a", "1", Int)), false},
		"a narrower field":     {of(field("a", "1", Long)), of(field("a", "1", Int)), false},
		"a wider element":      {list(field("val", "1", Int)), list(field("val", "1", Long)), true},
		"another name":         {list(field("val0", "1", Int)), list(field("val7", "2", Int)), true},
		"an array of an array": {list(field("val", "1", Int)), list(list(field("val", "1", Int))), false},
	} {
		got := c.file.widen(&c.table)
		if got != c.want || got && c.file.Children[0].Type != c.table.Children[0].Type {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestWiderElements compares arrays read with a wider element type with the folder's own arrays.
func TestWiderElements(t *testing.T) {
	_, want := tableRows(t, filepath.Join(goldenDir(t), "array-types"))
	columns, rows := tableRows(t, alteredTables["wider elements"](t))
	wider := 0
	for n, row := range rows {
		for i, v := range row {
			e, old := columns[i].Type, want[n][i]
			if columns[i].Type == Array {
				e = columns[i].Children[0].Type
			}
			if e == Int {
				t.Errorf("column %q is not wider", columns[i].Name)
			}
			if e == Long || e == Decimal {
				wider++
				if v, old = fmt.Sprint(v), wideText(old); v != old {
					t.Fatalf("row %d: column %q: %v, want %v", n, columns[i].Name, v, old)
				}
			} else if !reflect.DeepEqual(v, old) {
				t.Fatalf("row %d: column %q: %v, want %v", n, columns[i].Name, v, old)
			}
		}
	}
	if wider < 100 || len(rows) != len(want) {
		t.Errorf("%d values, %d rows, want %d rows", wider, len(rows), len(want))
	}
}

// wideText returns the text of a value, decimals with three more digits.
func wideText(v any) string {
	switch v := v.(type) {
	case batch.Int128:
		for range 3 {
			v, _ = v.Mul10()
		}
		return v.String()
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, wideText(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

// TestColumnsOfOneIDAreRefused gives two columns of a table, or of its file, one ID.
func TestColumnsOfOneIDAreRefused(t *testing.T) {
	columns := func(second string) []Column {
		return []Column{{Name: "a", ID: "1", Type: Int}, {Name: "b", ID: second, Type: Int}}
	}
	for second, refused := range map[string]bool{"1": true, "2": false} {
		table := &Table{byID: true, columns: columns("2"), files: []tableFile{{File: &File{columns: columns(second)}}}}
		must.Equal(t, errors.Is(table.match(), ErrCorrupt), refused, second)
		must.Equal(t, errors.Is(uniqueIDs(columns(second)), ErrCorrupt), refused, second)
	}
}
