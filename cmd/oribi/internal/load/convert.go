package load

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// converter appends the cell of a table's column for a cell of the input. Errors describe the value
// and do not name the column.
type converter = func(dst []byte, to *schema.Column, cell []byte) ([]byte, error)

// conversion returns how cells of column from become cells of column to. Besides equal types it
// converts integers to integers, decimals to decimals, FLOAT to DOUBLE, and strings to VARCHAR and
// back, and arrays of these; a value that the table's column cannot hold exactly is an error. same
// reports whether all cells become the same bytes, or are an error.
func conversion(from, to *schema.Column) (convert converter, same bool, err error) {
	if from.Type == schema.Array && to.Type == schema.Array {
		convert, err = arrayConversion(from, to)
		return convert, false, err
	}
	switch {
	case from.Type.Integer() && to.Type.Integer():
		if from.Type == to.Type {
			return sameCell, true, nil
		}
		return func(dst []byte, to *schema.Column, cell []byte) ([]byte, error) {
			at := len(dst)
			if dst = appendInteger(dst, to.Type, batch.Int128OfCell(from.Type, cell)); batch.Int128OfCell(to.Type,
				dst[at:]) != batch.Int128OfCell(from.Type, cell) {
				return dst, outOfRange(from, to, cell)
			}
			return dst, nil
		}, false, nil
	case from.Type.Decimal() && to.Type.Decimal():
		if from.Type == to.Type && from.Scale == to.Scale && from.Precision <= to.Precision {
			return sameCell, true, nil
		}
		return decimalConversion(from), false, nil
	case from.Type.Text() && to.Type.Text():
		return textCell, false, nil
	case from.Type == schema.Float && to.Type == schema.Double:
		return floatToDouble, false, nil
	case from.Type == schema.Date && to.Type == schema.Date:
		return dateCell, true, nil
	case from.Type == to.Type && from.Type != schema.Array:
		return sameCell, true, nil
	}
	return nil, false, fmt.Errorf("the input has %s, the table %s", from.TypeName(), to.TypeName())
}

func sameCell(dst []byte, _ *schema.Column, cell []byte) ([]byte, error) {
	return append(dst, cell...), nil
}

func textCell(dst []byte, to *schema.Column, cell []byte) ([]byte, error) {
	return append(dst, cell...), celltext.CheckText(to, cell)
}

func dateCell(dst []byte, _ *schema.Column, cell []byte) ([]byte, error) {
	if day := int32(binary.LittleEndian.Uint32(cell)); day < schema.MinDate || day > schema.MaxDate {
		return dst, fmt.Errorf("the date is %d days after 1970-01-01, and not in the years 1 to 9999", day)
	}
	return append(dst, cell...), nil
}

func floatToDouble(dst []byte, _ *schema.Column, cell []byte) ([]byte, error) {
	f := math.Float32frombits(binary.LittleEndian.Uint32(cell))
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(f))), nil
}

// appendInteger appends as many low bytes of a value as cells of type t have.
func appendInteger(dst []byte, t schema.Type, v batch.Int128) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, v.Lo)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Hi))
	return dst[:at+t.Width()]
}

func outOfRange(from, to *schema.Column, cell []byte) error {
	return fmt.Errorf("%s is out of range for %s", celltext.AppendText(nil, from, cell), to.TypeName())
}

func decimalConversion(from *schema.Column) converter {
	return func(dst []byte, to *schema.Column, cell []byte) ([]byte, error) {
		v, ok := batch.Int128OfCell(from.Type, cell), true
		for scale := from.Scale; scale < to.Scale && ok; scale++ {
			v, ok = v.Mul10()
		}
		for scale := from.Scale; scale > to.Scale; scale-- {
			var rest int64
			if v, rest = v.Div10(); rest != 0 {
				return dst, fmt.Errorf("%s has more than %d decimals", celltext.AppendText(nil, from, cell), to.Scale)
			}
		}
		if !ok || !v.FitsDigits(to.Precision) {
			return dst, outOfRange(from, to, cell)
		}
		return appendInteger(dst, to.Type, v), nil
	}
}

// arrayConversion converts arrays element by element.
func arrayConversion(from, to *schema.Column) (converter, error) {
	fromElement, toElement := from.Elements(), to.Elements()
	convert, _, err := conversion(&fromElement, &toElement)
	if err != nil {
		return nil, fmt.Errorf("the input has %s, the table %s", from.TypeName(), to.TypeName())
	}
	var elements [][]byte
	text := make([]byte, 0, 64) // never nil: an empty element is not NULL
	return func(dst []byte, to *schema.Column, cell []byte) ([]byte, error) {
		var err error
		if elements, err = schema.ArrayElements(elements[:0], from.Element, cell); err != nil {
			return dst, err
		}
		text = text[:0]
		for i, e := range elements {
			if e == nil {
				continue
			}
			at := len(text)
			if text, err = convert(text, &toElement, e); err != nil {
				return dst, fmt.Errorf("element %d: %w", i, err)
			}
			elements[i] = text[at:len(text):len(text)]
		}
		return schema.AppendArray(dst, to.Element, elements), nil
	}, nil
}
