package values

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/oribi-db/oribi/schema"
)

// RandomRetype returns c with another type that has all values of its type; ok is false if there is
// none.
func RandomRetype(r *rand.Rand, c *schema.Column) (to schema.Column, ok bool) {
	var types []schema.Type
	switch c.Type {
	case schema.Bool:
		types = []schema.Type{schema.Int8, schema.Int64, schema.String}
	case schema.Int8:
		types = []schema.Type{schema.Int16, schema.Int64, schema.Double, schema.String}
	case schema.Int16:
		types = []schema.Type{schema.Int32, schema.Int128, schema.String}
	case schema.Int32:
		types = []schema.Type{schema.Int64, schema.Double, schema.String}
	case schema.Int64:
		types = []schema.Type{schema.Int128, schema.String}
	case schema.Float:
		types = []schema.Type{schema.Double}
	case schema.Decimal32:
		types = []schema.Type{schema.Decimal64, schema.Decimal128}
	case schema.Decimal64:
		types = []schema.Type{schema.Decimal128}
	case schema.Varchar:
		types = []schema.Type{schema.String}
	default:
		return to, false
	}
	to = *c
	to.Type, to.Length = types[r.IntN(len(types))], 0
	switch to.Type {
	case schema.Decimal64:
		to.Precision = 18
	case schema.Decimal128:
		to.Precision = 38
	default:
		to.Precision, to.Scale = 0, 0
	}
	if !to.Encoding.Allowed(to.Stored()) {
		to.Encoding = 0
	}
	to.Default = Retyped(c, &to, c.Default)
	to.ReadDefault = to.Default
	return to, true
}

// Retyped returns the cell of a column for one of another type that has all its values, nil for
// NULL.
func Retyped(from, to *schema.Column, cell []byte) []byte {
	if cell == nil {
		return nil
	}
	switch from.Type {
	case schema.Varchar:
		return cell
	case schema.Float:
		f := math.Float32frombits(binary.LittleEndian.Uint32(cell))
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(f)))
	}
	var n int64
	for i, b := range cell {
		n |= int64(b) << (8 * i)
	}
	if n = n << (64 - 8*len(cell)) >> (64 - 8*len(cell)); from.Type == schema.Bool && to.Type == schema.String {
		return strconv.AppendBool(nil, n == 1)
	}
	switch to.Type {
	case schema.String:
		return strconv.AppendInt(nil, n, 10)
	case schema.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(n)))
	}
	wide := binary.LittleEndian.AppendUint64(nil, uint64(n))
	wide = binary.LittleEndian.AppendUint64(wide, uint64(n>>63))
	return wide[:to.Type.Width()]
}
