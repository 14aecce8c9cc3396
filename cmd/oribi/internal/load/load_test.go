package load

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/cmd/oribi/internal/infer"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func openStore(t testing.TB) *oribi.Store {
	t.Helper()
	store := must.Get(oribi.Open("store", &oribi.Options{FS: vfs.NewMem()}))(t)
	t.Cleanup(func() {
		must.Do(t, store.Close())
	})
	return store
}

func createTable(t testing.TB, store *oribi.Store, name string, s *schema.Schema) *oribi.Table {
	t.Helper()
	return must.Get(store.CreateTable(name, s))(t)
}

// options returns the options of a CSV load in batches of 1000.
func options(store *oribi.Store, table *oribi.Table) Options {
	return Options{Store: store, Table: table, Mode: oribi.OpInsert, Rows: 1000,
		Name: "in", Format: CSV, Delimiter: ','}
}

// printed returns a whole table in an output format.
func printed(t testing.TB, table *oribi.Table, form output.Format) string {
	t.Helper()
	var out bytes.Buffer
	w := output.New(&out, form, table.Schema().Columns)
	for b, err := range table.Scan(context.Background()).Batches() {
		if err == nil {
			err = w.Write(b)
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return out.String()
}

// With inferred column types, every cell of a real file is printed with its original text.
func TestLoadRealFilesRoundTrip(t *testing.T) {
	lineitem := strings.Fields("l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount " +
		"l_tax l_returnflag " +
		"l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment")
	for _, c := range []struct {
		file      string
		delimiter byte
		columns   []string // of a file without a header
		key       []string
		rows      int // that are loaded of it; 0 = all
		types     string
	}{
		{file: "data/debian-packages.csv.gz", delimiter: ',', key: []string{"package", "version", "architecture"},
			types: "string string string string string string int64 int64 bool string string string"},
		{file: "data/lineitem-600k.tbl.gz", delimiter: '|', columns: lineitem,
			key: []string{"l_orderkey", "l_linenumber"}, rows: 40_000,
			types: "int64 int64 int64 int64 int64 decimal(9,2) decimal(9,2) decimal(9,2) string string date date " +
				"date string string string"},
	} {
		text := corpustest.Read(t, filepath.Join(corpustest.Dir(t), c.file))
		rows := c.rows
		if testing.Short() {
			rows = 5000
		}
		if rows > 0 {
			lines := bytes.SplitAfterN(text, []byte{'\n'}, rows+1)
			text = bytes.Join(lines[:rows], nil)
		}
		columns := must.Get(infer.CSV(context.Background(), bytes.NewReader(text),
			infer.Options{Delimiter: c.delimiter, Names: csvin.Names{List: c.columns, NoHeader: c.columns != nil}}))(t)
		s := must.Get(columns.Schema(c.key))(t)
		var types []string
		for i := range s.Columns {
			types = append(types, s.Columns[i].TypeName())
		}
		must.Equal(t, strings.Join(types, " "), c.types, c.file)
		store := openStore(t)
		o := options(store, createTable(t, store, "t", s))
		o.Delimiter, o.Names = c.delimiter, csvin.Names{List: c.columns, NoHeader: c.columns != nil}
		result, err := Run(context.Background(), bytes.NewReader(text), o)
		must.Do(t, err, c.file)
		want := csvRecords(t, text, c.delimiter)
		if c.columns != nil {
			want = append([][]string{c.columns}, want...)
		}
		got := csvRecords(t, []byte(printed(t, o.Table, output.CSV)), ',')
		must.Equal(t, len(want)-1, int(result.Rows), c.file)
		sameRecords(t, got, want, len(c.key))
	}
}

func csvRecords(t testing.TB, text []byte, delimiter byte) [][]string {
	t.Helper()
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = rune(delimiter)
	return must.Get(r.ReadAll())(t)
}

// sameRecords compares records whose first one has the column names; columns and records may be in
// any order.
func sameRecords(t testing.TB, got, want [][]string, keys int) {
	t.Helper()
	place := make([]int, len(got[0]))
	for i, name := range got[0] {
		place[i] = slices.Index(want[0], name)
	}
	byKey := map[string][]string{}
	for _, r := range want[1:] {
		ordered := make([]string, len(r))
		for i := range ordered {
			ordered[i] = r[place[i]]
		}
		byKey[strings.Join(ordered[:keys], "\x00")] = ordered
	}
	must.Equal(t, len(got), len(want))
	must.Equal(t, len(byKey), len(want)-1)
	for _, r := range got[1:] {
		must.Equal(t, r, byKey[strings.Join(r[:keys], "\x00")])
	}
}

// randomSchema returns a schema of a few columns of random types.
func randomSchema(t testing.TB, r *rand.Rand) *schema.Schema {
	t.Helper()
	names := []string{"int8", "int16", "int32", "int64", "timestamp", "date", "string", "varchar(9)", "binary",
		"decimal(5,2)", "decimal(18,4)",
		"decimal(38,10)", "bool", "float", "double"}
	const keyable = 12
	var columns []schema.Column
	keys := 1 + r.IntN(3)
	for i := range keys + r.IntN(6) {
		c := schema.Column{Name: fmt.Sprintf("c %d,\"", i)}
		from := len(names)
		if i < keys {
			from = keyable
		} else {
			c.Nullable = r.IntN(2) == 0
		}
		must.Do(t, c.ParseTypeName(names[r.IntN(from)]))
		columns = append(columns, c)
	}
	return must.Get(schema.New(columns, keys))(t)
}

// randomCell returns a random cell that has only one text, which is parsed to the same cell.
func randomCell(r *rand.Rand, c *schema.Column) []byte {
	switch {
	case c.Nullable && r.IntN(3) == 0:
		return nil
	case c.Type == schema.Bool:
		return []byte{byte(r.IntN(2))}
	case c.Type == schema.Float:
		return []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()) & 0x7f, byte(r.Uint32()) & 0xbf}
	case c.Type == schema.Double:
		return []byte{1, 2, 3, 4, 5, byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()) & 0xbf}
	case c.Type == schema.Date:
		return little(uint64(r.IntN(schema.MaxDate-schema.MinDate)+schema.MinDate), 4)
	case c.Type.Decimal():
		bound := batch.Pow10(min(c.Precision, 18)).Lo
		v := batch.Int128Of(int64(r.Uint64N(2*bound-1)) - int64(bound-1))
		return little(v.Lo, min(c.Type.Width(), 8), little(uint64(v.Hi), c.Type.Width()-min(c.Type.Width(), 8))...)
	case !c.Type.Variable():
		return little(r.Uint64()>>r.IntN(64), c.Type.Width())
	}
	var b []byte
	for range r.IntN(9) {
		part := []string{"a", "é", ",", "\"", "\n", "\r", "\r\n", " ", "|", "null", "\x01", "7"}[r.IntN(12)]
		if c.Type != schema.Varchar || len(b)+len(part) <= 9 {
			b = append(b, part...)
		}
	}
	return append([]byte{}, b...)
}

