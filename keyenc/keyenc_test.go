package keyenc

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// fixed returns the cell of an integer that fits 64 bits, sign-extended to width bytes.
func fixed(width int, v int64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(v))
	b = binary.LittleEndian.AppendUint64(b, uint64(v>>63))
	return b[:width]
}

func TestKeyCellsMatchTheWorkedExamples(t *testing.T) {
	cases := []struct {
		typ  schema.Type
		cell []byte
		last bool
		want string
	}{
		{schema.Int8, fixed(1, -128), true, "00"},
		{schema.Int8, fixed(1, -1), true, "7f"},
		{schema.Int8, fixed(1, 0), true, "80"},
		{schema.Int8, fixed(1, 1), true, "81"},
		{schema.Int8, fixed(1, 127), true, "ff"},
		{schema.Uint8, fixed(1, 1), true, "01"},
		{schema.Int16, fixed(2, -1), true, "7fff"},
		{schema.Int16, fixed(2, 1), true, "8001"},
		{schema.Int16, fixed(2, 256), true, "8100"},
		{schema.Int32, fixed(4, math.MinInt32), true, "00000000"},
		{schema.Int32, fixed(4, -1), true, "7fffffff"},
		{schema.Int32, fixed(4, 0), true, "80000000"},
		{schema.Int32, fixed(4, 1), true, "80000001"},
		{schema.Int32, fixed(4, math.MaxInt32), true, "ffffffff"},
		{schema.Int64, fixed(8, -1), true, "7fffffffffffffff"},
		{schema.Int64, fixed(8, 42), true, "800000000000002a"},
		{schema.Uint64, fixed(8, 42), true, "000000000000002a"},
		{schema.Int128, fixed(16, -1), true, "7f" + strings.Repeat("ff", 15)},
		{schema.Timestamp, fixed(8, 1700000000000000), true, "80060a24181e4000"},
		{schema.Date, fixed(4, -719162), true, "7ff506c6"},
		{schema.Date, fixed(4, 0), true, "80000000"},
		{schema.Date, fixed(4, 2932896), true, "802cc0a0"},
		{schema.Decimal32, fixed(4, 12345), true, "80003039"},
		{schema.String, []byte("ab\x00c"), true, "61620063"},
		{schema.String, []byte("ab\x00c"), false, "616200016300 00"},
		{schema.String, []byte{}, false, "0000"},
		{schema.String, []byte("a"), false, "610000"},
		{schema.Binary, []byte("a\x00"), false, "6100010000"},
		{schema.Varchar, []byte("a\x01"), false, "61010000"},
	}
	for _, c := range cases {
		got := AppendKeyCell([]byte("x"), c.typ, c.cell, c.last)
		must.Equal(t, got, append([]byte("x"), must.Hex(t, c.want)...), c.typ, c.cell, "last", c.last)
	}
}

// keySchema returns a schema whose only columns are key columns of the given types.
func keySchema(t testing.TB, types ...schema.Type) *schema.Schema {
	t.Helper()
	columns := make([]schema.Column, len(types))
	for i, typ := range types {
		columns[i] = schema.Column{ID: schema.ColumnID(i), Name: string(rune('a' + i)), Type: typ}
		switch typ {
		case schema.Decimal32:
			columns[i].Precision = 9
		case schema.Decimal64:
			columns[i].Precision = 18
		case schema.Decimal128:
			columns[i].Precision = 38
		case schema.Varchar:
			columns[i].Length = 100
		}
	}
	return must.Get(schema.New(columns, len(types)))(t)
}

func TestCompoundKeysMatchTheWorkedExamples(t *testing.T) {
	three := NewEncoder(keySchema(t, schema.Int32, schema.String, schema.String))
	cells := [][]byte{fixed(4, 7), []byte("a\x00b"), []byte("z"), []byte("no key column")}
	must.Equal(t, three.AppendKey(nil, cells), must.Hex(t, "80 00 00 07 61 00 01 62 00 00 7a"))
	must.Equal(t, three.AppendPrefix(nil, cells[:2]), must.Hex(t, "80 00 00 07 61 00 01 62 00 00"),
		"prefix of two")
	if got := three.AppendPrefix(nil, nil); len(got) != 0 {
		t.Errorf("empty prefix: got %x", got)
	}
	two := NewEncoder(keySchema(t, schema.String, schema.Int16))
	must.Equal(t, two.AppendKey(nil, [][]byte{[]byte("ab"), fixed(2, -2)}), must.Hex(t, "61 62 00 00 7f fe"))
}

func TestComparableOrdersFloats(t *testing.T) {
	ascending := []float64{math.Inf(-1), -math.MaxFloat64, -1e10, -1, -math.SmallestNonzeroFloat64, 0,
		math.SmallestNonzeroFloat64, 1e-300, 1, 1.5, math.MaxFloat64, math.Inf(1)}
	double := func(f float64) []byte {
		return AppendComparable(nil, schema.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
	}
	float := func(f float32) []byte {
		return AppendComparable(nil, schema.Float, binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
	}
	for i := 1; i < len(ascending); i++ {
		if bytes.Compare(double(ascending[i-1]), double(ascending[i])) >= 0 {
			t.Errorf("double: %g is not below %g", ascending[i-1], ascending[i])
		}
		a, b := float32(ascending[i-1]), float32(ascending[i])
		if want := map[bool]int{true: -1, false: 0}[a < b]; bytes.Compare(float(a), float(b)) != want {
			t.Errorf("float: %g compared with %g: want %d", a, b, want)
		}
	}
	negative := math.Copysign(0, -1)
	must.Equal(t, double(negative), double(0), "−0 and +0 differ")
	must.Equal(t, float(float32(negative)), float(0), "−0 and +0 differ")
	if f, tr := AppendComparable(nil, schema.Bool, []byte{0}),
		AppendComparable(nil, schema.Bool, []byte{1}); bytes.Compare(f, tr) >= 0 {
		t.Error("false is not below true")
	}
}

func TestSuccessorAndPrefixEndAreTheNextKeys(t *testing.T) {
	must.Equal(t, Successor([]byte("ab")), []byte("ab\x00"), "successor")
	cases := []struct{ prefix, want string }{{"", ""}, {"61", "62"}, {"61ff", "62"}, {"ffff", ""}, {"00", "01"},
		{"01ffff", "02"}}
	for _, c := range cases {
		must.Equal(t, PrefixEnd(must.Hex(t, c.prefix)), must.Hex(t, c.want), "prefix end of", c.prefix)
	}
	prefix := []byte{1, 0xff}
	PrefixEnd(prefix)
	must.Equal(t, prefix, []byte{1, 0xff}, "PrefixEnd changed its argument")
}
