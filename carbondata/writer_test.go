package carbondata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
)

// column makes a column.
func column(name string, typ Type, children ...Column) Column {
	c := Column{Name: name, Type: typ, Children: children}
	if typ == Decimal {
		c.Precision, c.Scale = 12, 3
	}
	return c
}

// writeFolder writes rows to a new folder and returns its path.
func writeFolder(t *testing.T, columns []Column, o WriterOptions, rows [][]any) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	w := must.Get(Create(dir, columns, o))(t)
	defer w.Abort()
	for i, row := range rows {
		must.Do(t, w.Append(row), i)
	}
	must.Do(t, w.Close())
	return dir
}

// readFolder returns the rows of a folder as JSON, and checks its index.
func readFolder(t *testing.T, dir string) (lines []string) {
	t.Helper()
	table := must.Get(Open(dir))(t)
	defer table.Close()
	must.Do(t, table.Verify(context.Background()))
	var line []byte
	for row, err := range table.Rows(context.Background(), ScanOptions{}) {
		must.Do(t, err)
		line = appendJSON(line[:0], row)
		lines = append(lines, string(line))
	}
	return lines
}

func wantRows(t *testing.T, got []string, want [][]any) {
	t.Helper()
	var line []byte
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		if line = appendJSON(line[:0], want[i]); got[i] != string(line) {
			t.Fatalf("row %d: %.500s\nwant %.500s", i, got[i], line)
		}
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWriterNamesFiles(t *testing.T) {
	o := WriterOptions{Task: "00000000000bc66340353373c05fb64c", Time: time.UnixMilli(1700000000066), PageRows: 1,
		BlockletBytes: 1, FileBytes: 1, Compressor: "zstd"}
	dir := writeFolder(t, []Column{column("a", Int)}, o, [][]any{{int32(1)}, {int32(2)}})
	want := "00000000000bc66340353373c05fb64c_batchno0-0-null-1700000000066.carbonindex " +
		"part-0-00000000000bc66340353373c05fb64c_batchno0-0-null-1700000000066.zstd.carbondata " +
		"part-1-00000000000bc66340353373c05fb64c_batchno0-0-null-1700000000066.zstd.carbondata"
	must.Equal(t, strings.Join(namesIn(t, dir), " "), want)
	must.Equal(t, len(namesIn(t, filepath.Dir(dir))), 1)
}

// TestLongTextInNestedColumns writes a VARCHAR in an ARRAY that is too long for a local dictionary,
// whose lengths have two bytes there, after others that are not.
func TestLongTextInNestedColumns(t *testing.T) {
	long := strings.Repeat("x", maxTextBytes)
	rows := [][]any{{[]any{"a", long}}, {[]any{"a", long + "x", nil}}, {[]any{"a", "b"}}}
	for _, n := range []int{1, 2, 3} { // rows
		dir := writeFolder(t, []Column{column("a", Array, column("", Varchar))}, WriterOptions{PageRows: 1}, rows[:n])
		wantRows(t, readFolder(t, dir), rows[:n])
	}
}

func TestWriterCreatesNothingBeforeClose(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	create := func() *Writer {
		return must.Get(Create(dir, []Column{column("a", Int)}, WriterOptions{PageRows: 1, BlockletBytes: 1}))(t)
	}
	w := create()
	must.Fail(t, w.Close(), ErrNoRows)
	w = create()
	for range 3 {
		must.Do(t, w.Append([]any{int32(1)}))
	}
	must.Do(t, w.Abort())
	must.Fail(t, w.Append([]any{int32(1)}), ErrClosed, "Append after Abort")
	must.Fail(t, w.Close(), ErrClosed, "Close after Abort")
	must.Equal(t, len(namesIn(t, parent)), 0)
	w = create()
	must.Do(t, w.Append([]any{int32(1)}))
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Fail(t, w.Close(), fs.ErrExist, "Close with an existing folder")
	must.Fail(t, must.Err(Create(dir, []Column{column("a", Int)}, WriterOptions{})),
		fs.ErrExist, "Create of an existing folder")
	if got := namesIn(t, parent); len(got) != 1 || len(namesIn(t, dir)) != 0 {
		t.Errorf("files %q", got)
	}
}

func TestCreateRefusesColumnsAndOptions(t *testing.T) {
	pair := func(name string, children ...Column) Column {
		return column(name, Map, column("", Struct, children...))
	}
	deep := column("x", Int)
	for range maxNesting + 1 {
		deep = column("x", Array, deep)
	}
	wide := Column{Name: "a", Type: Decimal, Precision: 39}
	for want, c := range map[string]struct {
		columns []Column
		o       WriterOptions
	}{
		"no columns":                  {},
		`columns "Ab" and "aB"`:       {columns: []Column{column("Ab", Int), column("aB", Int)}},
		`column "": the name must be`: {columns: []Column{column("", Int)}},
		"without a point":             {columns: []Column{column("a.b", Int)}},
		`column "ab" appears twice`:   {columns: []Column{column("ab", Int), column("ab", Int)}},
		"type 9":                      {columns: []Column{column("a", 9)}},
		"DECIMAL(39,0)":               {columns: []Column{wide}},
		"ARRAY with 0 children":       {columns: []Column{column("a", Array)}},
		"STRUCT with 0 children":      {columns: []Column{column("a", Struct)}},
		"INT with 1 children":         {columns: []Column{column("a", Int, column("b", Int))}},
		"not a STRUCT of key":         {columns: []Column{pair("a", column("k", Int))}},
		`fields "f" and "F"`:          {columns: []Column{column("a", Struct, column("f", Int), column("F", Int))}},
		`field "f" appears twice`:     {columns: []Column{column("a", Struct, column("f", Int), column("f", Int))}},
		`field "f.g": the name must`:  {columns: []Column{column("a", Struct, column("f.g", Int))}},
		"levels of nesting":           {columns: []Column{deep}},
		"does not sort by DOUBLE": {columns: []Column{column("a", Double)},
			o: WriterOptions{SortColumns: []string{"a"}}},
		"does not sort by ARRAY<INT>": {columns: []Column{column("a", Array, column("", Int))},
			o: WriterOptions{SortColumns: []string{"a"}}},
		"does not sort by BYTE": {columns: []Column{column("a", Byte)},
			o: WriterOptions{SortColumns: []string{"a"}}},
		`sort column "A" twice`: {columns: []Column{column("a", Int)},
			o: WriterOptions{SortColumns: []string{"a", "A"}}},
		"no such column": {columns: []Column{column("a", Int)},
			o: WriterOptions{SortColumns: []string{"b"}}},
		`inverted index of column "a"`: {columns: []Column{column("a", Int)},
			o: WriterOptions{SortColumns: []string{"a"}, InvertedIndex: []string{"a"}}},
		`inverted index of column "s"`: {columns: []Column{column("s", String)},
			o: WriterOptions{InvertedIndex: []string{"s"}}},
		`compressor "lz4"`:          {columns: []Column{column("a", Int)}, o: WriterOptions{Compressor: "lz4"}},
		"32001 rows of a page":      {columns: []Column{column("a", Int)}, o: WriterOptions{PageRows: 32001}},
		"-1 rows of a page":         {columns: []Column{column("a", Int)}, o: WriterOptions{PageRows: -1}},
		"blocklets of -1 bytes":     {columns: []Column{column("a", Int)}, o: WriterOptions{BlockletBytes: -1}},
		"files of -1 bytes":         {columns: []Column{column("a", Int)}, o: WriterOptions{FileBytes: -1}},
		"dictionaries of 10 values": {columns: []Column{column("a", Int)}, o: WriterOptions{DictionaryThreshold: 10}},
		`task "a-b"`:                {columns: []Column{column("a", Int)}, o: WriterOptions{Task: "a-b"}},
	} {
		dir := t.TempDir()
		_, err := Create(filepath.Join(dir, "out"), c.columns, c.o)
		must.Contain(t, fmt.Sprint(err), want)
		must.Equal(t, len(namesIn(t, dir)), 0, want)
	}
	if _, err := Create(filepath.Join(t.TempDir(), "none", "out"), []Column{column("a", Int)},
		WriterOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

// TestAppendRefusesValues appends values that CarbonData reads as other values, between good rows,
// which remain.
func TestAppendRefusesValues(t *testing.T) {
	array := func(element Type) Column { return column("c", Array, column("", element)) }
	field := column("c", Struct, column("f", Int), column("g", String))
	pairs := column("c", Map, column("", Struct, column("", String), column("", Int)))
	for _, c := range []struct {
		column Column
		good   any
		bad    any
		want   string
	}{
		{column("c", Int), int32(1), int64(1), "a value of type int64 for INT"},
		{column("c", Int), nil, "1", "a value of type string for INT"},
		{column("c", Float), float32(1), 1.0, "a value of type float64 for FLOAT"},
		{column("c", Double), 1.0, float32(1), "a value of type float32 for DOUBLE"},
		{column("c", Boolean), true, 1, "for BOOLEAN"},
		{column("c", Decimal), batch.Int128Of(999999999999), batch.Int128Of(1000000000000),
			"out of the range of DECIMAL(12,3)"},
		{column("c", Date), Days(2932896), Days(2932897), "10000-01-01: CarbonData has the dates from 0001-01-01"},
		{column("c", Date), Days(-719162), Days(-719163), "0000-12-31: CarbonData has the dates"},
		{column("c", Date), Days(-141438), Days(-141437), "1582-10-05: CarbonData does not have this date"},
		{column("c", Date), Days(-141427), Days(-141428), "1582-10-14: CarbonData does not have this date"},
		{column("c", Date), nil, Days(math.MaxInt32), "to 9999-12-31"},
		{column("c", Date), nil, Days(math.MinInt32), "from 0001-01-01"},
		{column("c", Timestamp), Micros(253402300799999000), Micros(253402300800000000),
			"10000-01-01T00:00:00Z: CarbonData has the dates"},
		{column("c", Timestamp), Micros(-62135596800000000), Micros(-62135596800001000),
			"0000-12-31T23:59:59.999Z: CarbonData has the dates"},
		{column("c", Timestamp), Micros(-12219292800000000), Micros(-12219292800001000),
			"1582-10-14T23:59:59.999Z: CarbonData does not have this date"},
		{column("c", Timestamp), nil, Micros(math.MaxInt64 / 1000 * 1000), "to 9999-12-31"},
		{column("c", Timestamp), nil, Micros(math.MinInt64 / 1000 * 1000), "from 0001-01-01"},
		{array(Date), nil, []any{Days(0), Days(-141430)}, "element 1: 1582-10-12"},
		{column("c", Timestamp), Micros(-1000), Micros(1001), "1001 microseconds"},
		{column("c", String), "", nullText, "reads it as NULL"},
		{column("c", String), "é", "\xff", "not UTF-8"},
		{column("c", String), strings.Repeat("a", 32000), strings.Repeat("a", 32001), "32001 characters"},
		{column("c", String), strings.Repeat("é", 16383), strings.Repeat("é", 16384), "32768 bytes"},
		{column("c", Varchar), strings.Repeat("a", 40000), nil, "empty VARCHAR"},
		{column("c", Varchar), "", nullText, "reads it as NULL"},
		{column("c", Varchar), "a", strings.Repeat("a", maxRowBytes+1), "bytes of text"},
		{column("c", Binary), []byte{0xff}, []byte{}, "reads them as NULL"},
		{column("c", Binary), nil, "a", "for BINARY"},
		{array(Int), []any{}, []any{nil}, "exactly one NULL"},
		{array(Int), []any{nil, nil}, []any{int32(1), "a"}, "element 1: a value of type string for INT"},
		{array(Int), nil, make([]any, maxRowValues+1), "nested values"},
		{array(String), []any{"a"}, []any{"a", nullText}, "element 1"},
		{array(Timestamp), []any{Micros(1000)}, []any{Micros(1)}, "element 0: a time"},
		{field, []any{int32(1), nil}, []any{nil, nil}, "only NULLs"},
		{field, nil, []any{int32(1)}, "for STRUCT"},
		{field, []any{int32(1), "a"}, []any{int32(1), "\xff"}, "g: text"},
		{pairs, []any{}, []any{[]any{nil, nil}, []any{"a", int32(1)}}, "element 0: a STRUCT of only NULLs"},
		{pairs, []any{[]any{"a", nil}}, []any{nil}, "exactly one NULL"},
		{pairs, nil, []any{[]any{"a", nil}, nil}, "element 1: NULL instead of a pair"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		w := must.Get(Create(dir, []Column{column("id", Int), c.column}, WriterOptions{}))(t)
		defer w.Abort()
		must.Do(t, w.Append([]any{int32(1), c.good}), c.column.TypeName())
		err := w.Append([]any{int32(2), c.bad})
		must.Contain(t, fmt.Sprint(err), c.want, c.column.TypeName())
		must.Contain(t, fmt.Sprint(err), `column "c": `, c.column.TypeName())
		must.Contain(t, fmt.Sprint(w.Append([]any{int32(3)})), "1 values for 2 columns")
		must.Do(t, w.Append([]any{int32(4), c.good}))
		must.Do(t, w.Close())
		wantRows(t, readFolder(t, dir), [][]any{{int32(1), c.good}, {int32(4), c.good}})
	}
}

// TestWriterSorts appends rows out of order, from the first row or after some files.
func TestWriterSorts(t *testing.T) {
	columns := []Column{column("id", Int), column("s", String), column("n", Long)}
	for _, inOrder := range []int{0, 1, 5, 700, 2000} {
		var rows [][]any
		for i := range 2000 {
			k := i
			if i >= inOrder {
				k = i * 7919 % 2000
			}
			var s any = string(rune('a' + k/100))
			if k < 200 {
				s = nil
			}
			rows = append(rows, []any{int32(i), s, int64(k)})
		}
		o := WriterOptions{SortColumns: []string{"s", "n"}, InvertedIndex: []string{"s"}, PageRows: 128,
			BlockletBytes: 1, FileBytes: 5000, SortMemory: 100 << 10, TempDir: t.TempDir()}
		dir := writeFolder(t, columns, o, rows)
		table := must.Get(Open(dir))(t)
		defer table.Close()
		last, count := int64(math.MinInt64), 0
		for row, err := range table.Rows(context.Background(), ScanOptions{}) {
			must.Do(t, err)
			want := rows[row[0].(int32)]
			if row[1] != want[1] || row[2] != want[2] {
				t.Fatalf("%v, want %v", row, want)
			}
			if n := row[2].(int64); n < last {
				t.Fatalf("%d after %d", n, last)
			} else {
				last = n
			}
			count++
		}
		for _, f := range table.Files() {
			must.Equal(t, f.Sorted, true, f.Name)
		}
		must.Equal(t, count, len(rows))
		must.Do(t, table.Verify(context.Background()))
		must.Equal(t, len(namesIn(t, o.TempDir)), 0)
	}
}
