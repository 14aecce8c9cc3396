package infer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func typesOf(t testing.TB, c *Columns, key ...string) string {
	t.Helper()
	s, err := c.Schema(key)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range s.Columns {
		fmt.Fprintf(&b, "%s %s", s.Columns[i].Name, s.Columns[i].TypeName())
		if s.Columns[i].Nullable {
			b.WriteString(" nullable")
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// columnOf returns the inferred type of a column v of CSV with these values, and why.
func columnOf(t *testing.T, values []string, exact bool) (typeName, reason string) {
	t.Helper()
	text := "k,v\n"
	for i, v := range values {
		text += fmt.Sprintf("a%d,%s\nb%d,\n", i, v, i)
	}
	columns := must.Get(CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ',', Exact: exact}))(t)
	s := must.Get(columns.Schema([]string{"k"}))(t)
	return s.Columns[1].TypeName(), strings.TrimPrefix(columns.Reasons(s), "k string, v ")
}

// A column of CSV gets the first type that keeps its values; with Exact, the first type that also
// prints them as they are in the file. Values are separated by |.
func TestTypesKeepValues(t *testing.T) {
	for _, c := range []struct{ values, want, exact string }{
		{"true|false", "bool", "bool"},
		{"True|False", "bool", "string"},
		{"TRUE|FALSE|true|False", "bool", "string"},
		{"tRUE", "string", "string"},
		{"t|f", "string", "string"},
		{"true|1", "string", "string"},
		{"yes|no", "string", "string"},
		{"1|-20|0", "int64", "int64"},
		{"1|0", "int64", "int64"},
		{"9223372036854775807|-9223372036854775808", "int64", "int64"},
		{"9223372036854775808|1", "decimal(38,0)", "string"}, // a double would be 9223372036854776000
		{"18446744073709551615|-18446744073709551615", "decimal(38,0)", "string"},
		{"99999999999999999999999999999999999999", "decimal(38,0)", "string"},
		{"100000000000000000000000000000000000000", "int128", "string"},
		{"170141183460469231731687303715884105727|-170141183460469231731687303715884105728|5", "int128", "string"},
		{"170141183460469231731687303715884105728", "string", "string"},
		// both print it: the first is exact for its neighbors, too
		{"10000000000000000000|1", "decimal(38,0)", "double"},
		{"1|1.5", "double", "double"},
		{"1.0|2.25|-3.5", "double", "string"},
		{"1.0|2.0", "decimal(9,1)", "decimal(9,1)"},
		{"100.0|1", "double", "string"},
		{"1.10", "decimal(9,2)", "decimal(9,2)"},
		{"1.10|20.00|-0.05|0.00", "decimal(9,2)", "decimal(9,2)"},
		{"1.5|2.5", "decimal(9,1)", "decimal(9,1)"},
		{"12345678.10|1.10", "decimal(18,2)", "decimal(18,2)"},
		{"12345678901234567890.10|1.10", "decimal(38,2)", "decimal(38,2)"},
		{"123456789012345678901234567890123456789.1", "string", "string"},
		{"1.10|1", "double", "string"},
		{"1.10|1.5", "double", "string"},
		{"1.25|1.5|3", "double", "double"},
		{"1.25|1e-9", "double", "double"},
		{"-0.0", "double", "string"},
		{"-0.0|1", "double", "string"},
		{"-0", "double", "double"},
		{"-0|1|9223372036854775807", "string", "string"},
		{"00.5", "string", "string"},
		{"5.|.5", "string", "string"},
		{"0.000001|1.5", "double", "double"},
		{"0.0000001|1.5", "decimal(9,7)", "string"}, // a double would be printed with an exponent
		{"123456789012345.25|1", "double", "double"},
		{"1234567890123456.25|1", "decimal(18,2)", "string"}, // a double would be 1234567890123456.2
		{"12345678901234567.25|1", "decimal(38,2)", "string"},
		{"0.1234567890123456789", "decimal(38,19)", "decimal(38,19)"},
		{"0.1234567890123456789|0.5|100", "decimal(38,19)", "string"},
		{"0.1234567890123456789|12345678901234567890", "string", "string"}, // 39 digits
		{"0.1|0.10000000000000001", "decimal(18,17)", "string"},
		{"0.30000000000000004|0.1", "double", "double"}, // what Python prints for 0.1 + 0.2
		{"9007199254740993|0.5", "decimal(18,1)", "string"},
		{"007", "string", "string"},
		{"+1", "string", "string"},
		{"+5|5", "string", "string"},
		{"1,000", "string", "string"},
		{"0x1p-2|0x10", "string", "string"},
		{"1_000", "string", "string"},
		{"1e5", "string", "string"}, // may be a code
		{"12E7|1.5", "string", "string"},
		{"1e+05|2", "double", "string"},         // R
		{"1e-07|1e+16|0.5", "double", "string"}, // Python
		{"1.0E10|1.0E-5", "double", "string"},   // Java
		{"1e+21", "double", "double"},
		{"1e21|1e16", "double", "string"},
		{"1e400", "string", "string"},
		{"1e-400", "string", "string"},
		{"1.000000000000000056e-01", "string", "string"}, // a double prints it in another form
		{"1e-7|12345678901234567890.5", "string", "string"},
		{"NaN|-Inf|2.5", "double", "double"},
		{"NaN", "double", "double"},
		{"nan|inf|-inf|1.5", "double", "string"}, // Python, polars
		{"Infinity|-Infinity|NaN|1", "double", "string"},
		{"nan|nan", "string", "string"}, // a text: there is no number
		{"Inf", "string", "string"},
		{"Nancy|1", "string", "string"},
		{"N/A|1", "string", "string"},
		{"2024-02-29|0001-01-01", "date", "date"},
		{"2023-02-29", "string", "string"},
		{"2024-02-29|1", "string", "string"},
		{"2024-02-29T10:00:00Z|2024-02-29T10:00:00.123456Z|2024-02-29T10:00:00+00:00|2024-02-29T10:00:00", "timestamp",
			"timestamp"},
		{"2024-02-29 10:00:00", "timestamp", "timestamp"},
		{"2024-02-29 10:00:00+00:00|2024-02-29 10:00:00.123456+00:00", "timestamp", "string"}, // pandas
		{"2024-02-29T10:00:00.000000+0000", "timestamp", "string"},                            // polars
		// DuckDB, BigQuery
		{"2024-02-29 10:00:00+00|2024-02-29 10:00:00 UTC|2024-02-29 10:00:00Z", "timestamp", "string"},
		{"2024-02-29T10:00:00+01:00", "string", "string"},
		{"2024-02-29 10:00:00+01", "string", "string"},
		{"2024-02-29T10:00:00-00:00", "string", "string"},
		{"2024-02-29T10:00:00.1234567Z", "string", "string"},
		{"2024-02-29 10:00:00.123456000", "timestamp", "timestamp"},
		{"2024-02-30T10:00:00Z", "string", "string"},
		{"2024-02-29T24:00:00Z", "string", "string"},
		{"2024-02-29|2024-02-29T10:00:00Z", "string", "string"},
		{"2024-02-29T10:00Z", "string", "string"},
		{"10:00:00", "string", "string"},
		{" 1", "string", "string"},
		{"1 ", "string", "string"},
		{`""|1`, "string", "string"}, // the empty string is a value
		{"", "string", "string"},
		{"-", "string", "string"},
		{"--1", "string", "string"},
		{"1-1", "string", "string"},
		{"١", "string", "string"},
	} {
		values := strings.Split(c.values, "|")
		if values[0] == "1,000" {
			values[0] = `"1,000"`
		}
		if got, reason := columnOf(t, values, false); got != c.want {
			t.Errorf("%s: %s, want %s", c.values, reason, c.want)
		}
		if got, reason := columnOf(t, values, true); got != c.exact {
			t.Errorf("%s, exactly: %s, want %s", c.values, reason, c.exact)
		}
	}
}

// A JSON number is never a string, a JSON string never a number unless it has the form in which
// scan prints decimals.
func TestTypesOfJSON(t *testing.T) {
	for _, c := range []struct{ values, want, exact string }{
		{`true|false|null`, "bool", "bool"},
		{`"true"`, "string", "string"},
		{`"True"`, "string", "string"},
		{`1|-5`, "int64", "int64"},
		{`1.0|2.25`, "double", "string"},
		{`1.0|2.0`, "double", "string"},
		{`1.10`, "double", "string"},
		{`1|2.5`, "double", "double"},
		{`-0|-0.0|1`, "double", "string"},
		{`1e5|1E-7|2`, "double", "string"},
		{`18446744073709551615|1`, "decimal(38,0)", "string"},
		{`170141183460469231731687303715884105727`, "int128", "string"},
		{`9007199254740993|0.5`, "decimal(18,1)", "string"},
		{`0.1234567890123456789|1`, "decimal(38,19)", "string"},
		{`123456789012345678901234567890123456789012345`,
			`double ("123456789012345678901234567890123456789012345" in line 1 is rounded)`, "string"},
		{`1e-400|1`, `double ("1e-400" in line 1 is rounded)`, "string"},
		{`9007199254740993|1e-30`, `double ("1e-30" in line 2 is rounded)`, "string"},
		{`1e400`, `double ("1e400" in line 1 is out of range)`, "string"},
		{`1|"x"`, `string ("\"x\"" in line 2)`, `string ("\"x\"" in line 2)`},
		{`1|true`, `string ("true" in line 2)`, `string ("true" in line 2)`},
		{`"1.50"|"20.00"`, "decimal(9,2)", "decimal(9,2)"},
		{`"1.0"|"2.25"`, `string ("\"2.25\"" in line 2)`, `string ("\"2.25\"" in line 2)`},
		{`"1"`, "string", "string"},
		{`"NaN"|1.5|"-Inf"`, "double", "double"},
		{`"nan"|1.5`, `string ("\"nan\"" in line 1)`, `string ("\"nan\"" in line 1)`},
		{`"2024-02-29"`, "date", "date"},
		{`"2024-02-29T10:00:00.000Z"|"2024-02-29 10:00:00+00:00"`, "timestamp",
			`string ("\"2024-02-29 10:00:00+00:00\"" in line 2)`},
		{`{"x":1}|[1,2]|[]`, "string (objects and arrays as JSON)", "string (objects and arrays as JSON)"},
		{`5|{"x":1}`, `string ("{\"x\":1}" in line 2)`, `string ("{\"x\":1}" in line 2)`},
		{`""|5`, `string ("" in line 1)`, `string ("" in line 1)`},
		{`5|""`, `string ("" in line 2)`, `string ("" in line 2)`},
		{`null`, "string (no values)", "string (no values)"},
	} {
		text := ""
		for i, v := range strings.Split(c.values, "|") {
			text += fmt.Sprintf(`{"k":%d,"v":%s}`+"\n", i, v)
		}
		for exact, want := range map[bool]string{false: c.want, true: c.exact} {
			columns := must.Get(JSON(context.Background(), strings.NewReader(text), Options{Exact: exact}))(t)
			s := must.Get(columns.Schema([]string{"k"}))(t)
			got := strings.TrimPrefix(columns.Reasons(s), "k int64, v ")
			if !strings.Contains(want, "(\"") {
				got = strings.SplitN(got, " (\"", 2)[0]
			}
			must.Equal(t, got, want, c.values, exact)
		}
	}
}

// A key column is neither nullable nor a double, and an empty key does not make it a string.
func TestKeysKeepTheirType(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"k,v\n,x\n2,y\n", "int64"},
		{"k,v\n\"\",x\n2,y\n", "int64"},
		{"k,v\n2024-01-01,x\n,y\n", "date"},
		{"k,v\na,x\n,y\n", "string"},
		{"k,v\n\"\",x\n", "string"},
		{"k,v\n,x\n", "string"},
		{"k,v\n1.0,x\n2.25,y\n", "decimal(9,2)"},
		{"k,v\n1e-07,x\n", "string"},
		{"k,v\nTrue,x\n", "string"},
		{"k,v\n9223372036854775808,x\n", "decimal(38,0)"},
	} {
		columns := must.Get(CSV(context.Background(), strings.NewReader(c.in), Options{Delimiter: ','}))(t)
		must.Equal(t, typesOf(t, columns, "k"), "k "+c.want+"; v string nullable", c.in)
	}
	columns := must.Get(JSON(context.Background(), strings.NewReader(`{"k":""}`+"\n"+`{"k":2}`), Options{}))(t)
	must.Equal(t, typesOf(t, columns, "k"), "k int64", "an empty key in JSON")
}

