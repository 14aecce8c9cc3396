package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// typedColumns returns columns of types, written "name type"; the first keys of them are keys.
func typedColumns(t testing.TB, keys int, list ...string) *schema.Schema {
	t.Helper()
	columns := make([]schema.Column, len(list))
	for i, text := range list {
		name, typ, _ := strings.Cut(text, " ")
		columns[i] = schema.Column{Name: name, Nullable: i >= keys}
		must.Do(t, columns[i].ParseTypeName(typ))
	}
	return must.Get(schema.New(columns, keys))(t)
}

// batchOptions returns the options of a load of a table's rows into another table.
func batchOptions(store *oribi.Store, from, to *oribi.Table, scan ...oribi.ScanOption) Options {
	o := Options{Store: store, Table: to, Mode: oribi.OpInsert, Rows: 1000, Name: "in", Format: Batches,
		File: true, Fields: to.Schema().Columns}
	if from != nil {
		o.Batches, o.Fields = from.Scan(context.Background(), scan...).Batches(), from.Schema().Columns
	}
	return o
}

func loadText(t testing.TB, store *oribi.Store, table *oribi.Table, text string) {
	t.Helper()
	o := options(store, table)
	o.Format = JSONL
	must.Get(Run(context.Background(), strings.NewReader(text), o))(t)
}

func TestLoadOfBatches(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from",
		typedColumns(t, 1, "id int64", "text string", "tags array(string)", "n decimal(9,2)"))
	var text strings.Builder
	for i := range 20_000 {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&text, `{"id":%d}`+"\n", i)
		case 1:
			fmt.Fprintf(&text, `{"id":%d,"text":"","tags":[],"n":"-1.50"}`+"\n", i)
		default:
			fmt.Fprintf(&text, `{"id":%d,"text":"%s","tags":["",null,"x"],"n":"%d.25"}`+"\n",
				i, strings.Repeat("x", 2000), i)
		}
	}
	loadText(t, store, from, text.String())
	all := createTable(t, store, "all", from.Schema())
	result := must.Get(Run(context.Background(), nil, batchOptions(store, from, all)))(t)
	must.Equal(t, result.Rows, 20_000)
	must.Equal(t, printed(t, all, output.JSONL), printed(t, from, output.JSONL), "the rows differ from the batches")
	part := createTable(t, store, "part", from.Schema())
	result = must.Get(Run(context.Background(), nil, batchOptions(store, from, part, oribi.Where(oribi.Eq("text", "")))))(t)
	must.Equal(t, result.Rows, 6667)
}

func TestConversionsOfBatches(t *testing.T) {
	for _, c := range []struct{ from, value, to, want string }{
		{"int16", "255", "uint8", "255"}, {"int16", "256", "uint8", "256 is out of range for uint8"},
		{"int16", "-1", "uint8", "-1 is out of range for uint8"},
		{"int64", "-9223372036854775808", "int128", "-9223372036854775808"},
		{"uint64", "18446744073709551615", "int64", "18446744073709551615 is out of range for int64"},
		{"int64", "9223372036854775807", "uint64", "9223372036854775807"}, {"int8", "-128", "int64", "-128"},
		{"int64", "128", "int8", "128 is out of range for int8"},
		{"decimal(9,2)", `"1.50"`, "decimal(18,4)", `"1.5000"`},
		{"decimal(18,4)", `"1.5000"`, "decimal(9,2)", `"1.50"`},
		{"decimal(18,4)", `"-1.5010"`, "decimal(9,2)", "-1.5010 has more than 2 decimals"},
		{"decimal(9,0)", `"100"`, "decimal(4,2)", "100 is out of range for decimal(4,2)"},
		{"decimal(38,0)", `"` + strings.Repeat("9", 38) + `"`, "decimal(38,1)",
			strings.Repeat("9", 38) + " is out of range for decimal(38,1)"},
		{"decimal(9,2)", `"-1.50"`, "decimal(9,2)", `"-1.50"`},
		{"decimal(9,2)", `"10.00"`, "decimal(3,2)", "10.00 is out of range for decimal(3,2)"},
		{"float", "0.1", "double", "0.10000000149011612"}, {"float", `"NaN"`, "double", `"NaN"`},
		{"string", `"äö"`, "varchar(2)", `"äö"`},
		{"string", `"abc"`, "varchar(2)", "has 3 characters, varchar(2) has at most 2"},
		{"varchar(2)", `"ab"`, "string", `"ab"`},
		{"binary", `"0xff00"`, "binary", `"0xff00"`}, {"bool", "true", "bool", "true"},
		{"timestamp", "-1", "timestamp", "-1"}, {"date", `"0001-01-01"`, "date", `"0001-01-01"`},
		{"array(int16)", "[1,null,255]", "array(uint8)", "[1,null,255]"},
		{"array(int16)", "[1,256]", "array(uint8)", "element 1: 256 is out of range for uint8"},
		{"array(varchar(3))", `["",null]`, "array(string)", `["",null]`}, {"array(int8)", "[]", "array(int64)", "[]"},
		{"int64", "1", "timestamp", "the input has int64, the table timestamp"},
		{"string", `""`, "binary", "the input has string, the table binary"},
		{"array(int8)", "[]", "array(string)", "the input has array(int8), the table array(string)"},
		{"array(int8)", "[]", "int8", "the input has array(int8), the table int8"},
	} {
		s := typedColumns(t, 1, "key int8", "from "+c.from, "to "+c.to)
		from, to := &s.Columns[1], &s.Columns[2]
		in := must.Get(cell.FromJSON([]byte{}, from, []byte(c.value)))(t)
		convert, _, err := conversion(from, to)
		var out []byte
		if err == nil {
			out, err = convert([]byte("before"), to, in)
		}
		var got string
		if err == nil {
			got = string(celltext.AppendJSON(nil, to, out[len("before"):]))
		}
		if err != nil {
			got = err.Error()
		}
		must.Equal(t, got, c.want, c.from, c.value, c.to)
	}
}

