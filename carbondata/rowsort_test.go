package carbondata

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// sortTestColumns has a column of each type, nested ones included.
var sortTestColumns = []Column{
	{Name: "text", Type: String}, {Name: "long", Type: Long}, {Name: "int", Type: Int}, {Name: "short", Type: Short},
	{Name: "byte", Type: Byte}, {Name: "bool", Type: Boolean}, {Name: "day", Type: Date},
	{Name: "time", Type: Timestamp},
	{Name: "float", Type: Float}, {Name: "double", Type: Double}, {Name: "decimal", Type: Decimal, Precision: 38},
	{Name: "varchar", Type: Varchar}, {Name: "bytes", Type: Binary},
	{Name: "list", Type: Array, Children: []Column{{Type: Array, Children: []Column{{Type: String}}}}},
	{Name: "struct", Type: Struct, Children: []Column{{Type: Long}, {Type: Binary}}},
	{Name: "map", Type: Map,
		Children: []Column{{Type: Struct, Children: []Column{{Type: Int}, {Type: Decimal, Precision: 5}}}}},
	{Name: "order", Type: Long}, // position in the input
}

func randomSortText(r *rand.Rand) string {
	const letters = "\x00\x01a\xff"
	b := make([]byte, r.IntN(4))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

func randomSortValue(r *rand.Rand, c *Column) any {
	if r.IntN(6) == 0 {
		return nil
	}
	// Few distinct numbers, the least and the greatest among them.
	n := []int64{math.MinInt64, -1 << 20, -300, -1, 0, 1, 300, 1 << 20, math.MaxInt64}[r.IntN(9)]
	list := func(child func(i int) *Column, n int) any {
		values := make([]any, n)
		for i := range values {
			values[i] = randomSortValue(r, child(i))
		}
		return values
	}
	switch c.Type {
	case Long:
		return n
	case Int:
		return int32(n >> (r.IntN(2) * 32))
	case Short:
		return int16(n >> (r.IntN(2) * 48))
	case Byte:
		return int8(n >> (r.IntN(2) * 56))
	case Boolean:
		return n > 0
	case Date:
		return Days(n >> 32)
	case Timestamp:
		return Micros(n)
	case Float:
		return float32(n)
	case Double:
		return []float64{math.Inf(-1), math.Copysign(0, -1), 1.5}[r.IntN(3)]
	case Decimal:
		return batch.Int128{Hi: n >> 10, Lo: uint64(n)}
	case Binary:
		return []byte(randomSortText(r))
	case Array, Map:
		return list(func(int) *Column { return &c.Children[0] }, r.IntN(3))
	case Struct:
		return list(func(i int) *Column { return &c.Children[i] }, len(c.Children))
	}
	return randomSortText(r)
}

func randomSortRows(r *rand.Rand, columns []Column, n int) [][]any {
	rows := make([][]any, n)
	for i := range rows {
		rows[i] = make([]any, len(columns))
		for k := range columns {
			rows[i][k] = randomSortValue(r, &columns[k])
		}
		rows[i][len(columns)-1] = int64(i)
	}
	return rows
}

// compareSortValues orders values by their Go types.
func compareSortValues(a, b any) int {
	if a == nil || b == nil {
		return order(a != nil, b != nil)
	}
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case bool:
		return order(a, b.(bool))
	}
	return cmp.Compare(reflect.ValueOf(a).Int(), reflect.ValueOf(b).Int())
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func sortedRows(t *testing.T, s *rowSorter, rows [][]any) [][]any {
	t.Helper()
	for _, row := range rows {
		must.Do(t, s.add(row))
		if s.used > s.memory {
			t.Fatalf("%d bytes in memory, limit %d", s.used, s.memory)
		}
	}
	var got [][]any
	for row, err := range s.sorted() {
		must.Do(t, err)
		got = append(got, row)
	}
	return got
}

func TestSortedRowsAreThoseOfAStableSort(t *testing.T) {
	r := seedtest.Rand(t)
	last := len(sortTestColumns) - 1
	for _, n := range []int{0, 1, 300, 3000} {
		for range seedtest.Rounds(8, 3) {
			keys := r.Perm(8)[:r.IntN(4)]
			rows := randomSortRows(r, sortTestColumns, n)
			want := slices.Clone(rows)
			slices.SortStableFunc(want, func(a, b []any) int {
				for _, k := range keys {
					if c := compareSortValues(a[k], b[k]); c != 0 {
						return c
					}
				}
				return 0
			})
			dir := t.TempDir()
			s := newRowSorter(sortTestColumns, keys, minSortMemory, dir)
			got := sortedRows(t, s, rows)
			if n == 3000 && len(s.runs) < 2 {
				t.Errorf("%d rows in %d runs: nothing was merged", n, len(s.runs))
			}
			s.close()
			must.Equal(t, len(got), len(want))
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("keys %v: row %d is %v (row %v of the input), want %v", keys, i,
						got[i], got[i][last], want[i])
				}
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		}
	}
}

