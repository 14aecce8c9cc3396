package cell

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// column returns a column of a type, named as in schema files.
func column(t testing.TB, typeName string) *schema.Column {
	t.Helper()
	c := &schema.Column{Name: "x"}
	must.Do(t, c.ParseTypeName(typeName))
	return c
}

func TestJSONAndTextOfEveryType(t *testing.T) {
	for _, c := range []struct{ typeName, in, cell, json, text string }{
		{"bool", `true`, "01", `true`, `true`},
		{"bool", `false`, "00", `false`, `false`},
		{"int8", `-128`, "80", `-128`, `-128`},
		{"int8", `127`, "7f", `127`, `127`},
		{"int16", `-32768`, "0080", `-32768`, `-32768`},
		{"int32", `2147483647`, "ffffff7f", `2147483647`, `2147483647`},
		{"int64", `-9223372036854775808`, "0000000000000080", `-9223372036854775808`, `-9223372036854775808`},
		{"int64", `9223372036854775807`, "ffffffffffffff7f", `9223372036854775807`, `9223372036854775807`},
		{"int64", `-0`, "0000000000000000", `0`, `0`},
		{"timestamp", `1`, "0100000000000000", `1`, `1970-01-01T00:00:00.000001Z`},
		{"float", `0.1`, "cdcccc3d", `0.1`, `0.1`},
		{"float", `16777217`, "0000804b", `16777216`, `16777216`},
		{"double", `0.1`, "9a9999999999b93f", `0.1`, `0.1`},
		{"double", `-0`, "0000000000000080", `-0`, `-0`},
		{"double", `1e21`, "50efe2d6e41a4b44", `1e+21`, `1e+21`},
		{"double", `0.0000001`, "48afbc9af2d77a3e", `1e-7`, `1e-7`},
		{"double", `"NaN"`, "000000000000f87f", `"NaN"`, `NaN`},
		{"double", `"+Inf"`, "000000000000f07f", `"+Inf"`, `+Inf`},
		{"float", `"-Inf"`, "000080ff", `"-Inf"`, `-Inf`},
		{"float", `"NaN"`, "0000c07f", `"NaN"`, `NaN`},
		{"decimal(5,2)", `"1.50"`, "96000000", `"1.50"`, `1.50`},
		{"decimal(5,2)", `1.5`, "96000000", `"1.50"`, `1.50`},
		{"decimal(5,2)", `-999.99`, "6179feff", `"-999.99"`, `-999.99`},
		{"decimal(5,2)", `"-0.05"`, "fbffffff", `"-0.05"`, `-0.05`},
		{"decimal(5,5)", `0.00001`, "01000000", `"0.00001"`, `0.00001`},
		{"decimal(9,0)", `7`, "07000000", `"7"`, `7`},
		{"decimal(18,2)", `"-9999999999999999.99"`, "01009c584c491ff2", `"-9999999999999999.99"`,
			`-9999999999999999.99`},
		{"decimal(38,0)", `"99999999999999999999999999999999999999"`, "ffffffff3f228a097ac4865aa84c3b4b",
			`"99999999999999999999999999999999999999"`, `99999999999999999999999999999999999999`},
		{"string", `""`, "", `""`, ``},
		{"string", `"a\"b\\c\n\u0001\u00e9<>&\u2028"`, "6122625c630a01c3a93c3e26e280a8",
			"\"a\\\"b\\\\c\\n\\u0001é<>&\u2028\"", "a\"b\\c\n\x01é<>&\u2028"},
		{"varchar(2)", `"éé"`, "c3a9c3a9", `"éé"`, `éé`},
		{"binary", `"0xAb00"`, "ab00", `"0xab00"`, `0xab00`},
		{"binary", `"0x"`, "", `"0x"`, `0x`},
		{"date", `"1970-01-01"`, "00000000", `"1970-01-01"`, `1970-01-01`},
		{"date", `"0001-01-01"`, "c606f5ff", `"0001-01-01"`, `0001-01-01`},
		{"date", `"9999-12-31"`, "a0c02c00", `"9999-12-31"`, `9999-12-31`},
		{"date", `"2024-02-29"`, "464d0000", `"2024-02-29"`, `2024-02-29`},
		{"uint8", `255`, "ff", `255`, `255`},
		{"uint64", `18446744073709551615`, "ffffffffffffffff", `18446744073709551615`, `18446744073709551615`},
		{"int128", `-170141183460469231731687303715884105728`, "00000000000000000000000000000080",
			`-170141183460469231731687303715884105728`, `-170141183460469231731687303715884105728`},
		{"array(int32)", `[ 5, null , -1 ]`, "03000505000000ffffffff", `[5,null,-1]`, `[5,null,-1]`},
		{"array(int32)", `[]`, "0000", `[]`, `[]`},
		{"array(bool)", `[true,false]`, "0200030100", `[true,false]`, `[true,false]`},
		{"array(string)", `["a,\"b",null,""]`, "0300050400000004000000612c2262", `["a,\"b",null,""]`,
			`["a,\"b",null,""]`},
		{"array(decimal(5,2))", `[1.5,"-0.05"]`, "02000396000000fbffffff", `["1.50","-0.05"]`, `["1.50","-0.05"]`},
		{"array(date)", `["1970-01-02"]`, "01000101000000", `["1970-01-02"]`, `["1970-01-02"]`},
		{"array(double)", `["NaN",1]`, "020003000000000000f87f000000000000f03f", `["NaN",1]`, `["NaN",1]`},
		{"array(binary)", `["0xAB"]`, "01000101000000ab", `["0xab"]`, `["0xab"]`},
	} {
		col := column(t, c.typeName)
		got, err := FromJSON([]byte{}, col, []byte(c.in))
		if err != nil || hex.EncodeToString(got) != c.cell {
			t.Errorf("%s %s: got cell %x, %v, want %s", c.typeName, c.in, got, err, c.cell)
			continue
		}
		must.Equal(t, string(celltext.AppendJSON(nil, col, got)), c.json, c.typeName, c.in, "prints as")
		must.Equal(t, string(celltext.AppendText(nil, col, got)), c.text, c.typeName, c.in, "text")
		must.Equal(t, must.Get(FromField([]byte{}, col, []byte(c.text)))(t), got,
			c.typeName, c.text, "parsed as a field")
	}
	must.Equal(t, string(celltext.AppendJSON(nil, column(t, "date"), nil)), "null", "NULL prints as")
}