func TestBadRowsOfBatches(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from", typedColumns(t, 1, "id int64", "n int64", "text string"))
	loadText(t, store, from,
		`[{"id":1,"n":1},{"id":2,"n":2,"text":"\"x\""},{"id":3,"n":300,"text":"y"},{"id":4,"n":4}]`)
	to := createTable(t, store, "to", typedColumns(t, 1, "id int8", "n uint8", "text string"))
	loadText(t, store, to, `{"id":2}`)

	_, err := Run(context.Background(), nil, batchOptions(store, from, to))
	must.Equal(t, fmt.Sprint(err), `in: row 3: column "n": 300 is out of range for uint8`)
	o := batchOptions(store, from, to, oribi.To(int64(3)))
	must.Equal(t, fmt.Sprint(must.Err(Run(context.Background(), nil, o))),
		`in: row 2: column "id": key 2: key exists`)
	var bad bytes.Buffer
	o = batchOptions(store, from, to)
	o.SkipBad = &bad
	result, err := Run(context.Background(), nil, o)
	want := `{"id":2,"n":2,"text":"\"x\""}` + "\n" + `{"id":3,"n":300,"text":"y"}` + "\n"
	if err != nil || result.Rows != 2 || result.Skipped != 2 || bad.String() != want {
		t.Errorf("%+v, %v, skipped %s", result, err, bad.String())
	}
}

func TestBatchesOfOtherColumns(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from", typedColumns(t, 1, "id int64", "text string"))
	to := createTable(t, store, "to", typedColumns(t, 1, "id int64", "test string", "day date", "Xx int8", "xX int8"))
	for want, fields := range map[string][]schema.Column{
		`column "text": no such column in table "to"; did you mean "test"?`: from.Schema().Columns,
		`column "day": the input has int64, the table date`:                 {{Name: "day", Type: schema.Int64}},
	} {
		o := batchOptions(store, from, to)
		o.Fields = fields
		if _, err := Run(context.Background(), nil, o); err == nil || !strings.HasPrefix(err.Error(), "in: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The error of batches ends the load after the rows before it; its reader has ended by then.
func TestErrorOfBatches(t *testing.T) {
	store := openStore(t)
	from := createTable(t, store, "from", typedColumns(t, 1, "id int64"))
	failed := errors.New("damaged")
	ended := false
	b := batch.New(from.Schema().Columns, 10)
	for i := range 10 {
		b.Columns[0].SetCell(i, appendInteger(nil, schema.Int64, batch.Int128Of(int64(i))))
	}
	o := batchOptions(store, from, from)
	o.Rows = 10
	o.Batches = iter.Seq2[*batch.RecordBatch, error](func(yield func(*batch.RecordBatch, error) bool) {
		defer func() { ended = true }()
		if yield(b, nil) {
			yield(nil, failed)
		}
	})
	result, err := Run(context.Background(), nil, o)
	if err != failed || result.Rows != 10 || !ended {
		t.Errorf("%+v, %v, ended %t", result, err, ended)
	}
}

// The caller may close what it reads batches from once Run returns, whatever ended it.
func TestBatchesAreNotReadAfterALoad(t *testing.T) {
	store := openStore(t)
	table := createTable(t, store, "t", typedColumns(t, 1, "id int64"))
	loadText(t, store, table, `{"id":0}`)
	b := batch.New(table.Schema().Columns, 1)
	b.Columns[0].SetCell(0, appendInteger(nil, schema.Int64, batch.Int128{}))
	for range 20 {
		var ended atomic.Bool
		o := batchOptions(store, table, table)
		o.Rows = 1
		o.Batches = func(yield func(*batch.RecordBatch, error) bool) {
			defer ended.Store(true)
			for yield(b, nil) {
			}
		}
		if _, err := Run(context.Background(), nil, o); !errors.Is(err, oribi.ErrKeyExists) || !ended.Load() {
			t.Fatalf("%v, ended %t", err, ended.Load())
		}
	}
}
