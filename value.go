package oribi

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
)

// Int128 is a signed 128-bit integer in two's complement.
type Int128 = batch.Int128

// Decimal is an exact decimal number: Unscaled × 10^−Scale. Its String method returns all digits of
// the scale, such as 1.50.
type Decimal = batch.Decimal

// NewDecimal returns a Decimal with a small unscaled integer: NewDecimal(150, 2) is 1.50.
func NewDecimal(unscaled int64, scale int) Decimal {
	return Decimal{Unscaled: batch.Int128Of(unscaled), Scale: scale}
}

// Cell is a value in the bytes of its column's type, as batch.Vector.Cell and GetCells return them:
// a []byte, little-endian for types of fixed width. Row, Key, and predicates accept a Cell as well
// as Go's types, and so does a field of a typed row. Bytes that are no cell of the column's type
// are refused like any other value that the column cannot represent. A nil Cell is NULL.
type Cell = batch.Cell

// sliceBytes is the size of a slice without its elements.
const sliceBytes = 24

// sameCell reports whether two cells have the same value, or both are NULL.
func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }
