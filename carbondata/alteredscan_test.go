package carbondata

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// alteredTables are tables whose files differ from their schemas.
var alteredTables = map[string]func(t *testing.T) (dir string){
	"added and wider columns": func(t *testing.T) string {
		dir := filepath.Join(copyFolder(t, "table"), "db", "t")
		editSchema(t, dir, func(columns []anyStruct) []anyStruct {
			for _, c := range columns {
				switch string(c[columnName].([]byte)) {
				case "id":
					c[columnType] = i32(int(Long))
				case "price":
					c[columnPrecision], c[columnScale] = i32(20), i32(5)
				}
			}
			text, date := newColumn("added", String, true, 5), newColumn("date", Date, true, 6)
			text[columnDefault], date[columnDefault] = []byte("new"), []byte("1073759780")
			return append(columns, text, date, newColumn("empty", Double, false, 7),
				newColumn("bytes", Binary, true, 8))
		})
		return dir
	},
	"sort columns that are wider, in added files": func(t *testing.T) string {
		dir := filepath.Join(copyFolder(t, "table"), "db", "t")
		setStatus(t, dir, func(segments []map[string]any) (list []map[string]any) {
			for i, folder := range []string{"sdk-1.4.1-sorted", "sdk-2.0.1-sorted",
				"sort-int-first", "primitives-pages"} {
				list = append(list, map[string]any{"loadName": fmt.Sprint(i), "loadStatus": "Success",
					"path": copyFolder(t, folder)})
			}
			return list
		})
		editSchema(t, dir, func([]anyStruct) []anyStruct {
			number := newColumn("n", Long, false, 2)
			number[columnDefault] = []byte("-7")
			dec := newColumn("dec", Decimal, false, 3)
			dec[columnPrecision], dec[columnScale] = i32(30), i32(6)
			return []anyStruct{newColumn("name", String, true, 0), newColumn("id", Long, false, 1), number, dec,
				newColumn("day", Date, true, 4)}
		})
		return dir
	},
	"wider elements": func(t *testing.T) string {
		dir := filepath.Join(copyFolder(t, "table"), "db", "t")
		setStatus(t, dir, func([]map[string]any) []map[string]any {
			return []map[string]any{{"loadName": "0", "loadStatus": "Success", "path": copyFolder(t, "array-types")}}
		})
		editSchema(t, dir, func([]anyStruct) (columns []anyStruct) {
			header := goldenFile(t, "array-types")
			r := &thrift.Reader{In: header}
			for _, c := range anyValue(r, thrift.Struct).(anyStruct)[headerColumns].(anyList).elements {
				c := c.(anyStruct)
				switch Type(c[columnType].(anyInt).v) {
				case Int:
					c[columnType] = i32(int(Long))
				case Decimal:
					c[columnPrecision], c[columnScale] = i32(int(c[columnPrecision].(anyInt).v)+3),
						i32(int(c[columnScale].(anyInt).v)+3)
				}
				columns = append(columns, c)
			}
			return columns
		})
		return dir
	},
	"deleted rows": func(t *testing.T) string {
		return deletedTable(t,
			[]deletion{{segment: "0", block: "part-0-0_batchno0-0-0", times: []string{"7", "8"},
				rows: [][]int{{0, 1, 2, 3, 99, 100, 149}, {1, 148}}, status: "Success"},
				{segment: "3", block: "part-0-0_batchno0-0-3", times: []string{"9"},
					rows: [][]int{{200, 201, 202, 203, 204, 205, 206, 207, 208, 209}}, status: "Success"}})
	},
}

// TestScansOfAlteredTables compares filters, with and without bounds, dictionaries, and searches,
// and batches with the rows of tables whose files have other columns.
func TestScansOfAlteredTables(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(alteredTables)) {
		t.Run(name, func(t *testing.T) {
			table := must.Get(Open(alteredTables[name](t)))(t)
			defer table.Close()
			all := scanRows(t, table, ScanOptions{})
			columns := table.Schema()
			random := &randomFilters{rand.New(rand.NewPCG(11, uint64(i))), columns, all}
			selected, skipped := 0, int64(0)
			rounds := seedtest.Needed(60, 20)
			for range rounds {
				f := random.filter(3)
				want := random.selected(f)
				selected += len(want)
				stats := new(ScanStats)
				batches, _ := batchRows(t, table, ScanOptions{Filter: f}, columns)
				for how, got := range map[string][][]any{"rows": scanRows(t, table,
					ScanOptions{Filter: f, Stats: stats}),
					"rows without pruning": scanRows(t, table, ScanOptions{Filter: f, noPruning: true}),
					"batches":              batches} {
					if !sameRows(got, want) {
						t.Fatalf("%s: %s: %d rows, want %d", filterText(f), how, len(got), len(want))
					}
				}
				skipped += stats.Pages - stats.PagesRead
			}
			if t.Log(selected, skipped); selected < 16*rounds || skipped < int64(rounds)/2 && name != "wider elements" {
				t.Errorf("%d rows selected, %d pages skipped", selected, skipped)
			}
		})
	}
}

// TestProjectionsOfAlteredTables reads each column alone.
func TestProjectionsOfAlteredTables(t *testing.T) {
	for name, make := range alteredTables {
		table := must.Get(Open(make(t)))(t)
		defer table.Close()
		all := scanRows(t, table, ScanOptions{})
		for k, c := range table.Schema() {
			for n, row := range scanRows(t, table, ScanOptions{Columns: []string{c.Name}}) {
				must.Equal(t, row, all[n][k:k+1], name, c.Name, n)
			}
		}
	}
}
