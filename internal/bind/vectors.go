package bind

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// PackArrays converts the vectors of columns that are in array form to cells, the form that the
// engine uses, and returns the other vectors as they are. The caller's vectors do not change.
//
// It refuses a cell of more than limit bytes. After an error, row and column are its position.
func PackArrays(
	s *schema.Schema, columns []*batch.Vector, limit int,
) (packed []*batch.Vector, row int, column string, err error) {
	packed = columns
	for i, v := range columns {
		if v == nil || v.Elements == nil {
			continue
		}
		if row, err := checkArrays(v, limit); err != nil {
			return nil, row, s.Columns[i].Name, err
		}
		if &packed[0] == &columns[0] {
			packed = append([]*batch.Vector(nil), columns...)
		}
		packed[i] = &batch.Vector{Type: schema.Array}
		if err := packed[i].AppendPacked(v); err != nil {
			return nil, packed[i].Len, s.Columns[i].Name, err
		}
	}
	return packed, 0, "", nil
}

// checkArrays checks the sizes of the cells of a vector in array form, and returns the first row
// whose cell is too large.
func checkArrays(v *batch.Vector, limit int) (row int, err error) {
	width := v.Type.Width()
	for i := range v.Len {
		from, to := v.Array(i)
		if to-from > schema.MaxElements {
			return i, errTooManyElements(to - from)
		}
		size := 0
		for k := from; k < to && width == 0; k++ {
			size += len(v.Elements.Cell(k))
		}
		if size > limit {
			return i, fault.CellTooLong(size, limit)
		}
	}
	return 0, nil
}

// CheckVector checks the cells of a vector as Check does, and that none has more than limit bytes.
// It returns the first row that is not valid.
func CheckVector(c *schema.Column, v *batch.Vector, limit int) (row int, err error) {
	if v.Present != nil && !c.Nullable {
		for i := range v.Len {
			if v.IsNull(i) {
				return i, ErrNull
			}
		}
	}
	if c.AutoIncrement {
		for i := range v.Len {
			if err := CheckAuto(v.Cell(i)); err != nil {
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
			return i, fault.CellTooLong(len(cell), limit)
		}
		if err := Check(c, cell); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// CheckAuto returns an error if an auto-incrementing column cannot have the cell as its value.
func CheckAuto(cell []byte) error {
	if int64(binary.LittleEndian.Uint64(cell)) < 0 {
		return errNegative
	}
	return nil
}

var errNegative = errors.New("the column is auto-incrementing: its values must not be negative")

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
