package carbonlines

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// columnsOf returns the columns a, b, … of types.
func columnsOf(t testing.TB, types ...string) []carbondata.Column {
	t.Helper()
	columns := make([]carbondata.Column, len(types))
	for i, name := range types {
		c := must.Get(ParseType(name))(t)
		c.Name = string(rune('a' + i))
		columns[i] = c
	}
	return columns
}

// readAll returns the rows of a text, and the error with its line that ended the reading.
func readAll(text string, columns []carbondata.Column) (rows [][]any, err error) {
	r := NewReader(strings.NewReader(text), columns)
	for {
		row, err := r.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, fmt.Errorf("%d: %w", r.Line(), err)
		}
		rows = append(rows, row)
	}
}

func TestValuesOfEveryType(t *testing.T) {
	wide := batch.Int128{Lo: 0x098a223fffffffff, Hi: 0x4b3b4ca85a86c47a} // 10^38 - 1
	for _, c := range []struct {
		typ, in string
		value   any
		out     string
	}{
		{"BOOLEAN", "true", true, ""},
		{"BYTE", "-128", int8(-128), ""},
		{"SHORT", "32767", int16(32767), ""},
		{"INT", "-2147483648", int32(math.MinInt32), ""},
		{"LONG", "9223372036854775807", int64(math.MaxInt64), ""},
		{"FLOAT", "0.1", float32(0.1), ""},
		{"FLOAT", `"-Inf"`, float32(math.Inf(-1)), ""},
		{"DOUBLE", "-0", math.Copysign(0, -1), ""},
		{"DOUBLE", "1e+21", 1e21, ""},
		{"DOUBLE", `"+Inf"`, math.Inf(1), ""},
		{"DECIMAL(9,2)", `"-1.50"`, batch.Int128Of(-150), ""},
		{"DECIMAL(9,2)", `1.5`, batch.Int128Of(150), `"1.50"`},
		{"DECIMAL(18,0)", `"-999999999999999999"`, batch.Int128Of(-999999999999999999), ""},
		{"DECIMAL(38,38)", `"0.` + strings.Repeat("9", 38) + `"`, wide, ""},
		{"DATE", `"1969-12-31"`, carbondata.Days(-1), ""},
		{"DATE", `"0001-01-01"`, carbondata.Days(-719162), ""},
		{"DATE", `"9999-12-31"`, carbondata.Days(2932896), ""},
		{"TIMESTAMP", "-1000", carbondata.Micros(-1000), ""},
		{"TIMESTAMP", `"1970-01-01T00:00:01Z"`, carbondata.Micros(1e6), "1000000"},
		{"STRING", `""`, "", ""},
		{"STRING", `"é\n\"<\u0001"`, "é\n\"<\x01", ""},
		{"VARCHAR", `"a"`, "a", ""},
		{"BINARY", `"0x00ff"`, []byte{0, 255}, ""},
		{"BINARY", `"0x"`, []byte{}, ""},
		{"ARRAY<INT>", "[1,null]", []any{int32(1), nil}, ""},
		{"ARRAY<INT>", "[]", []any{}, ""},
		{"ARRAY<ARRAY<DATE>>", `[["1970-01-02"],null]`, []any{[]any{carbondata.Days(1)}, nil}, ""},
		{"STRUCT<p:INT,q:STRING>", `{"p":1,"q":"x"}`, []any{int32(1), "x"}, ""},
		{"STRUCT<p:INT,q:STRING>", `{"q":"x"}`, []any{nil, "x"}, `{"p":null,"q":"x"}`},
		{"STRUCT<p:INT,q:STRING>", `{ "q" : "x" , "p" : 1 }`, []any{int32(1), "x"}, `{"p":1,"q":"x"}`},
		{"MAP<INT,DECIMAL(3,1)>", `[[2,"1.0"],[1,null],[2,"0.5"]]`,
			[]any{[]any{int32(2), batch.Int128Of(10)}, []any{int32(1), nil}, []any{int32(2), batch.Int128Of(5)}}, ""},
		{"MAP<INT,INT>", `[null,[1,null]]`, []any{nil, []any{int32(1), nil}}, ""},
		{"ARRAY<STRUCT<m:MAP<STRING,ARRAY<LONG>>>>", `[{"m":[["k",[7]]]}]`,
			[]any{[]any{[]any{[]any{"k", []any{int64(7)}}}}}, ""},
		{"INT", "null", nil, ""}, {"STRUCT<p:INT>", "null", nil, ""},
	} {
		columns := columnsOf(t, c.typ)
		must.Equal(t, columns[0].TypeName(), c.typ)
		if c.out == "" {
			c.out = c.in
		}
		rows, err := readAll(`{"a":`+c.in+"}\n", columns)
		if err != nil || len(rows) != 1 || !reflect.DeepEqual(rows[0], []any{c.value}) {
			t.Errorf("%s %s: got %#v, %v, want %#v", c.typ, c.in, rows, err, c.value)
			continue
		}
		must.Equal(t, string(NewPrinter(columns).Append(nil, rows[0])), `{"a":`+c.out+"}", c.typ, c.in)
	}
	nan, err := readAll(`{"a":"NaN","b":"NaN"}`, columnsOf(t, "FLOAT", "DOUBLE"))
	if err != nil || !math.IsNaN(float64(nan[0][0].(float32))) || !math.IsNaN(nan[0][1].(float64)) {
		t.Errorf("NaN: %v, %v", nan, err)
	}
}