func little(v uint64, width int, more ...byte) (b []byte) {
	for range width {
		b, v = append(b, byte(v)), v>>8
	}
	return append(b, more...)
}

// The output of scanning any table loads into an equal table.
func TestLoadPrintedTableRoundTrip(t *testing.T) {
	r := seedtest.Rand(t)
	store := openStore(t)
	ctx := context.Background()
	for n := range 40 {
		s := randomSchema(t, r)
		table := createTable(t, store, fmt.Sprintf("t%d", n), s)
		b := store.NewBatch()
		for range r.IntN(200) {
			cells := make([][]byte, len(s.Columns))
			for i := range cells {
				cells[i] = randomCell(r, &s.Columns[i])
			}
			b.Cells(oribi.OpUpsert, table, cells, nil)
		}
		must.Get(b.Commit(ctx, oribi.NoSync))(t)
		for form, format := range map[output.Format]Format{output.CSV: CSV, output.JSONL: JSONL} {
			text := printed(t, table, form)
			o := options(store, createTable(t, store, fmt.Sprintf("t%d.%d", n, form), s))
			o.Format, o.Rows = format, 1+r.IntN(100)
			o.Mode = []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpInsertIgnore}[r.IntN(3)]
			must.Do(t, must.Err(Run(ctx, strings.NewReader(text), o)), text)
			must.Equal(t, printed(t, o.Table, form), text)
		}
	}
}