// A file without a usable record is described by the first one.
func TestJSONKeepsTheFirstBadRecord(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"{\"a\":NaN}\n", `line 1: column "a": not JSON: invalid character 'N' at start of value`},
		{"\n\n{\"a\":1", "line 3: byte 7: not JSON: unexpected EOF"},
		{"{\"k\":1}\n{\"a\":1,\"a\":2}\n7\n", `line 2: column "a": the name "a" appears twice`},
		{"[1]", "line 1: want an object, not a number"},
		{"\"x\"\n", "line 1: want an object, not a string"},
		{"{}\n", ""},
	} {
		columns := must.Get(JSON(context.Background(), strings.NewReader(c.in), Options{}))(t)
		got := ""
		if columns.Bad != nil {
			got = columns.Bad.Error()
		}
		must.Equal(t, got, c.want, c.in)
	}
}

func TestJSONColumnsMayBeChosen(t *testing.T) {
	in := `{"a":1,"b":2,"c":"x"}` + "\n" + `{"c":"y","b":2.5,"d":{},"":5}`
	columns := must.Get(JSON(context.Background(), strings.NewReader(in), Options{Columns: []string{"c", "b"}}))(t)
	must.Equal(t, typesOf(t, columns, "c"), "c string; b double nullable")
}

func TestKeysComeFirstWithKeyableTypes(t *testing.T) {
	text := "a,b,c,d,e\n1,true,1.5,1,x\n2,false,2.5,,y\nragged\n"
	columns := must.Get(CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','}))(t)
	must.Equal(t, typesOf(t, columns, "d", "c", "b", "a"),
		"d int64; c decimal(9,1); b string; a int64; e string nullable")
	for _, key := range [][]string{{"x"}, {"a", "a"}, {}} {
		must.Refuse(t, must.Err(columns.Schema(key)), key)
	}
}