func TestReaderRefusesBadRows(t *testing.T) {
	columns := columnsOf(t, "INT", "DECIMAL(3,1)", "ARRAY<DATE>", "STRUCT<p:SHORT,long:STRING>", "MAP<STRING,INT>")
	for _, c := range []struct{ in, want string }{
		{`[]`, ""}, {``, ""}, {"\n \n", ""}, {`{}`, ""},
		{`7`, `1: want an object, not a number`},
		{`x`, `1: byte 1: not JSON`},
		{`{"a":1`, `1: byte 7: not JSON`},
		{"{}\n{\"a\":1,\"a\":2}", `2: byte 8: the name "a" appears twice`},
		{"[{},\n7]", `2: want an object, not a number`},
		{`{"aa":1}`, `1: column "aa": no such column; there is "a", "b", "c", "d", "e"`},
		{`{"a":2147483648}`, `1: column "a": "2147483648" is out of range for int32`},
		{`{"a":1.0}`, `plain digits`},
		{`{"a":"1"}`, `want an integer, not a string`},
		{`{"b":100}`, `1: column "b": "100" is out of range for decimal(3,1)`},
		{`{"b":"1.05"}`, `more than 1 decimals`},
		{`{"c":5}`, `1: column "c": want an array, not a number`},
		{`{"c":["1970-01-01","1970-02-30"]}`, `1: column "c": element 1: "1970-02-30" is not a date`},
		{`{"c":["10000-02-28"]}`, `"10000-02-28" is not a date`},
		{`{"c":["0000-12-31"]}`, `dates are 0001-01-01 to 9999-12-31`}, {`{"c":["1500-02-29"]}`, `is not a date`},
		{`{"c":["1-01-01"]}`, `"1-01-01" is not a date`},
		{`{"d":[1,"x"]}`, `1: column "d": want an object, not an array`},
		{`{"d":{"q":1}}`, `1: column "d": field "q": no such field; there is "long", "p"`},
		{`{"d":{"p":40000}}`, `1: column "d": field "p": "40000" is out of range for int16`},
		{`{"e":{"k":1}}`, `1: column "e": want an array, not an object`},
		{`{"e":[["k",1],"k"]}`, `1: column "e": pair 1: want [key,value], not a string`},
		{`{"e":[["k"]]}`, `1: column "e": pair 0: want [key,value], not 1 of the two`},
		{`{"e":[["k",1,2]]}`, `1: column "e": pair 0: want [key,value], not more than two values`},
		{`{"e":[["k","1"]]}`, `1: column "e": pair 0: want an integer, not a string`},
		{"{\"d\":{\"long\":\"\xff\"}}", `invalid UTF-8`},
	} {
		_, err := readAll(c.in, columns)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestColumnsReadBack(t *testing.T) {
	in := `{"name":"id","type":"INT","sort":true}` + "\n\n" +
		`{"name":"a \"b\"","type":"STRUCT<x:DECIMAL(12,3),y:MAP<STRING,ARRAY<DATE>>>","sort":false}` + "\n"
	columns, err := ReadColumns("f", strings.NewReader(in))
	if err != nil || len(columns) != 2 || columns[1].Ordinal != 1 || columns[0].Sort {
		t.Fatalf("%+v, %v", columns, err)
	}
	columns[0].Sort = true
	got := AppendColumn(append(AppendColumn(nil, &columns[0]), "\n\n"...), &columns[1])
	must.Equal(t, string(got)+"\n", in)
	for _, c := range []struct{ in, want string }{
		{``, "no columns"},
		{`[]`, "no columns"},
		{`{"name":"a"}`, `f:1: "type" is missing`},
		{`{"name":"","type":"INT"}`, `f:1: "name" is missing`},
		{"\n" + `{"name":"a","type":"INTEGER"}`, `f:2: column "a": unknown type "INTEGER"`},
		{`{"name":"a","type":"STRNG"}`, `unknown type "STRNG"; did you mean "STRING"?`},
		{`{"name":"a","type":5}`, `type: want a string, not a number`},
		{`{"name":"a","type":"INT","sort":1}`, `sort: want true or false, not a number`},
		{`{"name":"a","type":"INT","nullable":true}`, `unknown field "nullable"`},
		{`"INT"`, `want an object, not a string`},
	} {
		must.Contain(t, fmt.Sprint(must.Err(ReadColumns("f", strings.NewReader(c.in)))), c.want, c.in)
	}
}

func TestParseTypeRefusesOtherText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"int", ""}, {" Array < String > ", ""}, {"STRUCT<a:INT, b : MAP<INT,INT> >", ""},
		{"", `unknown type ""`}, {"DECIMAL", `want "(", not the end of the type`},
		{"DECIMAL(5)", `want "," before ")"`},
		{"DECIMAL(39,0)", "DECIMAL(39,0): want 1 ≤ precision ≤ 38"}, {"DECIMAL(5,6)", "0 ≤ scale ≤ precision"},
		{"DECIMAL(x,1)", `want a number, not "x"`},
		{"INT>", `want the end before ">"`}, {"ARRAY", `want "<"`}, {"ARRAY<>", `unknown type ""`},
		{"ARRAY<INT,INT>", `want ">" before ",INT>"`},
		{"ARRAY<INT", `want ">", not the end`}, {"STRUCT<INT>", `want ":" before ">"`},
		{"STRUCT<a:INT,>", "want the name of a field"},
		{"STRUCT<:INT>", "want the name of a field"}, {"MAP<INT>", `want "," before ">"`},
		{"MAP<INT,INT,INT>", `want ">"`},
		{strings.Repeat("ARRAY<", 40) + "INT" + strings.Repeat(">", 40), "more than 32 levels of nesting"},
	} {
		_, err := ParseType(c.in)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
}

