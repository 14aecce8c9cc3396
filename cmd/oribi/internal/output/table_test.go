package output

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// printed returns the rows printed as a table.
func printed(t *testing.T, style Style, batches ...*batch.RecordBatch) string {
	t.Helper()
	var out bytes.Buffer
	w := New(&out, Table, batches[0].Schema)
	w.Style(style)
	for _, b := range batches {
		must.Do(t, w.Write(b))
	}
	must.Do(t, w.Close())
	return out.String()
}

// texts returns a batch of string columns: one row per argument, with cells separated by |.
func texts(header string, lines ...string) *batch.RecordBatch {
	var columns []schema.Column
	for _, name := range strings.Split(header, "|") {
		columns = append(columns, schema.Column{Name: name, Type: schema.String, Nullable: true})
	}
	b := batch.New(columns, len(lines))
	for i, line := range lines {
		for k, cell := range strings.Split(line, "|") {
			b.Columns[k].SetCell(i, []byte(cell))
		}
	}
	return b
}

func TestTableFitsTheTerminal(t *testing.T) {
	path := texts("path|owner|text", "src/tablet/tablet.cc|root|"+strings.Repeat("x", 40), "a|somebody else|y")
	for _, c := range []struct {
		name  string
		in    *batch.RecordBatch
		width int
		want  []string
	}{
		{"room for all", path, 80, []string{
			"path                  owner          text",
			"src/tablet/tablet.cc  root           " + strings.Repeat("x", 40),
			"a                     somebody else  y", "(2 rows)"}},
		{"the widest are cut first", path, 50, []string{
			"path               owner          text",
			"src/tablet/table…  root           xxxxxxxxxxxxxxx…",
			"a                  somebody else  y", "(2 rows)"}},
		{"all are cut to the same width", path, 37, []string{
			"path         owner        text",
			"src/tablet…  root         xxxxxxxxxx…",
			"a            somebody e…  y", "(2 rows)"}},
		{"columns that do not fit are left out", path, 25, []string{
			"path        owner       …",
			"src/table…  root        …",
			"a           somebody …  …", "(2 rows, 2 of 3 columns shown)"}},
		{"the first column always stays", path, 5, []string{
			"p…  …", "s…  …", "a   …", "(2 rows, 1 of 3 columns shown)"}},
		{"wide and combining characters", texts("c|d", "日本語|x", "e\u0301te\u0301|y", "plain|z"), 80, []string{
			"c       d", "日本語  x", "e\u0301te\u0301     y", "plain   z", "(3 rows)"}},
		{"a wide character is not halved", texts("c|d", "日本語日本語|x", "a|y"), 12, []string{
			"c          d", "日本語日…  x", "a          y", "(2 rows)"}},
	} {
		must.Equal(t, printed(t, Style{Width: c.width}, c.in), strings.Join(c.want, "\n")+"\n", c.name)
	}
}

// A number with digits missing would be another number.
func TestNumbersAreNotCut(t *testing.T) {
	b := batch.New([]schema.Column{{Name: "a_long_name", Type: schema.Int64}, {Name: "text", Type: schema.String}}, 2)
	batch.Values[int64](b.Columns[0])[0] = math.MinInt64
	batch.Values[int64](b.Columns[0])[1] = 7
	b.Columns[1].SetCell(0, []byte(strings.Repeat("x", 50)))
	b.Columns[1].SetCell(1, nil)
	want := "         a_long_name  text\n-9223372036854775808  xxxxxxx…\n                   7  NULL\n(2 rows)\n"
	must.Equal(t, printed(t, Style{Width: 30}, b), want)
	narrow := batch.New([]schema.Column{{Name: "a_long_name", Type: schema.Int64}, {Name: "text", Type: schema.String}},
		2)
	for i := range 2 {
		batch.Values[int64](narrow.Columns[0])[i] = 123
		narrow.Columns[1].SetCell(i, []byte("a text"))
	}
	must.Equal(t, printed(t, Style{Width: 16}, narrow),
		"a_long_…  text\n     123  a text\n     123  a text\n(2 rows)\n")
}

func TestColors(t *testing.T) {
	want := bold + "id  na,me   on" + plain + "\n 0  " + dim + "NULL" + plain + "    false\n 1  \"NULL\"  true\n" +
		dim + "(2 rows)" + plain + "\n"
	in := rows("NULL", "x")
	in.Columns[1].SetCell(2, []byte("NULL"))
	must.Equal(t, printed(t, Style{Color: true}, in), want)
}

func TestBareTable(t *testing.T) {
	must.Equal(t, printed(t, Style{Bare: true}, texts("f|v", "a|1", "bcd|2")), "a    1\nbcd  2\n")
}

// Rows after the window are printed too, within their columns on a terminal.
func TestLongTableKeepsAllRows(t *testing.T) {
	const n = 3 * lookRows
	var in []*batch.RecordBatch
	for i := range n {
		in = append(in, rows(strings.Repeat("x", i%100)))
	}
	for _, style := range []Style{{}, {Width: 40}} {
		got := printed(t, style, in...)
		if lines := strings.Count(got, "\n"); lines != n+2 || !strings.HasSuffix(got, "\n(1,500 rows)\n") {
			t.Errorf("%d lines, want %d", lines, n+2)
		}
		for line := range strings.Lines(got) {
			if w := textWidth([]byte(strings.TrimSuffix(line, "\n"))); style.Width > 0 && w > style.Width {
				t.Fatalf("%q takes %d columns", line, w)
			}
		}
	}
}

// The window is bounded in bytes too.
func TestWindowIsBoundedInBytes(t *testing.T) {
	var out counting
	w := New(&out, Table, columns)
	for range 10 {
		must.Do(t, w.Write(rows(strings.Repeat("x", 1e6))))
	}
	if out == 0 {
		t.Error("all rows are held back")
	}
}

// Rows before an error are printed, without the number of rows, which would mark the table as
// complete.
func TestFlushPrintsBufferedRows(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Table, columns)
	must.Do(t, errors.Join(w.Write(rows("a")), w.Flush()))
	must.Equal(t, out.String(), "id  na,me  on\n 0  a      false\n")
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text": "plain text", `back\slash "q"`: `back\slash "q"`, "日本 é": "日本 é",
		"": `""`, "NULL": `"NULL"`, `"NULL"`: `"\"NULL\""`, " a": `" a"`, "a ": `"a "`, "null": "null",
		"a\tb\\": `"a\tb\\"`, "\r\n\x00\x7f": `"\r\n\u0000\u007f"`, "x\xff\xfe": `"x\xff\xfe"`, "\ufffd": "\ufffd",
		"\u202eevil": `"\u202eevil"`, "a\u200bb": `"a\u200bb"`, "\U000e0001": `"\U000e0001"`, "\u00a0": `"\u00a0"`,
	} {
		got, width := appendPrintable([]byte("x"), []byte(in), math.MaxInt)
		must.Equal(t, string(got), "x"+want, in, want)
		must.Equal(t, width, textWidth([]byte(want)), in, want)
		for limit := 1; limit < 8; limit++ {
			short, shortWidth := appendPrintable(nil, []byte(in), limit)
			cut, n := appendCut(nil, short, shortWidth, limit)
			full, m := appendCut(nil, []byte(want), width, limit)
			if string(cut) != string(full) || n != m || n > limit || n != textWidth(cut) {
				t.Errorf("%q cut to %d columns: %q in %d, want %q", in, limit, cut, n, full)
			}
		}
	}
}

func TestWidths(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 4, "한글": 4,
		"\u1112\u1161\u11ab": 2, "ﾊﾝ": 2,
		"！": 2, "😀": 2, "𠀀": 2, "…": 1, "→": 1, "─": 1, "नि": 2, "ก็": 1} {
		must.Equal(t, textWidth([]byte(text)), want, text)
	}
}

func TestSingleWideRowIsPrintedVertically(t *testing.T) {
	long := strings.Repeat("x", 30)
	want := "a     " + long + "\nname  NULL\n(1 row)\n"
	in := texts("a|name", long+"|y")
	in.Columns[1].SetCell(0, nil)
	must.Equal(t, printed(t, Style{Width: 20}, in), want)
	if got := printed(t, Style{Width: 40}, in); strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, "a ") {
		t.Errorf("a row that fits:\n%s", got)
	}
	must.Equal(t, strings.Count(printed(t, Style{Width: 20, Bare: true}, in), "\n"), 1)
	must.Contain(t, printed(t, Style{Width: 20}, texts("a|name", long+"|y", "b|z")), "…")
}

func TestSizesHaveUnitsAndAlignRight(t *testing.T) {
	b := batch.New([]schema.Column{{Name: "t", Type: schema.String}, {Name: "bytes", Type: schema.Int64},
		{Name: "n", Type: schema.Int64}}, 2)
	for i, n := range []int64{17, 1 << 20} {
		b.Columns[0].SetCell(i, []byte("x"))
		batch.Values[int64](b.Columns[1])[i] = n
		batch.Values[int64](b.Columns[2])[i] = n
	}
	want := "t    bytes        n\nx     17 B       17\nx  1.0 MiB  1048576\n(2 rows)\n"
	must.Equal(t, printed(t, Style{Sizes: []string{"bytes"}}, b), want)
}

func TestFiguresInTextColumnsAreAlignedToTheRight(t *testing.T) {
	b := texts("name|value", "rows|7", "name|t", "bytes|1,024")
	figure := func(row int64, column int) bool { return column == 1 && row != 1 }
	want := "name   value\nrows       7\nname   t\nbytes  1,024\n(3 rows)\n"
	must.Equal(t, printed(t, Style{Figure: figure}, b), want)
}
