package bind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Conversion returns the function that converts the cells of column from to cells of column to, and
// appends them to its first argument. The function refuses a value that column to cannot represent
// exactly. Errors: ErrUnsupported for a pair of types that has no conversion.
func Conversion(from, to *schema.Column) (func(dst, value []byte) ([]byte, error), error) {
	a, b := *from, *to // the columns may change before the conversion is called
	from, to = &a, &b
	switch {
	case from.Type.Text():
		return func(dst, text []byte) ([]byte, error) {
			if to.Type.Text() {
				return append(dst, text...), celltext.CheckText(to, text)
			}
			return cell.FromField(dst, to, text)
		}, nil
	case to.Type.Text():
		return func(dst, value []byte) ([]byte, error) {
			text := celltext.AppendText(nil, from, value)
			return append(dst, text...), celltext.CheckText(to, text)
		}, nil
	case from.Type == schema.Array && to.Type == schema.Array:
		return arrayConversion(from, to)
	case from.Type == to.Type && !from.Type.Decimal():
		return func(dst, value []byte) ([]byte, error) { return append(dst, value...), nil }, nil
	case from.Type == schema.Bool && isNumber(to.Type):
		return func(dst, value []byte) ([]byte, error) { return appendScalar(dst, to, int64(value[0])) }, nil
	case isNumber(from.Type) && to.Type == schema.Bool:
		return func(dst, value []byte) ([]byte, error) { return convertToBool(dst, from, value) }, nil
	case from.Type.Integer() && to.Type.Integer():
		return func(dst, value []byte) ([]byte, error) {
			return appendInteger(dst, to, batch.Int128OfCell(from.Type, value))
		}, nil
	case from.Type.Decimal() && to.Type.Decimal():
		return func(dst, value []byte) ([]byte, error) { return appendDecimal(dst, to, decimalOf(from, value)) }, nil
	case from.Type == schema.Float && to.Type == schema.Double:
		return func(dst, value []byte) ([]byte, error) {
			f := math.Float32frombits(binary.LittleEndian.Uint32(value))
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(f))), nil
		}, nil
	case isNumber(from.Type) && isNumber(to.Type):
		return func(dst, value []byte) ([]byte, error) { return convertNumber(dst, from, to, value) }, nil
	case from.Type == schema.Date && to.Type == schema.Timestamp:
		return func(dst, value []byte) ([]byte, error) {
			return appendTime(dst, to.Type, timeOf(from.Type, value))
		}, nil
	case from.Type == schema.Timestamp && to.Type == schema.Date:
		return func(dst, value []byte) ([]byte, error) {
			t := timeOf(from.Type, value)
			if !t.Equal(t.Truncate(24 * time.Hour)) {
				return dst, errors.New("its time of day is not midnight")
			}
			return appendTime(dst, to.Type, t)
		}, nil
	}
	return nil, fault.Unsupportedf("a change from %s to %s", from.TypeName(), to.TypeName())
}

func isNumber(t schema.Type) bool { return t.Integer() || t.Float() || t.Decimal() }

// arrayConversion is Conversion for arrays, which are converted element by element.
func arrayConversion(from, to *schema.Column) (func(dst, value []byte) ([]byte, error), error) {
	fromElement, toElement := from.Elements(), to.Elements()
	convert, err := Conversion(&fromElement, &toElement)
	if err != nil {
		return nil, err
	}
	return func(dst, value []byte) ([]byte, error) {
		elements, err := schema.ArrayElements(nil, from.Element, value)
		if err != nil {
			return dst, err
		}
		for i, e := range elements {
			if e == nil {
				continue
			}
			if elements[i], err = convert([]byte{}, e); err != nil {
				return dst, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return schema.AppendArray(dst, to.Element, elements), nil
	}, nil
}

// convertToBool appends the bool of a number, which must be 0 or 1.
func convertToBool(dst []byte, from *schema.Column, value []byte) ([]byte, error) {
	n, err := convertNumber(nil, from, &schema.Column{Type: schema.Int8}, value)
	if err == nil && n[0] > 1 {
		err = errors.New("only 0 and 1 are bool values")
	}
	return append(dst, n...), err
}

// convertNumber appends the cell of a number that column to represents exactly.
func convertNumber(dst []byte, from, to *schema.Column, value []byte) ([]byte, error) {
	switch v := scalarValue(from, value).(type) {
	case batch.Decimal:
		if to.Type.Float() {
			return appendDecimalAsFloat(dst, to, v)
		}
		whole, err := rescale(v, 0)
		if err != nil {
			return dst, err
		}
		return appendInteger(dst, to, whole)
	case float64:
		if to.Type == schema.Float {
			if float64(float32(v)) != v && v == v {
				return dst, fmt.Errorf("%v cannot be represented exactly as %s", v, to.TypeName())
			}
			return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v))), nil
		}
		return appendScalar(dst, to, v)
	default:
		return appendScalar(dst, to, v)
	}
}

// appendDecimalAsFloat appends the float that stands for the decimal number d: d is the shortest
// decimal number to which the float is the nearest.
func appendDecimalAsFloat(dst []byte, to *schema.Column, d batch.Decimal) ([]byte, error) {
	f := Float(d)
	out, err := appendFloat(dst, to.Type, f)
	if err != nil {
		return dst, err
	}
	size := 64
	if to.Type == schema.Float {
		size = 32
	}
	near, err := shortestDecimal(f, size)
	if err != nil {
		return dst, err
	}
	back, err := rescale(near, d.Scale)
	if err == nil && back != d.Unscaled {
		err = fmt.Errorf("%v cannot be represented as %s", d, to.TypeName())
	}
	return out, err
}
