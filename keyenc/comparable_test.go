package keyenc

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/schema"
)

// TestFromComparableIsTheInverse encodes random cells of each type, and those with special bits.
func TestFromComparableIsTheInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []schema.Type{schema.Bool, schema.Int8, schema.Int16, schema.Int32, schema.Int64,
		schema.Int128, schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64,
		schema.Float, schema.Double, schema.Decimal32, schema.Decimal64, schema.Decimal128, schema.Date,
		schema.Timestamp, schema.String, schema.Binary} {
		for i := range 2000 {
			cell := make([]byte, typ.Width())
			if typ.Variable() {
				cell = make([]byte, random.IntN(20))
			}
			for k := range cell {
				cell[k] = byte(random.Uint32() >> (8 * (i % 2)))
				if i < 2 {
					cell[k] = byte(-i) // all 0, all 1
				}
			}
			if typ == schema.Bool {
				cell[0] &= 1
			}
			encoded := AppendComparable(nil, typ, cell)
			got, ok := AppendFromComparable([]byte("x"), typ, encoded)
			if zero := isNegativeZero(typ, cell); !ok || got[0] != 'x' || !bytes.Equal(got[1:], cell) && !zero {
				t.Fatalf("%v: %x → %x → %x, %v", typ, cell, encoded, got, ok)
			}
			if _, ok := AppendFromComparable(nil, typ, append(encoded, 0)); ok != typ.Variable() {
				t.Errorf("%v: a byte too many: %v", typ, ok)
			}
		}
	}
}

// isNegativeZero reports whether a cell is −0, which is encoded as +0.
func isNegativeZero(typ schema.Type, cell []byte) bool {
	rest := bytes.Trim(cell, "\x00")
	return (typ == schema.Float || typ == schema.Double) && len(rest) == 1 && rest[0] == 0x80 &&
		cell[len(cell)-1] == 0x80
}