func TestFromJSONRefusesUnrepresentableValues(t *testing.T) {
	for _, c := range []struct{ typeName, in, want string }{
		{"bool", `1`, "want true or false, not a number"},
		{"int8", `128`, `"128" is out of range for int8`},
		{"int8", `-129`, "out of range"},
		{"int64", `9223372036854775808`, "out of range for int64"},
		{"int64", `1.0`, "plain digits"},
		{"int64", `1e3`, "plain digits"},
		{"int64", `"1"`, "want an integer, not a string"},
		{"timestamp", `"2026-01-01"`, "is not a time"},
		{"float", `1e39`, "out of range"},
		{"double", `1e309`, "out of range"},
		{"double", `"Inf"`, "not \"Inf\""},
		{"double", `true`, "want a number, not a boolean"},
		{"decimal(5,2)", `1000`, `"1000" is out of range for decimal(5,2)`},
		{"decimal(5,2)", `1.500`, "more than 2 decimals"},
		{"decimal(5,2)", `1e1`, "plain digits"},
		{"decimal(5,2)", `"+1"`, "plain digits"},
		{"decimal(5,2)", `"1."`, "plain digits"},
		{"decimal(5,2)", `""`, "plain digits"},
		{"decimal(38,0)", `"100000000000000000000000000000000000000"`, "out of range"},
		{"string", `1`, "want a string, not a number"},
		{"varchar(2)", `"abc"`, "has 3 characters, varchar(2) has at most 2"},
		{"binary", `"ab"`, `want "0x…"`},
		{"binary", `"0xa"`, "two digits per byte"},
		{"binary", `"0xzz"`, "two digits per byte"},
		{"date", `"2023-02-29"`, "is not a date"},
		{"date", `"2023-2-9"`, "is not a date"},
		{"date", `"0000-12-31"`, "out of range"},
		{"date", `"10000-01-01"`, "is not a date"},
		{"date", `5`, "want a date"},
		{"string", `{}`, "not an object"},
		{"int32", `[1]`, "not an array"},
		{"array(int32)", `5`, "want an array, not a number"},
		{"array(int32)", `{"a":1}`, "want an array, not an object"},
		{"array(int32)", `[1,2147483648]`, `element 1: "2147483648" is out of range for int32`},
		{"array(int32)", `[[1]]`, "element 0: want an integer, not an array"},
		{"array(varchar(1))", `["a","ab"]`, "element 1: has 2 characters, varchar(1) has at most 1"},
		{"array(int8)", "[" + strings.Repeat("null,", 65535) + "1]", "has more than 65535 elements"},
	} {
		if got, err := FromJSON([]byte{}, column(t, c.typeName), []byte(c.in)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %x, %v, want error %q", c.typeName, c.in, got, err, c.want)
		}
	}
}

func TestFromNumberAcceptsAllNotations(t *testing.T) {
	for _, c := range []struct{ typeName, in, want string }{
		{"int32", "1.0", "1"}, {"int32", "1e3", "1000"}, {"int32", "1500e-2", "15"},
		{"int8", "-1.28e2", "-128"}, {"int8", "1.27e2", "127"},
		{"int32", "0e999999999999", "0"}, {"decimal(5,2)", "1.500", "1.50"}, {"decimal(5,2)", "1e2", "100.00"},
		{"double", "1e2", "100"}, {"timestamp", "5", "1970-01-01T00:00:00.000005Z"},
		{"int32", "1.5", ""}, {"int32", "1e10", ""}, {"int32", "1e999999999999999999999", ""},
		{"int32", "1e-999999999999999999", ""},
		{"decimal(5,2)", "1.505", ""}, {"decimal(5,2)", "1e3", ""},
	} {
		col := column(t, c.typeName)
		got, err := celltext.FromNumber([]byte{}, col, c.in)
		if c.want == "" {
			must.Refuse(t, err, c.typeName, c.in, got)
		} else if s := string(celltext.AppendText(nil, col, got)); err != nil || s != c.want {
			t.Errorf("%s %s: got %s, %v, want %s", c.typeName, c.in, s, err, c.want)
		}
	}
}

// The oracle is math/big, which shares no code with the arithmetic here.
func TestWideIntegersAgreeWithBigArithmetic(t *testing.T) {
	seed := seedtest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	col := &schema.Column{Name: "x", Type: schema.Int128}
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	for range 2000 {
		n := new(big.Int).Rsh(new(big.Int).SetUint64(r.Uint64()), uint(r.IntN(64)))
		n.Lsh(n, uint(r.IntN(70))).Add(n, big.NewInt(int64(r.IntN(3)-1)))
		if r.IntN(2) == 0 {
			n.Neg(n)
		}
		fits := n.Cmp(limit) < 0 && n.Cmp(new(big.Int).Neg(limit)) >= 0
		got, err := FromJSON([]byte{}, col, []byte(n.String()))
		if (err == nil) != fits {
			t.Fatalf("%s: %v", n, err)
		}
		if !fits {
			continue
		}
		m := new(big.Int).SetUint64(binary.LittleEndian.Uint64(got[8:]))
		m.Lsh(m, 64).Add(m, new(big.Int).SetUint64(binary.LittleEndian.Uint64(got)))
		if m.Bit(127) == 1 {
			m.Sub(m, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		must.Equal(t, m.Cmp(n), 0, n, "became")
		must.Equal(t, string(celltext.AppendText(nil, col, got)), n.String(), n, "printed")
	}
}

// Floats are printed in the shortest form, laid out like encoding/json does.
func TestFloatsPrintAsEncodingJSONDoes(t *testing.T) {
	seed := seedtest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		f := math.Float64frombits(r.Uint64())
		g := math.Float32frombits(r.Uint32())
		if r.IntN(4) == 0 {
			f, g = float64(r.Int64N(1e6))/1000, float32(r.Int64N(1e6))/1000
		}
		for _, v := range []any{f, g} {
			want, err := json.Marshal(v)
			if err != nil {
				continue // NaN, infinities
			}
			typeName := "double"
			if _, single := v.(float32); single {
				typeName = "float"
			}
			col := column(t, typeName)
			value, err := FromJSON([]byte{}, col, want)
			must.Do(t, err)
			must.Equal(t, string(celltext.AppendJSON(nil, col, value)), string(want), v, "prints as")
		}
	}
}

func FuzzQuotedStringsReadBack(f *testing.F) {
	f.Add("a\"\\\x00\x1f é")
	fuzztest.Run(f, func(t *testing.T, s string) {
		value := celltext.AppendQuoted(nil, []byte(s))
		if err := jsonin.Check(value); err != nil {
			return // s is not valid UTF-8
		}
		must.Equal(t, string(jsonin.String(value)), s, s, "became")
	})
}

func compound(t testing.TB) *schema.Schema {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{{ID: 0, Name: "a", Type: schema.String},
		{ID: 1, Name: "b", Type: schema.Int32},
		{ID: 2, Name: "c", Type: schema.Int8}, {ID: 3, Name: "v", Type: schema.Double}}, 3))(t)
	return s
}

func TestKeys(t *testing.T) {
	single := must.Get(schema.New([]schema.Column{{ID: 0, Name: "k", Type: schema.Int8},
		{ID: 1, Name: "v", Type: schema.Double}}, 1))(t)
	three := compound(t)
	for _, c := range []struct {
		s      *schema.Schema
		text   string
		prefix bool
		want   string // cells in hex, or the error
	}{
		{single, `5`, false, "05"},
		{single, ` -5 `, false, "fb"},
		{single, `{"k":5}`, true, "05"},
		{single, `{}`, true, `key column "k" is missing`},
		{single, `300`, false, `column "k": "300" is out of range for int8`},
		{single, `null`, false, `column "k": a key column is never NULL`},
		{single, `{"k":1,"v":2}`, false, `column "v" is not in the key`},
		{single, `{"x":1}`, false, `column "x": no such column`},
		{single, `x`, false, `"x" is not a value of type int8`},
		{single, ``, false, `"" is not a value of type int8`},
		{single, `{x`, false, `not JSON`},
		{three, `x`, false, `want an object with 3 key columns, not "x"`},
		{three, `{"c":3,"b":2,"a":""}`, false, " 02000000 03"},
		{three, `{"a":"q"}`, true, "71"},
		{three, `{"b":2,"a":"q"}`, true, "71 02000000"},
		{three, `{"b":2,"a":"q"}`, false, `key column "c" is missing`},
		{three, `{"a":"q","c":1}`, true, `key column "b" is missing`},
		{three, `{"b":1}`, true, `key column "a" is missing`},
		{three, `"q"`, true, `want an object with 3 key columns, not a string`},
		{three, `{"a":"q","a":"r"}`, true, `the name "a" appears twice`},
	} {
		cells, err := Key(c.s, c.text, c.prefix)
		var parts []string
		for _, cell := range cells {
			parts = append(parts, hex.EncodeToString(cell))
		}
		got := strings.Join(parts, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s (prefix %v): got %q, want %q", c.text, c.prefix, got, c.want)
		}
	}
}
