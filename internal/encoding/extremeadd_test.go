package encoding

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Cells that are added one by one have the extreme that they have in a block.
func TestExtremeOfSingleCells(t *testing.T) {
	r := seedtest.Rand(t)
	le := binary.LittleEndian
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, 2.5, -2.5}
	for _, typ := range []schema.Type{schema.Int8, schema.Uint8, schema.Int16, schema.Uint16, schema.Int32,
		schema.Uint32, schema.Int64, schema.Uint64, schema.Int128, schema.Float, schema.Double} {
		for range 200 {
			v := batch.NewVector(typ, 1+r.IntN(5))
			for i := range v.Len {
				cell := make([]byte, 16)
				le.PutUint64(cell, r.Uint64()>>r.IntN(64))
				le.PutUint64(cell[8:], -(r.Uint64() & 1))
				switch x := special[r.IntN(len(special))]; typ {
				case schema.Double:
					le.PutUint64(cell, math.Float64bits(x))
				case schema.Float:
					le.PutUint32(cell, math.Float32bits(float32(x)))
				}
				v.SetCell(i, cell[:typ.Width()])
			}
			for _, greatest := range []bool{false, true} {
				e, want := Extreme{Greatest: greatest}, []byte(nil)
				for i := range v.Len {
					e.Add(typ, v.Cell(i))
					cell := v.Cell(i)
					if want == nil || isNaNCell(typ, want) ||
						!isNaNCell(typ, cell) && compareZeros(typ, cell, want) > 0 == greatest {
						want = cell
					}
				}
				if got := e.Cell(); !bytes.Equal(got, want) && !(isNaNCell(typ, got) && isNaNCell(typ, want)) {
					t.Fatalf("%v, greatest %v: %x, want %x of %x", typ, greatest, got, want, v.Data)
				}
			}
		}
	}
	must.Equal(t, (&Extreme{}).Cell() == nil, true)
}

// compareZeros is batch.Compare with −0 below +0.
func compareZeros(typ schema.Type, a, b []byte) int {
	last := len(a) - 1
	return cmp.Or(batch.Compare(typ, a, b), cmp.Compare(b[last], a[last]))
}

func isNaNCell(typ schema.Type, cell []byte) bool {
	switch typ {
	case schema.Double:
		return math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(cell)))
	case schema.Float:
		return math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))))
	}
	return false
}
