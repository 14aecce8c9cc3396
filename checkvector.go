package oribi

import (
	"errors"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// checkVector checks the cells of a vector as checkCell does, and returns the first row that is not
// valid.
func checkVector(c *schema.Column, v *batch.Vector, limit int) (row int, err error) {
	if v.Present != nil && !c.Nullable {
		for i := range v.Len {
			if v.IsNull(i) {
				return i, errors.New("NULL in a column that is not nullable")
			}
		}
	}
	if c.AutoIncrement {
		for i := range v.Len {
			if err := checkAutoCell(v.Cell(i)); err != nil {
				return i, err
			}
		}
	}
	if allFit(c, v, limit) {
		return 0, nil
	}
	for i := range v.Len {
		cell := v.Cell(i)
		if len(cell) > limit {
			return i, errCellTooLong(len(cell), limit)
		}
		if err := checkCell(c, cell); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// allFit reports whether all values of a vector are certainly valid, with one loop over them. It
// may return false for a valid vector: it also looks at the undefined values of NULLs.
func allFit(c *schema.Column, v *batch.Vector, limit int) bool {
	switch c.Type {
	case schema.Bool:
		return allWithin(v.Data, 0, 1)
	case schema.Date:
		return allWithin(batch.Values[int32](v), schema.MinDate, schema.MaxDate)
	case schema.Decimal32:
		bound := int32(batch.Pow10(c.Precision).Lo - 1)
		return allWithin(batch.Values[int32](v), -bound, bound)
	case schema.Decimal64:
		bound := int64(batch.Pow10(c.Precision).Lo - 1)
		return allWithin(batch.Values[int64](v), -bound, bound)
	case schema.String, schema.Binary:
		cells := v.Bytes
		if v.Dict != nil {
			cells = v.Dict.Words
		}
		return allShort(cells, limit) && (c.Type == schema.Binary || allText(cells))
	}
	return !c.Type.Variable() && !c.Type.Decimal()
}

func allWithin[T uint8 | int32 | int64](values []T, least, most T) bool {
	for _, x := range values {
		if x < least || x > most {
			return false
		}
	}
	return true
}

func allShort(cells [][]byte, limit int) bool {
	for _, cell := range cells {
		if len(cell) > limit {
			return false
		}
	}
	return true
}

// allText reports whether all cells are valid UTF-8. It checks many cells at a time: each is valid
// if it does not begin within a character and the joined cells are valid.
func allText(cells [][]byte) bool {
	var joined [1 << 10]byte
	n := 0
	for _, cell := range cells {
		if len(cell) == 0 {
			continue
		}
		if !utf8.RuneStart(cell[0]) {
			return false
		}
		if n+len(cell) > len(joined) {
			if !utf8.Valid(joined[:n]) {
				return false
			}
			n = 0
		}
		if len(cell) > len(joined) {
			if !utf8.Valid(cell) {
				return false
			}
			continue
		}
		n += copy(joined[n:], cell)
	}
	return utf8.Valid(joined[:n])
}