// pairs creates a table of a number and a string.
func pairs(t testing.TB) (*oribi.Store, *oribi.Table) {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "v", Type: schema.String, Nullable: true}}, 1))(t)
	store := openStore(t)
	return store, createTable(t, store, "t", s)
}

func count(t testing.TB, table *oribi.Table) int64 {
	t.Helper()
	return must.Get(table.Count(context.Background()))(t)
}

// A malformed line or an existing key ends the load before its batch; the error names its line.
func TestLoadsEndBetweenBatches(t *testing.T) {
	r := seedtest.Rand(t)
	for range 30 {
		store, table := pairs(t)
		rows, size := 1+r.IntN(300), 1+r.IntN(50)
		bad := r.IntN(rows)
		var text strings.Builder
		text.WriteString("k,v\n")
		for i, k := range r.Perm(rows) {
			switch {
			case i != bad:
				fmt.Fprintf(&text, "%d,\"a\nb\"\n", k)
			case i > 0 && r.IntN(2) == 0:
				fmt.Fprintf(&text, "%s,again\n", strings.SplitN(strings.SplitN(text.String(), "\n", 3)[1], ",", 2)[0])
			default:
				text.WriteString("1x,a\n")
			}
		}
		o := options(store, table)
		o.Rows = size
		result, err := Run(context.Background(), strings.NewReader(text.String()), o)
		line, ok := errors.AsType[*apply.LineError](err)
		must.Equal(t, ok, true, bad, rows, err)
		must.Equal(t, line.Line, 2+2*bad, bad, rows, err)
		if want := int64(bad / size * size); result.Rows != want || count(t, table) != want {
			t.Fatalf("row %d is bad, batches of %d: reported %d rows, %d are in the table, want %d", bad, size,
				result.Rows, count(t, table), want)
		}
	}
}

// With SkipBad all valid rows are loaded, and the other records are copied unchanged, in the order
// of the input.
func TestSkipBadReceivesRecordsVerbatim(t *testing.T) {
	r := seedtest.Rand(t)
	for range 30 {
		store, table := pairs(t)
		var text, want strings.Builder
		text.WriteString("v,k\r\n")
		there := map[int64]string{}
		skipped := int64(0)
		for range r.IntN(300) {
			k, v := r.Int64N(200), strconv.Itoa(r.IntN(1000))
			record := fmt.Sprintf("\"%s\",%d\r\n", v, k)
			switch r.IntN(8) {
			case 0:
				record = []string{"x\n", ",,\"\"\n", "a\"b,7\r\n", "\"a\nb\",x\n", "\"" + v + "\"x,7\n",
					"\xff,7\n", v + ",\n"}[r.IntN(7)]
			default:
				if _, again := there[k]; !again {
					there[k] = v
					text.WriteString(record)
					continue
				}
			}
			skipped++
			text.WriteString(record)
			want.WriteString(record)
		}
		o := options(store, table)
		o.Rows = 1 + r.IntN(40)
		var aside bytes.Buffer
		o.SkipBad = &aside
		result, err := Run(context.Background(), strings.NewReader(text.String()), o)
		if err != nil || result.Rows != int64(len(there)) || result.Skipped != skipped {
			t.Fatalf("%+v, %v, want %d rows, %d skipped", result, err, len(there), skipped)
		}
		must.Equal(t, aside.String(), want.String())
		for row, err := range table.Scan(context.Background()).Rows() {
			if err != nil || there[row["k"].(int64)] != row["v"] {
				t.Fatalf("%v, %v", row, err)
			}
		}
	}
}

// An upsert changes only the columns that a line sets.
func TestUpsertKeepsUnsetColumns(t *testing.T) {
	r := seedtest.Rand(t)
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8},
		{Name: "a", Type: schema.Int32, Nullable: true, Default: []byte{7, 0, 0, 0}},
		{Name: "b", Type: schema.String, Nullable: true}, {Name: "c", Type: schema.Double, Nullable: true}}, 1))(t)
	store := openStore(t)
	for n := range 20 {
		o := options(store, createTable(t, store, fmt.Sprintf("t%d", n), s))
		o.Mode, o.Rows = oribi.OpUpsert, 1+r.IntN(20)
		fields := []string{"k", "a", "b", "c"}[:2+r.IntN(3)]
		model := map[string][]string{}
		text := strings.Join(fields, ",") + "\n"
		for range r.IntN(100) {
			k := strconv.Itoa(r.IntN(20))
			row, ok := model[k]
			if !ok {
				row = []string{k, "7", "", ""}
				model[k] = row
			}
			line := k
			for i := 1; i < len(fields); i++ {
				v := ""
				if r.IntN(2) == 0 || n%2 == 0 && i == 1 {
					v = strconv.Itoa(r.IntN(100))
					row[i] = v
				}
				line += "," + v
			}
			text += line + "\n"
		}
		must.Get(Run(context.Background(), strings.NewReader(text), o))(t)
		want := [][]string{{"k", "a", "b", "c"}}
		for _, row := range model {
			want = append(want, row)
		}
		sameRecords(t, csvRecords(t, []byte(printed(t, o.Table, output.CSV)), ','), want, 1)
	}
}

