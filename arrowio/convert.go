package arrowio

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// convert sets the cells of v to the values of an array. v has its type, its length, and its
// presence bitmap. Errors: a *cellError for a value that the column cannot represent exactly, for
// example 300 in an int8.
type convert func(im *importer, v *batch.Vector, a arrow.Array) error

// conversion returns the conversion of arrays of a type to cells of a column. It is nil if the
// column cannot represent values of the type.
func conversion(c *schema.Column, t arrow.DataType) convert {
	if t.ID() == arrow.NULL {
		return setNulls
	}
	switch c.Type {
	case schema.Bool:
		if t.ID() == arrow.BOOL {
			return copyBools
		}
	case schema.Float, schema.Double:
		return floats(c, t)
	case schema.String, schema.Varchar, schema.Binary:
		return byteStrings(t)
	case schema.Timestamp:
		return timestamps(t)
	case schema.Date:
		switch t.ID() {
		case arrow.DATE32:
			return alias
		case arrow.DATE64:
			return datesOfMillis
		}
	default:
		return integers(c, t)
	}
	return nil
}

// setNulls sets the cells of v to NULL. Arrow's type null has no values.
func setNulls(im *importer, v *batch.Vector, a arrow.Array) error {
	im.presence = im.presence.Resize(v.Len)
	clear(im.presence)
	if v.Present = im.presence; v.Type.Variable() {
		return setCells(im, v, nil)
	}
	im.fixed(v)
	return nil
}

// alias makes v an alias of an array of the same layout.
func alias(im *importer, v *batch.Vector, a arrow.Array) error {
	width := v.Type.Width()
	v.Data = rawValues(a, width)
	switch width {
	case 16:
		v.Data = bytesOf(valuesOf[batch.Int128](v.Data, v.Len)) // copies them if they are not aligned
	case 8:
		v.Data = bytesOf(valuesOf[uint64](v.Data, v.Len))
	case 4:
		v.Data = bytesOf(valuesOf[uint32](v.Data, v.Len))
	case 2:
		v.Data = bytesOf(valuesOf[uint16](v.Data, v.Len))
	}
	return nil
}

// rawValues returns the values of an array of a fixed width.
func rawValues(a arrow.Array, width int) []byte {
	n, from := a.Len(), a.Data().Offset()
	if n == 0 {
		return nil
	}
	return a.Data().Buffers()[1].Bytes()[from*width : (from+n)*width] // panics if they are too short
}

// valuesIn returns the values of an array of a fixed width, in the type of the result.
func valuesIn[T any](a arrow.Array, width int) []T { return valuesOf[T](rawValues(a, width), a.Len()) }

func copyBools(im *importer, v *batch.Vector, a arrow.Array) error {
	im.fixed(v)
	if v.Len == 0 {
		return nil
	}
	from := a.Data().Offset()
	b := a.Data().Buffers()[1].Bytes()
	for i := range v.Data {
		v.Data[i] = b[(from+i)/8] >> ((from + i) % 8) & 1
	}
	return nil
}

