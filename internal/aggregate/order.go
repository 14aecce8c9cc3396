package aggregate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Compare compares two cells of a type: NULL, a nil cell, is after all others, and NaN after all
// numbers. Zeros of either sign are equal, and arrays are in the order of their bytes.
func Compare(t schema.Type, x, y []byte) int {
	switch {
	case x == nil || y == nil:
		return cmp.Compare(oneIf(x == nil), oneIf(y == nil))
	case t.Variable():
		return bytes.Compare(x, y)
	case isNaN(t, x) || isNaN(t, y):
		return cmp.Compare(oneIf(isNaN(t, x)), oneIf(isNaN(t, y)))
	}
	return batch.Compare(t, x, y)
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isNaN reports whether a cell is NaN.
func isNaN(t schema.Type, cell []byte) bool {
	switch t {
	case schema.Float:
		f := math.Float32frombits(binary.LittleEndian.Uint32(cell))
		return f != f
	case schema.Double:
		return math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(cell)))
	}
	return false
}
