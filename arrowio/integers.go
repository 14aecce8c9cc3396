package arrowio

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// integers returns the conversion of a type to a column of integers or decimals, nil if there is
// none. Their values are integers of up to 128 bits, multiplied by a power of ten.
func integers(c *schema.Column, t arrow.DataType) convert {
	if scalar, ok := scalarTypes[c.Type]; ok && scalar.ID() == t.ID() {
		return alias
	}
	if c.Type == schema.Int64 && (t.ID() == arrow.TIME64 || t.ID() == arrow.DURATION) {
		return alias
	}
	shift := c.Scale - scaleOf(t)
	if decimal, ok := t.(arrow.DecimalType); ok && shift == 0 {
		switch bits := decimal.BitWidth(); {
		case bits == 8*c.Type.Width() && c.Type.Decimal():
			return aliasDecimals
		case bits == 128 && c.Type == schema.Decimal64:
			return narrowDecimals
		}
	}
	read := wideReader(t)
	if read == nil {
		return nil
	}
	least, most := bounds(c)
	return func(im *importer, v *batch.Vector, a arrow.Array) error {
		value := read(a)
		im.fixed(v)
		width := v.Type.Width()
		var cell [16]byte
		return eachPresent(v, func(i int) error {
			x, ok := value(i)
			if ok {
				x, ok = shifted(x, shift)
			}
			if !ok || x.Cmp(least) < 0 || x.Cmp(most) > 0 {
				return misfit(c, i, a)
			}
			binary.LittleEndian.PutUint64(cell[:], x.Lo)
			binary.LittleEndian.PutUint64(cell[8:], uint64(x.Hi))
			copy(v.Data[i*width:(i+1)*width], cell[:])
			return nil
		})
	}
}

func misfit(c *schema.Column, cell int, a arrow.Array) error {
	return cellErrorf(cell, "%s is not a value of type %s", a.ValueStr(cell), c.TypeName())
}

// aliasDecimals is alias for decimals, whose values are checked.
func aliasDecimals(im *importer, v *batch.Vector, a arrow.Array) error {
	if err := alias(im, v, a); err != nil {
		return err
	}
	c := &im.column
	switch most := batch.Pow10(c.Precision); c.Type {
	case schema.Decimal32:
		return withinDigits(c, v, a, batch.Values[int32](v), int32(most.Lo-1))
	case schema.Decimal64:
		return withinDigits(c, v, a, batch.Values[int64](v), int64(most.Lo-1))
	}
	values := batch.Values[batch.Int128](v)
	return eachPresent(v, func(i int) error {
		if !values[i].FitsDigits(c.Precision) {
			return misfit(c, i, a)
		}
		return nil
	})
}

// withinDigits returns an error for a value that is not between −most and most.
func withinDigits[T int32 | int64](c *schema.Column, v *batch.Vector, a arrow.Array, values []T, most T) error {
	for _, x := range values {
		if x < -most || x > most { // perhaps of a NULL
			return eachPresent(v, func(i int) error {
				if values[i] < -most || values[i] > most {
					return misfit(c, i, a)
				}
				return nil
			})
		}
	}
	return nil
}

// narrowDecimals converts decimals of 128 bits to 64.
func narrowDecimals(im *importer, v *batch.Vector, a arrow.Array) error {
	im.fixed(v)
	from, to := valuesIn[batch.Int128](a, 16), batch.Values[int64](v)
	most := int64(batch.Pow10(im.column.Precision).Lo - 1)
	for i, x := range from {
		n := int64(x.Lo)
		if (x.Hi != n>>63 || n < -most || n > most) && !v.IsNull(i) {
			return misfit(&im.column, i, a)
		}
		to[i] = n
	}
	return nil
}

// bounds returns the least and the greatest value of a column of integers or decimals, unscaled.
func bounds(c *schema.Column) (least, most batch.Int128) {
	if c.Type.Decimal() {
		most, _ = batch.Pow10(c.Precision).Add(batch.Int128Of(-1))
		return most.Neg(), most
	}
	switch c.Type {
	case schema.Int128:
		return batch.Int128{Hi: math.MinInt64}, batch.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64}
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return batch.Int128{}, batch.Int128{Lo: math.MaxUint64 >> (64 - 8*c.Type.Width())}
	}
	n := int64(math.MaxInt64) >> (64 - 8*c.Type.Width())
	return batch.Int128Of(-n - 1), batch.Int128Of(n)
}

// shifted returns x × 10^shift, or false if that is no integer of 128 bits.
func shifted(x batch.Int128, shift int) (batch.Int128, bool) {
	for ; shift > 0; shift-- {
		var ok bool
		if x, ok = x.Mul10(); !ok {
			return x, false
		}
	}
	for ; shift < 0; shift++ {
		var rest int64
		if x, rest = x.Div10(); rest != 0 {
			return x, false
		}
	}
	return x, true
}

// scaleOf returns the scale of a type of decimals, 0 for others.
func scaleOf(t arrow.DataType) int {
	if d, ok := t.(arrow.DecimalType); ok {
		return int(d.GetScale())
	}
	return 0
}

// wideReader returns a function that returns the values of arrays of a type, integers or unscaled
// decimals, or false for one of more than 128 bits; nil for other types.
func wideReader(t arrow.DataType) func(a arrow.Array) func(i int) (batch.Int128, bool) {
	switch t.ID() {
	case arrow.INT8:
		return wideOf[int8]
	case arrow.INT16:
		return wideOf[int16]
	case arrow.INT32, arrow.DECIMAL32, arrow.TIME32:
		return wideOf[int32]
	case arrow.INT64, arrow.DECIMAL64, arrow.TIME64, arrow.DURATION:
		return wideOf[int64]
	case arrow.UINT8:
		return wideOf[uint8]
	case arrow.UINT16:
		return wideOf[uint16]
	case arrow.UINT32:
		return wideOf[uint32]
	case arrow.UINT64:
		return func(a arrow.Array) func(int) (batch.Int128, bool) {
			values := valuesIn[uint64](a, 8)
			return func(i int) (batch.Int128, bool) { return batch.Int128{Lo: values[i]}, true }
		}
	case arrow.DECIMAL128:
		return func(a arrow.Array) func(int) (batch.Int128, bool) {
			values := valuesIn[batch.Int128](a, 16)
			return func(i int) (batch.Int128, bool) { return values[i], true }
		}
	case arrow.DECIMAL256:
		return func(a arrow.Array) func(int) (batch.Int128, bool) {
			values := valuesIn[[4]uint64](a, 32)
			return func(i int) (batch.Int128, bool) {
				x := values[i]
				sign := uint64(int64(x[1]) >> 63)
				return batch.Int128{Lo: x[0], Hi: int64(x[1])}, x[2] == sign && x[3] == sign
			}
		}
	}
	return nil
}

func wideOf[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](a arrow.Array) func(int) (batch.Int128, bool) {
	var z T
	values := valuesIn[T](a, binary.Size(z))
	return func(i int) (batch.Int128, bool) { return batch.Int128Of(int64(values[i])), true }
}