// Printed rows of the corpus are read back unchanged, and so are their columns.
func TestGoldenRowsReadBack(t *testing.T) {
	root := filepath.Join(corpustest.Dir(t), "golden", "carbondata")
	folders := must.Get(os.ReadDir(root))(t)
	most := 2000
	if testing.Short() {
		most = 50
	}
	for _, f := range folders {
		if !f.IsDir() || f.Name() == "malformed" {
			continue
		}
		table := must.Get(carbondata.Open(filepath.Join(root, f.Name())))(t)
		defer table.Close()
		columns := table.Schema()
		var text []byte
		for _, c := range columns {
			text = append(AppendColumn(text, &c), '\n')
		}
		back := must.Get(ReadColumns("f", strings.NewReader(string(text))))(t)
		printer := NewPrinter(columns)
		text = text[:0]
		var rows [][]any
		for row, err := range table.Rows(context.Background(), carbondata.ScanOptions{}) {
			must.Do(t, err)
			rows = append(rows, row)
			text = append(printer.Append(text, row), '\n')
			if len(rows) == most {
				break
			}
		}
		got := must.Get(readAll(string(text), back))(t)
		must.Equal(t, len(got), len(rows), f.Name())
		for i := range rows {
			must.Equal(t, got[i], rows[i], f.Name(), i)
		}
	}
}

func FuzzReaderNeverPanics(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"p":[["k","1.0"]]}}`))
	columns := columnsOf(f, "INT", "STRUCT<p:MAP<STRING,DECIMAL(20,1)>>", "ARRAY<DOUBLE>", "BINARY")
	printer := NewPrinter(columns)
	fuzztest.Run(f, func(t *testing.T, text []byte) {
		rows, _ := readAll(string(text), columns)
		for _, row := range rows {
			line := string(printer.Append(nil, row))
			back, err := readAll(line, columns)
			if err != nil || len(back) != 1 || string(printer.Append(nil, back[0])) != line {
				t.Fatalf("%s: %v, %v", line, back, err)
			}
		}
	})
}

func FuzzParseTypeNeverPanics(f *testing.F) {
	f.Add("STRUCT<a:DECIMAL(5,2),b:MAP<INT,ARRAY<DATE>>>")
	fuzztest.Run(f, func(t *testing.T, text string) {
		c, err := ParseType(text)
		if err != nil {
			return
		}
		must.Equal(t, c.TypeName(), must.Get(ParseType(c.TypeName()))(t).TypeName(), text)
	})
}

// TestTextThatIsNotUTF8 prints bytes that JSON cannot contain.
func TestTextThatIsNotUTF8(t *testing.T) {
	p := NewPrinter(columnsOf(t, "STRING", "ARRAY<VARCHAR>"))
	must.Equal(t, string(p.Append(nil, []any{"a\xff\"\xfeä", []any{"\xc3", "z"}})),
		`{"a":"a�\"�ä","b":["�","z"]}`)
}
