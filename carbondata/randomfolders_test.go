package carbondata

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// randomFolder is a folder of ours with the rows that were written to it.
type randomFolder struct {
	columns []Column
	options WriterOptions
	rows    [][]any // in the order of their Append
	dir     string
}

// randomFolders calls f with n folders: random columns of all types, values that lead to each
// encoding, and options.
func randomFolders(t *testing.T, n int, f func(t *testing.T, folder *randomFolder)) {
	rnd := rand.New(rand.NewPCG(14+seedtest.Seed(t), 2))
	rows := 0
	for i := range n {
		folder := newRandomFolder(rnd, i)
		rows += len(folder.rows)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			folder.write(t)
			defer func() {
				if t.Failed() {
					t.Log(folder)
				}
			}()
			f(t, folder)
		})
	}
	t.Logf("%d folders, %d rows", n, rows)
}

func (f *randomFolder) String() string {
	types := make([]string, len(f.columns))
	for i, c := range f.columns {
		types[i] = c.Name + " " + c.TypeName()
	}
	return fmt.Sprintf("%d rows of %s, %+v", len(f.rows), strings.Join(types, ", "), f.options)
}

func newRandomFolder(rnd *rand.Rand, number int) *randomFolder {
	f := &randomFolder{}
	of := func(n int) bool { return rnd.IntN(n) == 0 }
	nested := 0
	for i := range 1 + rnd.IntN(8) {
		c := randomColumn(rnd, fmt.Sprintf("c%d", i), &nested, 0)
		c.Ordinal = i
		f.columns = append(f.columns, c)
	}
	f.options = WriterOptions{
		Compressor:        []string{"", codec.Snappy, codec.Zstd, codec.Gzip}[rnd.IntN(4)],
		NoLocalDictionary: of(4),
		WrittenBy:         "test",
		Time:              time.UnixMilli(1_700_000_000_000 + int64(number)),
		Task:              fmt.Sprintf("%032x", number),
	}
	if of(2) {
		f.options.DictionaryThreshold = 1000
	}
	n := []int{1, 2, 10, 300, 3000}[rnd.IntN(5)]
	if of(30) {
		n = 32000 + rnd.IntN(3)*500
	} else if of(2) {
		f.options.PageRows = []int{1, 7, 8, 64, 1000}[rnd.IntN(5)]
		n = min(n, 300*f.options.PageRows)
	}
	if of(3) {
		f.options.BlockletBytes = int64(1 + rnd.IntN(4096))
	}
	if of(6) {
		f.options.FileBytes = int64(1 + rnd.IntN(16384))
	}
	if of(2) {
		for _, i := range rnd.Perm(len(f.columns)) {
			c := &f.columns[i]
			if sortable := []Type{String, Date, Timestamp, Boolean, Short, Int, Long}; slices.Contains(sortable,
				c.Type) && len(f.options.SortColumns) < 3 {
				f.options.SortColumns = append(f.options.SortColumns, c.Name)
				if c.Type == String && of(2) {
					f.options.InvertedIndex = append(f.options.InvertedIndex, c.Name)
				}
			}
		}
		if of(3) {
			f.options.SortMemory = 1 << 16
		}
	}
	values := make([]func() any, len(f.columns))
	for i, c := range f.columns {
		values[i] = randomValues(rnd, c, false)
	}
	for range n {
		row := make([]any, len(values))
		for i, value := range values {
			row[i] = value()
		}
		f.rows = append(f.rows, row)
	}
	return f
}

// integers are the least and the most value of a type of integers, in steps.
var integers = map[Type]struct{ least, most, step int64 }{
	Byte: {math.MinInt8, math.MaxInt8, 1}, Short: {math.MinInt16, math.MaxInt16, 1},
	Int:  {math.MinInt32, math.MaxInt32, 1},
	Long: {math.MinInt64, math.MaxInt64, 1},
	Date: {firstDay, lastDay, 1}, Timestamp: {firstDay * dayMillis, lastDay * dayMillis, 1000},
}

