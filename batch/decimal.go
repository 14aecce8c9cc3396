package batch

import (
	"fmt"

	"github.com/oribi-db/oribi/schema"
)

// Decimal is an exact decimal number: Unscaled × 10^−Scale.
type Decimal struct {
	Unscaled Int128
	Scale    int
}

// String returns d with all digits of its scale, such as 1.50. A number whose scale no column can
// have is written with an exponent, such as 15e-99.
func (d Decimal) String() string {
	if d.Scale < 0 || d.Scale > schema.MaxPrecision {
		return fmt.Sprintf("%ve%d", d.Unscaled, -d.Scale)
	}
	return string(d.Append(nil))
}

// Append appends d with all digits of its scale, which must be from 0 to schema.MaxPrecision.
func (d Decimal) Append(dst []byte) []byte {
	if d.Unscaled.Negative() {
		dst = append(dst, '-')
	}
	dst = d.Unscaled.AppendDigits(dst, d.Scale+1)
	if d.Scale == 0 {
		return dst
	}
	point := len(dst) - d.Scale
	dst = append(dst, 0)
	copy(dst[point+1:], dst[point:])
	dst[point] = '.'
	return dst
}

// Cell is a value in the bytes of its column's type, as Vector.Cell returns them: little-endian for
// types of fixed width. A nil Cell is NULL. Functions of package oribi that take values of any Go
// type take a Cell as the bytes of a cell, which a []byte is only for binary columns.
type Cell []byte