// A load that is interrupted while its input blocks ends with the committed rows.
func TestInterruptedLoadReturns(t *testing.T) {
	store, table := pairs(t)
	ctx, cancel := context.WithCancel(context.Background())
	in, feed := io.Pipe()
	defer feed.Close()
	o := options(store, table)
	o.Rows = 10
	o.Progress = func(rows int64) {
		if rows == 30 {
			cancel()
		}
	}
	go func() {
		io.WriteString(feed, "k\n")
		for i := range 35 {
			fmt.Fprintf(feed, "%d\n", i)
		}
	}()
	result, err := Run(ctx, in, o)
	if !errors.Is(err, context.Canceled) || result.Rows != 30 || count(t, table) != 30 {
		t.Errorf("%+v, %v, %d rows are in the table", result, err, count(t, table))
	}
}

// many is an input of n lines.
type many struct {
	n, line int
	rest    []byte
}

func (m *many) Read(p []byte) (int, error) {
	if len(m.rest) == 0 {
		if m.line == m.n {
			return 0, io.EOF
		}
		m.rest = fmt.Appendf(m.rest[:0], "%d,%d\n", m.line, m.line%7)
		m.line++
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// Batches stay within the store's limit regardless of Options.Rows.
func TestBatchesAreBoundedByBytes(t *testing.T) {
	store, table := pairs(t)
	o := options(store, table)
	o.Rows, o.Names.NoHeader = math.MaxInt, true
	batches := 0
	o.Progress = func(int64) { batches++ }
	const rows = 100_000
	byOne := &many{n: rows}
	inBlocks := bytes.NewReader(must.Get(io.ReadAll(&many{n: rows}))(t))
	for _, in := range []io.Reader{byOne, inBlocks} {
		batches, o.Mode = 0, oribi.OpUpsert
		must.Equal(t, must.Get(Run(context.Background(), in, o))(t).Rows, rows)
		if least := rows * rowOverhead / maxBatchBytes; batches < least || batches > 4*least {
			t.Errorf("%d batches", batches)
		}
	}
}

// Of CSV and JSON only the rows for which Where is true are loaded. A bad row is an error even if
// it would not match.
func TestLoadOfMatchingRows(t *testing.T) {
	store := openStore(t)
	s := typedColumns(t, 1, "id int64", "text string", "n int32")
	s.Columns[2].Default = []byte{7, 0, 0, 0}
	for i, c := range []struct {
		form       Format
		text, want string
	}{
		{CSV, "id,text\n1,a\n2,\n3,abc\n4,b\n", "1,a,7\n3,abc,7\n"},
		{CSV, "id,text,n\n1,a,8\n2,a,\n3,b,x\n", `in:4: column "n": `},
		{JSONL, `{"id":1,"text":"a"}
{"id":2,"n":7}
{"id":3,"text":"ab","n":7}
{"id":4,"text":"ab","n":8}
`, "1,a,7\n3,ab,7\n"},
	} {
		table := createTable(t, store, fmt.Sprint("t", i), s)
		o := options(store, table)
		o.Format = c.form
		filter := must.Get(oribi.And(oribi.HasPrefix("text", "a"), oribi.Eq("n", 7)).Bind(table.Schema()))(t)
		o.Where = &filter
		result, err := Run(context.Background(), strings.NewReader(c.text), o)
		got := strings.TrimPrefix(printed(t, table, output.CSV), "id,text,n\n")
		must.Equal(t, int64(strings.Count(got, "\n")), result.Rows)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
