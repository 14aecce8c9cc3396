package carbondata

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// scanRows returns all rows of a scan.
func scanRows(t testing.TB, table *Table, o ScanOptions) (rows [][]any) {
	t.Helper()
	for row, err := range table.Rows(context.Background(), o) {
		must.Do(t, err)
		rows = append(rows, row)
	}
	return rows
}

// smallFolders runs f for the golden folders of at most 5000 rows.
func smallFolders(t *testing.T, f func(t *testing.T, g goldenFolder, table *Table)) {
	goldenFolders(t, func(t *testing.T, g goldenFolder, dir string) {
		if g.Rows > 5000 {
			t.Skip("large")
		}
		table := must.Get(Open(dir))(t)
		defer table.Close()
		f(t, g, table)
	})
}

// TestProjectionReturnsTheNamedColumns reads the columns of each folder in the reverse order, one
// alone, and none.
func TestProjectionReturnsTheNamedColumns(t *testing.T) {
	smallFolders(t, func(t *testing.T, g goldenFolder, table *Table) {
		all := scanRows(t, table, ScanOptions{})
		var names []string
		for _, c := range table.Schema() {
			names = append(names, c.Name)
		}
		slices.Reverse(names)
		reversed := scanRows(t, table, ScanOptions{Columns: names})
		one := scanRows(t, table, ScanOptions{Columns: names[:1]})
		none := scanRows(t, table, ScanOptions{Columns: []string{}})
		if len(all) != g.Rows || len(reversed) != g.Rows || len(one) != g.Rows || len(none) != g.Rows {
			t.Fatalf("%d, %d, %d, and %d rows, want %d", len(all), len(reversed), len(one), len(none), g.Rows)
		}
		for i, row := range all {
			slices.Reverse(row)
			if !reflect.DeepEqual(row, reversed[i]) || !reflect.DeepEqual(row[:1], one[i]) || len(none[i]) != 0 {
				t.Fatalf("row %d: %v, %v, %v, want %v", i, reversed[i], one[i], none[i], row)
			}
		}
	})
}

func TestUnknownColumnIsRefused(t *testing.T) {
	table := must.Get(Open(goldenDir(t) + "/one-row"))(t)
	defer table.Close()
	for _, err := range table.Rows(context.Background(), ScanOptions{Columns: []string{"nothing"}}) {
		must.Fail(t, err, ErrNoColumn)
	}
}

func TestTableTypes(t *testing.T) {
	array := func(c Column) Column { return Column{Name: "a", Type: Array, Children: []Column{c}} }
	for want, c := range map[string]Column{
		"BOOL":            {Type: Boolean},
		"INT8":            {Type: Byte},
		"INT16":           {Type: Short},
		"INT32":           {Type: Int},
		"INT64":           {Type: Long},
		"FLOAT":           {Type: Float},
		"DOUBLE":          {Type: Double},
		"DECIMAL32":       {Type: Decimal, Precision: 9, Scale: 2},
		"DECIMAL64":       {Type: Decimal, Precision: 10, Scale: 10},
		"DECIMAL128":      {Type: Decimal, Precision: 38},
		"DATE":            {Type: Date},
		"UNIXTIME_MICROS": {Type: Timestamp},
		"STRING":          {Type: String},
		"BINARY":          {Type: Binary},
		"NESTED":          array(Column{Type: Decimal, Precision: 18, Scale: 3}),
	} {
		c.Name = "a"
		got, ok := c.TableType()
		if !ok || got.Type.String() != want || got.Name != "a" || !got.Nullable {
			t.Errorf("%s: %v %v, want %s", c.TypeName(), got, ok, want)
		}
		if c.Type == Decimal && (got.Precision != c.Precision || got.Scale != c.Scale) {
			t.Errorf("%s: precision %d, scale %d", c.TypeName(), got.Precision, got.Scale)
		}
		if c.Type == Array && (got.Element != schema.Decimal64 || got.Precision != 18 || got.Scale != 3) {
			t.Errorf("%s: %v", c.TypeName(), got)
		}
	}
	for _, c := range []Column{
		array(array(Column{Type: Int})),
		array(Column{Type: Decimal, Precision: 19}),
		{Type: Struct, Children: []Column{{Type: Int}}},
		{Type: Map, Children: []Column{{Type: Struct, Children: []Column{{Type: Int}, {Type: Int}}}}},
	} {
		if got, ok := c.TableType(); ok {
			t.Errorf("%s: %v, want none", c.TypeName(), got)
		}
	}
}