func TestObjectsMayHaveDifferentNames(t *testing.T) {
	text := "\xef\xbb\xbf" + `{"a":1,"b":true,"c":"2024-02-29","d":"1"}
[1]

{"e":1.10,"a":2,"b":null,"d":"x","f":null}
{"g":{"x":1},"h":"NaN","h2":"\u0032"}
`
	columns := must.Get(JSON(context.Background(), strings.NewReader(text), Options{}))(t)
	want := "a int64; b bool nullable; c date nullable; d string nullable; e double nullable; f string nullable; g " +
		"string nullable; h double nullable; h2 string nullable"
	must.Equal(t, typesOf(t, columns, "a"), want)
	var wide strings.Builder
	for i := range schema.MaxColumns + 1 {
		fmt.Fprintf(&wide, `{"c%d":1}`+"\n", i)
	}
	must.Fail(t, must.Err(JSON(context.Background(), strings.NewReader(wide.String()), Options{})),
		ErrTooMany, schema.MaxColumns+1)
}

// Only the beginning of a stream is read, and only complete records of it.
func TestBeginningIgnoresIncompleteRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		in   io.Reader
		rows int
		want string
	}{
		{"all", strings.NewReader("k,v\n1,2\n3,x"), 0, "k int64; v string nullable"},
		{"rows", strings.NewReader("k,v\n1,2\n3,x"), 1, "k int64; v int64 nullable"},
		{"bytes", Beginning(strings.NewReader("k,v\n1,2024-01-01\n3,2024-01-01\n"), 25), 0, "k int64; v date nullable"},
		{"all bytes", Beginning(strings.NewReader("k,v\n1,2\n3,x"), 100), 0, "k int64; v string nullable"},
	} {
		columns := must.Get(CSV(context.Background(), c.in, Options{Delimiter: ',', Rows: c.rows}))(t)
		must.Equal(t, typesOf(t, columns, "k"), c.want, c.name)
	}
}