// Rows of many kilobytes leave room for few runs in one merge.
func TestSortMergesRunsInSeveralPasses(t *testing.T) {
	r := seedtest.Rand(t)
	columns := []Column{{Name: "n", Type: Long}, {Name: "text", Type: String}}
	var rows [][]any
	for range 300 {
		rows = append(rows, []any{r.Int64N(100), strings.Repeat("x", 20<<10)})
	}
	rows[7][1] = strings.Repeat("y", 3*minSortMemory)
	s := newRowSorter(columns, []int{0}, minSortMemory, t.TempDir())
	defer s.close()
	for _, row := range rows {
		must.Do(t, s.add(row))
	}
	first, before := s.file, len(s.runs)
	if before < 50 {
		t.Fatalf("%d runs", before)
	}
	slices.SortStableFunc(rows, func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) })
	i := 0
	for row, err := range s.sorted() {
		must.Do(t, err)
		if !reflect.DeepEqual(row, rows[i]) {
			t.Fatalf("row %d: %v and %d bytes", i, row[0], len(row[1].(string)))
		}
		i++
	}
	if i != len(rows) || s.file == first || len(s.runs) > s.fanIn() {
		t.Errorf("%d rows from %d runs, %d before, %d at once", i, len(s.runs), before, s.fanIn())
	}
}

func TestSortLeavesNoFilesOfACallerThatStops(t *testing.T) {
	r := seedtest.Rand(t)
	dir := t.TempDir()
	func() {
		s := newRowSorter(sortTestColumns, []int{0}, minSortMemory, dir)
		defer s.close()
		defer func() { recover() }()
		for _, row := range randomSortRows(r, sortTestColumns, 2000) {
			must.Do(t, s.add(row))
		}
		if s.file == nil {
			t.Fatal("nothing was written to a file")
		}
		for range s.sorted() {
			panic("stop")
		}
	}()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestSortRefusesRowsAndDirectories(t *testing.T) {
	columns := []Column{{Name: "a", Type: String}, {Name: "b", Type: Array, Children: []Column{{Type: Int}}}}
	s := newRowSorter(columns, []int{0}, minSortMemory, filepath.Join(t.TempDir(), "absent"))
	defer s.close()
	for want, row := range map[string][]any{
		"1 values for 2 columns":                     {"x"},
		`column "a": a value of type int for STRING`: {1, nil},
		`column "b": a value of type int64 for INT`:  {"x", []any{int64(1)}},
	} {
		must.Contain(t, fmt.Sprint(s.add(row)), want, row)
	}
	var err error
	for i := 0; err == nil && i < 100000; i++ {
		err = s.add([]any{"some text", nil})
	}
	must.Fail(t, err, os.ErrNotExist, "temporary directory that does not exist")
}

func TestSortReportsDamagedFiles(t *testing.T) {
	r := seedtest.Rand(t)
	rows := randomSortRows(r, sortTestColumns, 1500)
	for range 60 {
		s := newRowSorter(sortTestColumns, []int{0, 1}, minSortMemory, t.TempDir())
		for _, row := range rows {
			must.Do(t, s.add(row))
		}
		var b [1]byte
		at := r.Int64N(s.file.size)
		if r.IntN(3) == 0 {
			at = s.runs[r.IntN(len(s.runs))].from + r.Int64N(frameHead)
		}
		s.file.ReadAt(b[:], at)
		b[0] ^= 1 << r.IntN(8)
		s.file.WriteAt(b[:], at)
		if r.IntN(4) == 0 {
			s.file.Truncate(at)
		}
		var err error
		for _, err = range s.sorted() {
		}
		must.Fail(t, err, ErrCorrupt, at, s.file.size)
		s.close()
	}
}

func TestSortReadsNoMoreThanAFrame(t *testing.T) {
	s := newRowSorter([]Column{{Name: "n", Type: Long}}, []int{0}, minSortMemory, t.TempDir())
	defer s.close()
	for i := 0; s.file == nil || len(s.runs) < 2; i++ {
		must.Do(t, s.add([]any{int64(i)}))
	}
	s.file.WriteAt([]byte{0xff, 0xff, 0xff, 0x7f}, s.runs[1].from)
	var err error
	n := memtest.Allocated(func() {
		for _, err = range s.sorted() {
		}
	})
	if !errors.Is(err, ErrCorrupt) || n > 16<<20 {
		t.Errorf("a frame of 2 GiB: %v, %d bytes allocated", err, n)
	}
}

func TestRowsAreDecodedFromAnyBytes(t *testing.T) {
	r := seedtest.Rand(t)
	code := newRowCode(sortTestColumns, []int{0, 3, 5})
	for _, row := range randomSortRows(r, sortTestColumns, 300) {
		b := must.Get(code.appendRow(nil, row))(t)
		for n := range b {
			must.Fail(t, must.Err(code.row(b[:n])), ErrCorrupt, n, len(b))
		}
		for range 50 {
			damaged := bytes.Clone(b)
			damaged[r.IntN(len(b))] = byte(r.Uint32())
			code.row(damaged) // must not panic
		}
	}
}
