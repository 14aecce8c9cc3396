package kudurow

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// MaxCellBytes is the most bytes of a cell that servers take, as they are started by default.
const MaxCellBytes = 64 << 10

// CellError is a cell that a server would refuse, or that others could not read.
type CellError struct {
	Row    int // of the batch; 0 for a single row
	Column string
	Cause  error // wraps ErrRow
}

func (e *CellError) Error() string { return fmt.Sprintf("column %q: %v", e.Column, e.Cause) }

// Unwrap makes ErrRow visible to errors.Is.
func (e *CellError) Unwrap() error { return e.Cause }

func badCell(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, fault.ErrRow)...)
}

// checkCell returns an error unless cell, which is not NULL, is a value of column c that servers take
// and clients read. Servers check the size only.
func checkCell(c *schema.Column, cell []byte) error {
	if w := c.Type.Width(); w > 0 && len(cell) != w {
		return badCell("%d bytes, want %d", len(cell), w)
	}
	switch {
	case c.Type.Variable():
		return checkBytes(c, cell)
	case c.Type == schema.Bool && cell[0] > 1:
		return badCell("a bool of %d, want 0 or 1", cell[0])
	case c.Type == schema.Date:
		return checkDate(int32(binary.LittleEndian.Uint32(cell)))
	case c.Type.Decimal():
		return checkDecimal(c, batch.Int128OfCell(c.Type, cell))
	}
	return nil
}

func checkBytes(c *schema.Column, cell []byte) error {
	switch {
	case len(cell) > MaxCellBytes:
		return badCell("%d bytes, at most %d", len(cell), MaxCellBytes)
	case c.Type.Text() && !utf8.Valid(cell):
		return badCell("the text is not valid UTF-8")
	case c.Type == schema.Varchar && len(cell) > c.Length && utf8.RuneCount(cell) > c.Length:
		return badCell("%d characters, at most %d", utf8.RuneCount(cell), c.Length)
	}
	return nil
}

func checkDate(day int32) error {
	if day < schema.MinDate || day > schema.MaxDate {
		return badCell("date %d days from 1970-01-01 is not in the years 1 to 9999", day)
	}
	return nil
}

func checkDecimal(c *schema.Column, v batch.Int128) error {
	if !v.FitsDigits(c.Precision) {
		return badCell("%s has more than %d digits", batch.Decimal{Unscaled: v, Scale: c.Scale}, c.Precision)
	}
	return nil
}

// checkVector returns an error for the first of the selected cells of v that checkCell refuses, and
// its row.
func checkVector(c *schema.Column, v *batch.Vector, selected batch.Bitmap) (row int, err error) {
	switch {
	case v.Dict != nil:
		return checkCodes(c, v, selected)
	case c.Type.Variable():
		return checkEach(v, selected, func(i int) error { return checkBytes(c, v.Bytes[i]) })
	case c.Type == schema.Bool:
		return checkEach(v, selected, func(i int) error { return checkCell(c, v.Data[i:i+1]) })
	case c.Type == schema.Date:
		days := batch.Values[int32](v)
		return checkEach(v, selected, func(i int) error { return checkDate(days[i]) })
	case c.Type == schema.Decimal32:
		limit := pow10(c.Precision)
		for i, x := range batch.Values[int32](v) {
			if int64(x) >= limit || int64(x) <= -limit {
				return checkDecimals(c, v, selected, i)
			}
		}
	case c.Type == schema.Decimal64:
		limit := pow10(c.Precision)
		for i, x := range batch.Values[int64](v) {
			if x >= limit || x <= -limit {
				return checkDecimals(c, v, selected, i)
			}
		}
	case c.Type == schema.Decimal128:
		return checkDecimals(c, v, selected, 0)
	}
	return 0, nil
}

// pow10 returns 10^n for n up to 18.
func pow10(n int) (p int64) {
	for p = 1; n > 0; n-- {
		p *= 10
	}
	return p
}

// checkDecimals checks the cells of v from a row on.
func checkDecimals(c *schema.Column, v *batch.Vector, selected batch.Bitmap, from int) (row int, err error) {
	return checkFrom(v, selected, from, func(i int) error {
		return checkDecimal(c, batch.Int128OfCell(c.Type, v.Cell(i)))
	})
}

func checkEach(v *batch.Vector, selected batch.Bitmap, check func(i int) error) (row int, err error) {
	return checkFrom(v, selected, 0, check)
}

func checkFrom(v *batch.Vector, selected batch.Bitmap, from int, check func(i int) error) (row int, err error) {
	for i := from; i < v.Len; i++ {
		if !selected.Get(i) || v.IsNull(i) {
			continue
		}
		if err := check(i); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// checkCodes checks the words of a dictionary, and looks for the cell only if one is refused.
func checkCodes(c *schema.Column, v *batch.Vector, selected batch.Bitmap) (row int, err error) {
	for _, word := range v.Dict.Words {
		if checkBytes(c, word) != nil {
			return checkEach(v, selected, func(i int) error { return checkBytes(c, v.Dict.Words[v.Codes[i]]) })
		}
	}
	return 0, nil
}