// The message names the value because of which a column is a string.
func TestReasonsNameTheValueThatForcedAString(t *testing.T) {
	text := "k,price,city,n,none,flag,id\n1,1.50,Oslo,N/A,,true,\n2,N/A,Lima,5,,yes,7\n3,2.50,Rome,6,,no,8\n"
	columns := must.Get(CSV(context.Background(), strings.NewReader(text), Options{Delimiter: ','}))(t)
	s := must.Get(columns.Schema([]string{"k", "id", "flag"}))(t)
	want := `k int64, id int64, flag string ("yes" in line 3), price string ("N/A" in line 3), city string, n string ("N/A" in line 2), none string (no values)`
	must.Equal(t, columns.Reasons(s), want)
}

func TestDecideSetsType(t *testing.T) {
	columns := must.Get(CSV(context.Background(), strings.NewReader("k,a,b\n1,2,x\n"), Options{Delimiter: ','}))(t)
	for name, typeName := range map[string]string{"a": "decimal(10,3)", "k": "int16"} {
		must.Do(t, columns.Decide(name, typeName))
	}
	must.Equal(t, typesOf(t, columns, "k"), "k int16; a decimal(10,3) nullable; b string nullable")
	must.Equal(t, fmt.Sprint(columns.Decide("nope", "int16")),
		`column "nope": no such column in the file; there is "k", "a", "b"`)
	must.Refuse(t, columns.Decide("a", "int17"), "int17 was accepted")
}

// numberTexts yields texts of numbers of many forms.
func numberTexts(r *rand.Rand) []byte {
	text := fmt.Appendf(nil, "%s%d", []string{"", "-"}[r.IntN(2)], r.Uint64()>>r.IntN(64))
	if r.IntN(3) > 0 {
		text = fmt.Appendf(append(text, '.'), "%0*d", 1+r.IntN(8), r.IntN(100_000))
	}
	switch r.IntN(8) {
	case 0:
		text = append(text, "000"[:r.IntN(4)]...)
	case 1:
		text = fmt.Appendf(text, "%c%s%02d", "eE"[r.IntN(2)], []string{"", "-", "+"}[r.IntN(3)], r.IntN(30))
	case 2:
		text = strconv.AppendFloat(nil, math.Float64frombits(r.Uint64()), "eg"[r.IntN(2)], -1, 64)
	}
	return text
}

// Each type that is said to keep a number's text or value does; the oracle is math/big.
func TestTypesKeepEveryNumber(t *testing.T) {
	r := seedtest.Rand(t)
	for range 50_000 {
		text := numberTexts(r)
		want, ok := new(big.Rat).SetString(string(text))
		if !ok {
			continue // NaN, Inf
		}
		for _, exact := range []bool{false, true} {
			c := &Columns{exact: exact}
			k, s := c.fieldKinds(text, allKinds)
			for kind, column := range map[kinds]schema.Column{isInteger: {Type: schema.Int64},
				isWhole: {Type: schema.Int128}, isDouble: {Type: schema.Double},
				isDecimal: decimalFor(s), isMixed: decimalFor(s)} {
				if k&kind == 0 {
					continue
				}
				value, err := celltext.FromField(nil, &column, text)
				if err != nil {
					if column.Type.Decimal() && s.whole+s.decimals > schema.MaxPrecision {
						continue // the column counts its digits
					}
					t.Fatalf("%s as %s: %v", text, column.TypeName(), err)
				}
				printed := string(celltext.AppendText(nil, &column, value))
				got, ok := new(big.Rat).SetString(printed)
				if !ok || got.Cmp(want) != 0 || strings.HasPrefix(printed, "-") != (text[0] == '-') {
					t.Fatalf("%s as %s is printed as %s", text, column.TypeName(), printed)
				}
				if plain := !bytes.ContainsAny(text, "eE"); exact && printed != string(text) ||
					plain && trimZeros(printed) != trimZeros(string(text)) {
					t.Fatalf("%s as %s is printed as %s", text, column.TypeName(), printed)
				}
			}
		}
	}
}

// decimalFor returns a decimal column for a number.
func decimalFor(s shape) schema.Column {
	n := min(max(1, s.whole+s.decimals), schema.MaxPrecision)
	return schema.Column{Type: schema.DecimalType(n), Precision: n, Scale: min(s.decimals, n)}
}

// trimZeros removes the zeros at the end of a fraction.
func trimZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// With Exact, each type that prints a number unchanged is found.
func TestExactTypesPrintEveryNumberUnchanged(t *testing.T) {
	r := seedtest.Rand(t)
	for range 20_000 {
		text := numberTexts(r)
		c := &Columns{exact: true}
		k, s := c.fieldKinds(text, allKinds)
		for kind, column := range map[kinds]schema.Column{isInteger: {Type: schema.Int64},
			isDouble: {Type: schema.Double}, isDecimal: decimalFor(s)} {
			value, err := celltext.FromField(nil, &column, text)
			same := err == nil && string(celltext.AppendText(nil, &column, value)) == string(text)
			if column.Type.Decimal() && s.decimals == 0 {
				same = false // an integer
			}
			if got := k&kind != 0; got != same && !(column.Type.Decimal() && s.whole+s.decimals > schema.MaxPrecision) {
				t.Fatalf("%s as %s: got %v, want %v (%v)", text, column.TypeName(), got, same, err)
			}
		}
	}
}

func BenchmarkKinds(b *testing.B) {
	for _, text := range []string{"155190", "21168.23", "0.04", "1996-03-13", "1996-03-13T10:00:00Z",
		"true", "egular courts above the"} {
		b.Run(text, func(b *testing.B) {
			c := &Columns{}
			must.Get(c.add("x"))(b)
			value := []byte(text)
			b.ReportAllocs()
			for line := 0; b.Loop(); line++ {
				c.see(0, value, line, c.fieldKinds)
			}
		})
	}
}