func (f *randomFolder) write(t *testing.T) {
	t.Helper()
	f.dir = filepath.Join(t.TempDir(), "folder")
	w, err := Create(f.dir, f.columns, f.options)
	must.Do(t, err, f)
	for _, row := range f.rows {
		if err := w.Append(row); err != nil {
			w.Abort()
			t.Fatalf("%.300v: row %.300s: %v", f, fmt.Sprint(row), err)
		}
	}
	must.Do(t, w.Close(), f)
}

// readOurs verifies the folder and returns its rows as this package reads them: those that were
// written, in the order of the sort columns.
func (f *randomFolder) readOurs(t *testing.T) (rows [][]any) {
	t.Helper()
	table := must.Get(Open(f.dir))(t)
	defer table.Close()
	must.Do(t, table.Verify(t.Context()))
	for row, err := range table.Rows(t.Context(), ScanOptions{}) {
		must.Do(t, err)
		rows = append(rows, row)
	}
	was, is := texts(f.rows), texts(rows)
	const digit = 10 // of files; a file with more in its name sorts before others that come first
	if len(table.Files()) > digit {
		slices.Sort(was)
		slices.Sort(is)
		compareLines(t, "rows of ours in any order", is, was)
		return rows
	}
	if len(f.options.SortColumns) == 0 {
		compareLines(t, "rows of ours", is, was)
		return rows
	}
	slices.Sort(was)
	slices.Sort(is)
	compareLines(t, "sorted rows of ours", is, was)
	for i := 1; i < len(rows); i++ {
		if f.compareKeys(rows[i-1], rows[i]) > 0 {
			t.Fatalf("row %d: %v after %v", i, rows[i], rows[i-1])
		}
	}
	return rows
}

// compareKeys compares two rows by the sort columns, nulls first.
func (f *randomFolder) compareKeys(a, b []any) int {
	for _, name := range f.options.SortColumns {
		i := slices.IndexFunc(f.columns, func(c Column) bool { return c.Name == name })
		var c int
		switch x, y := a[i], b[i]; {
		case x == nil || y == nil:
			c = cmp.Compare(b2i(x != nil), b2i(y != nil))
		default:
			c = comparePlain(x, y)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// texts returns rows as the SDK's reader prints them.
func texts(rows [][]any) []string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = string(appendJSON(nil, row))
	}
	return lines
}

// sdkTexts is texts with the days and times that the SDK prints.
func sdkTexts(rows [][]any) []string {
	list := make([][]any, len(rows))
	for i, row := range rows {
		list[i] = sdkValue(row).([]any)
	}
	return texts(list)
}

func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		must.Equal(t, got[i], want[i], what, i)
	}
	must.Equal(t, len(got), len(want), what)
}

// TestWriterSeparatesChildrenOfOneName writes children of one name and several types: the SDK reads
// wrong values of those that share an ID.
func TestWriterSeparatesChildrenOfOneName(t *testing.T) {
	leaf := func(name string, typ Type) Column { return Column{Name: name, Type: typ} }
	inner := Column{Name: "x", Type: Struct, Children: []Column{leaf("x", Double), leaf("only", Int)}}
	list := Column{Name: "list", Type: Array, Children: []Column{leaf("", Int)}}
	f := &randomFolder{columns: []Column{leaf("y", Int),
		{Name: "s", Type: Struct, Children: []Column{leaf("y", Date), inner}}, list}}
	f.rows = [][]any{{int32(1), []any{Days(-25567), []any{1.5, int32(2)}}, []any{int32(3)}}}
	f.write(t)
	f.readOurs(t)
	table := must.Get(Open(f.dir))(t)
	defer table.Close()
	var got []string
	var add func(columns []Column)
	add = func(columns []Column) {
		for _, c := range columns {
			got = append(got, c.ID)
			add(c.Children)
		}
	}
	add(table.Schema())
	must.Equal(t, got, []string{"y", "s", "s.y", "s.x", "s.x.x", "only", "list", "list"})
}