func floats(c *schema.Column, t arrow.DataType) convert {
	switch single := c.Type == schema.Float; t.ID() {
	case arrow.FLOAT16:
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			halves := valuesIn[uint16](a, 2)
			return setFloats(im, v, func(i int) float64 { return float64(float16.FromBits(halves[i]).Float32()) })
		}
	case arrow.FLOAT32:
		if single {
			return alias
		}
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			values := valuesIn[float32](a, 4)
			return setFloats(im, v, func(i int) float64 { return float64(values[i]) })
		}
	case arrow.FLOAT64:
		if !single {
			return alias
		}
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			values := valuesIn[float64](a, 8)
			return setFloats(im, v, func(i int) float64 { return values[i] })
		}
	}
	read := wideReader(t)
	if read == nil || scaleOf(t) != 0 {
		return nil
	}
	return func(im *importer, v *batch.Vector, a arrow.Array) error {
		value := read(a)
		exact := batch.Int128Of(1 << 53)
		if v.Type == schema.Float {
			exact = batch.Int128Of(1 << 24)
		}
		err := eachPresent(v, func(i int) error {
			if x, ok := value(i); !ok || x.Cmp(exact) > 0 || x.Cmp(exact.Neg()) < 0 {
				return misfit(c, i, a)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return setFloats(im, v, func(i int) float64 {
			x, _ := value(i)
			return x.Float64()
		})
	}
}

// setFloats sets the cells of a float or double column.
func setFloats(im *importer, v *batch.Vector, value func(i int) float64) error {
	im.fixed(v)
	if v.Type == schema.Double {
		to := batch.Values[float64](v)
		return eachPresent(v, func(i int) error {
			to[i] = value(i)
			return nil
		})
	}
	to := batch.Values[float32](v)
	return eachPresent(v, func(i int) error {
		x := value(i)
		to[i] = float32(x)
		if float64(to[i]) != x && !math.IsNaN(x) {
			return cellErrorf(i, "float cannot represent %v exactly", x)
		}
		return nil
	})
}

// timestamps returns the conversion of a type to microseconds.
func timestamps(t arrow.DataType) convert {
	of, ok := t.(*arrow.TimestampType)
	if !ok {
		return nil
	}
	factor, divisor := int64(1), int64(1)
	switch of.Unit {
	case arrow.Microsecond:
		return alias
	case arrow.Nanosecond:
		divisor = 1000
	case arrow.Millisecond:
		factor = 1000
	default:
		factor = 1e6
	}
	return func(im *importer, v *batch.Vector, a arrow.Array) error {
		values := valuesIn[int64](a, 8)
		im.fixed(v)
		to := batch.Values[int64](v)
		return eachPresent(v, func(i int) (err error) {
			to[i], err = scaled(i, values[i], factor, divisor, im.round)
			return err
		})
	}
}

// ErrNanoseconds is the error of a time in nanoseconds that is no whole number of microseconds. It
// comes with ErrRow. See ReadOptions.Round.
var ErrNanoseconds = errors.New("a time is no whole number of microseconds")

// nanosecondsError is ErrNanoseconds with the time.
type nanosecondsError int64

func (e nanosecondsError) Error() string {
	return fmt.Sprintf("%d nanoseconds since 1970 are no whole number of microseconds", int64(e))
}

func (nanosecondsError) Is(target error) bool { return target == ErrNanoseconds }

// scaled returns the microseconds of a time in another unit. A fraction of a microsecond is an
// error, unless round is set: then the result is the last microsecond that is not after the time.
func scaled(cell int, x, factor, divisor int64, round bool) (int64, error) {
	switch {
	case x%divisor != 0 && !round:
		return 0, &cellError{cell, fmt.Errorf("%w: %w", nanosecondsError(x), ErrRow)}
	case x%divisor < 0:
		return x/divisor - 1, nil
	case x > math.MaxInt64/factor || x < math.MinInt64/factor:
		return 0, cellErrorf(cell, "the time %d is out of range", x)
	}
	return x / divisor * factor, nil
}

// datesOfMillis converts dates that are counted in milliseconds.
func datesOfMillis(im *importer, v *batch.Vector, a arrow.Array) error {
	const day = 24 * 60 * 60 * 1000
	values := valuesIn[int64](a, 8)
	im.fixed(v)
	to := batch.Values[int32](v)
	return eachPresent(v, func(i int) error {
		x := values[i] / day
		if values[i]%day != 0 || x != int64(int32(x)) {
			return cellErrorf(i, "%d milliseconds since 1970 are no date", values[i])
		}
		to[i] = int32(x)
		return nil
	})
}

// byteStrings returns the conversion of a type of byte strings.
func byteStrings(t arrow.DataType) convert {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY:
		return cellsAt[int32]
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return cellsAt[int64]
	case arrow.FIXED_SIZE_BINARY:
		width := t.(*arrow.FixedSizeBinaryType).ByteWidth
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			b := rawValues(a, width)
			return setCells(im, v, func(i int) ([]byte, error) { return b[i*width : (i+1)*width : (i+1)*width], nil })
		}
	case arrow.STRING_VIEW:
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			s := a.(*array.StringView)
			return setCells(im, v, func(i int) ([]byte, error) { return []byte(s.Value(i)), nil })
		}
	case arrow.BINARY_VIEW:
		return func(im *importer, v *batch.Vector, a arrow.Array) error {
			s := a.(*array.BinaryView)
			return setCells(im, v, func(i int) ([]byte, error) { return s.Value(i), nil })
		}
	}
	return nil
}

// cellsAt sets the cells of v to byte strings between offsets of type T.
func cellsAt[T int32 | int64](im *importer, v *batch.Vector, a arrow.Array) error {
	if v.Len == 0 {
		return setCells(im, v, nil)
	}
	data, width := a.Data(), 4
	if _, large := any(T(0)).(int64); large {
		width = 8
	}
	from := data.Offset() * width
	ends := valuesOf[T](data.Buffers()[1].Bytes()[from:], v.Len+1)
	var text []byte
	if b := data.Buffers()[2]; b != nil {
		text = b.Bytes()
	}
	return setCells(im, v, func(i int) ([]byte, error) {
		from, to := ends[i], ends[i+1]
		if from < 0 || from > to || int64(to) > int64(len(text)) {
			return nil, corruptf("cell %d is bytes [%d, %d) of %d", i, from, to, len(text))
		}
		return text[from:to:to], nil
	})
}

// setCells sets the cells of a column of byte strings.
func setCells(im *importer, v *batch.Vector, cell func(i int) ([]byte, error)) error {
	if cap(im.cells) < v.Len {
		im.cells = make([][]byte, v.Len)
	}
	v.Bytes = im.cells[:v.Len]
	if v.Present != nil {
		clear(v.Bytes)
	}
	return eachPresent(v, func(i int) (err error) {
		v.Bytes[i], err = cell(i)
		return err
	})
}
