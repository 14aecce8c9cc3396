package arrowio

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// decoder reads values of a column chunk as cells of a type.
type decoder interface {
	// read reads up to n levels, and sets v to the cells of the values among them, back to back; v
	// has n cells. defs and reps have room for n levels. It returns the number of levels and of
	// values. Byte strings are valid until the next call. The error of a value is a *cellError.
	read(chunk file.ColumnChunkReader, n int, defs, reps []int16, v *batch.Vector) (levels, values int, err error)
}

// chunkReader is a column chunk with values of type R.
type chunkReader[R any] interface {
	ReadBatchInPage(n int64, values []R, defs, reps []int16) (levels int64, read int, err error)
}

// typed is a decoder of values of type R.
type typed[R any] struct {
	// the cells as values, if no conversion is needed; otherwise nil
	direct  func(v *batch.Vector) []R
	convert func(v *batch.Vector, values []R) error // sets the first cells of v
	buf     []R

	// alias is set for byte strings. They alias the page, so that values of one page are read.
	alias bool
	// keep copies values that alias a page, so that they are valid after the next page is read. It
	// is nil if values never alias a page.
	keep func(values []R)
}

func (t *typed[R]) read(chunk file.ColumnChunkReader, n int, defs, reps []int16, v *batch.Vector) (int, int, error) {
	in, ok := chunk.(chunkReader[R])
	if !ok {
		return 0, 0, corruptf("values of %s in a column of another type", chunk.Type())
	}
	v.Reset(n)
	values := t.buf
	if t.direct != nil {
		values = t.direct(v)
	} else if len(values) < n {
		values = make([]R, n)
		t.buf = values
	}
	got, read := 0, 0
	for got < n {
		var moreReps []int16
		if reps != nil {
			moreReps = reps[got:n]
		}
		levels, k, err := in.ReadBatchInPage(int64(n-got), values[read:n], defs[got:n], moreReps)
		if err != nil {
			return got, read, err
		}
		if levels == 0 {
			if chunk.HasNext() { // the page says so, but its values have ended
				return got, read, corruptf("a page has fewer values than its header says")
			}
			break
		}
		if levels < 0 || int64(got)+levels > int64(n) || k < 0 || read+k > n {
			return got, read, corruptf("%d levels and %d values, want %d", levels, k, n-got)
		}
		if t.alias {
			got, read = got+int(levels), read+k
			break
		}
		if got += int(levels); got < n && t.keep != nil {
			t.keep(values[read : read+k])
		}
		read += k
	}
	if t.direct == nil {
		if err := t.convert(v, values[:read]); err != nil {
			return got, read, err
		}
	}
	return got, read, nil
}

// cloneAll replaces byte strings by copies.
func cloneAll[R ~[]byte](values []R) {
	for i, v := range values {
		values[i] = slices.Clone(v)
	}
}

// newDecoder returns a decoder of the values of a leaf as cells of a column. round says that times
// in nanoseconds are rounded down. Errors: ErrSchema.
func newDecoder(c *schema.Column, n *pq.PrimitiveNode, round bool) (decoder, error) {
	if _, null := n.LogicalType().(pq.NullLogicalType); null {
		return decodeNulls(n.PhysicalType()), nil
	}
	var d decoder
	switch n.PhysicalType() {
	case parquet.Types.Boolean:
		if c.Type == schema.Bool {
			d = &typed[bool]{convert: setBools}
		}
	case parquet.Types.Int32:
		d = decodeInt32(c)
	case parquet.Types.Int64:
		d = decodeInt64(c, n.LogicalType(), round)
	case parquet.Types.Int96:
		if c.Type == schema.Timestamp {
			d = &typed[parquet.Int96]{convert: impalaTimes(round)}
		}
	case parquet.Types.Float:
		if c.Type == schema.Float {
			d = &typed[float32]{direct: batch.Values[float32]}
		}
	case parquet.Types.Double:
		if c.Type == schema.Double {
			d = &typed[float64]{direct: batch.Values[float64]}
		}
	case parquet.Types.ByteArray:
		d = decodeByteArrays(c)
	case parquet.Types.FixedLenByteArray:
		d = decodeFixedBytes(c)
	}
	if d == nil {
		return nil, fmt.Errorf("%s %s does not fit a column of type %s: %w", n.PhysicalType(),
			n.LogicalType(), c.TypeName(), ErrSchema)
	}
	return d, nil
}

// decodeNulls returns a decoder of a column that has no values.
func decodeNulls(physical parquet.Type) decoder {
	switch physical {
	case parquet.Types.Boolean:
		return noValues[bool]()
	case parquet.Types.Int32:
		return noValues[int32]()
	case parquet.Types.Int64:
		return noValues[int64]()
	case parquet.Types.Int96:
		return noValues[parquet.Int96]()
	case parquet.Types.Float:
		return noValues[float32]()
	case parquet.Types.Double:
		return noValues[float64]()
	case parquet.Types.ByteArray:
		return noValues[parquet.ByteArray]()
	}
	return noValues[parquet.FixedLenByteArray]()
}

func noValues[R any]() decoder {
	return &typed[R]{convert: func(v *batch.Vector, values []R) error {
		if len(values) > 0 {
			return corruptf("values in a column of NULLs")
		}
		return nil
	}}
}

func setBools(v *batch.Vector, values []bool) error {
	for i, b := range values {
		v.Data[i] = 0
		if b {
			v.Data[i] = 1
		}
	}
	return nil
}

func decodeInt32(c *schema.Column) decoder {
	switch c.Type {
	case schema.Int32, schema.Uint32, schema.Date:
		return &typed[int32]{direct: batch.Raw[int32]}
	case schema.Int8:
		return &typed[int32]{convert: narrowed[int8](c)}
	case schema.Uint8:
		return &typed[int32]{convert: narrowed[uint8](c)}
	case schema.Int16:
		return &typed[int32]{convert: narrowed[int16](c)}
	case schema.Uint16:
		return &typed[int32]{convert: narrowed[uint16](c)}
	case schema.Int64: // times of day
		return &typed[int32]{convert: func(v *batch.Vector, values []int32) error {
			to := batch.Values[int64](v)
			for i, x := range values {
				to[i] = int64(x)
			}
			return nil
		}}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return &typed[int32]{convert: func(v *batch.Vector, values []int32) error {
			return setDecimals(c, v, len(values), func(i int) (batch.Int128, bool) {
				return batch.Int128Of(int64(values[i])), true
			})
		}}
	}
	return nil
}

// narrowed converts integers of 32 bits to a narrower type.
func narrowed[T int8 | uint8 | int16 | uint16](c *schema.Column) func(v *batch.Vector, values []int32) error {
	return func(v *batch.Vector, values []int32) error {
		to := batch.Raw[T](v)
		for i, x := range values {
			if to[i] = T(x); int32(to[i]) != x {
				return cellErrorf(i, "%d is not a value of type %s", x, c.TypeName())
			}
		}
		return nil
	}
}

func decodeInt64(c *schema.Column, annotation pq.LogicalType, round bool) decoder {
	switch c.Type {
	case schema.Int64, schema.Uint64:
		return &typed[int64]{direct: batch.Raw[int64]}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return &typed[int64]{convert: func(v *batch.Vector, values []int64) error {
			return setDecimals(c, v, len(values), func(i int) (batch.Int128, bool) {
				return batch.Int128Of(values[i]), true
			})
		}}
	case schema.Timestamp:
		t, ok := annotation.(pq.TimestampLogicalType)
		if !ok {
			return nil
		}
		factor, divisor := int64(1), int64(1)
		switch t.TimeUnit() {
		case pq.TimeUnitMicros:
			return &typed[int64]{direct: batch.Raw[int64]}
		case pq.TimeUnitMillis:
			factor = 1000
		case pq.TimeUnitNanos:
			divisor = 1000
		default:
			return nil
		}
		return &typed[int64]{convert: func(v *batch.Vector, values []int64) (err error) {
			to := batch.Values[int64](v)
			for i, x := range values {
				if to[i], err = scaled(i, x, factor, divisor, round); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	return nil
}

// impalaTimes returns the conversion of times of Impala: nanoseconds of a day, then the Julian day.
func impalaTimes(round bool) func(v *batch.Vector, values []parquet.Int96) error {
	const (
		epoch = 2440588 // the Julian day 1970-01-01
		day   = 24 * 60 * 60 * 1_000_000
	)
	return func(v *batch.Vector, values []parquet.Int96) error {
		to := batch.Values[int64](v)
		for i := range values {
			nanos, julian := int64(binary.LittleEndian.Uint64(values[i][:8])),
				int64(int32(binary.LittleEndian.Uint32(values[i][8:])))
			micros, err := scaled(i, nanos, 1, 1000, round)
			if err != nil {
				return err
			}
			if julian < 0 { // what Impala had for a time without a date
				return cellErrorf(i, "the time has no date: its Julian day is %d", julian)
			}
			days := julian - epoch
			if days > math.MaxInt64/day-2 || micros < -day || micros > 2*day {
				return cellErrorf(i, "the time of Julian day %d and %d nanoseconds is out of range", julian, nanos)
			}
			to[i] = days*day + micros
		}
		return nil
	}
}

// setDecimals sets the first n cells of v to decimals, unscaled. value reports whether they have
// 128 bits.
func setDecimals(c *schema.Column, v *batch.Vector, n int, value func(i int) (batch.Int128, bool)) error {
	width := v.Type.Width()
	for i := range n {
		x, ok := value(i)
		if !ok || !x.FitsDigits(c.Precision) {
			return cellErrorf(i, "%v, unscaled, is not a value of type %s", x, c.TypeName())
		}
		switch to := v.Data[i*width:]; width {
		case 4:
			binary.LittleEndian.PutUint32(to, uint32(x.Lo))
		case 8:
			binary.LittleEndian.PutUint64(to, x.Lo)
		default:
			binary.LittleEndian.PutUint64(to, x.Lo)
			binary.LittleEndian.PutUint64(to[8:], uint64(x.Hi))
		}
	}
	return nil
}

func decodeByteArrays(c *schema.Column) decoder {
	switch c.Type {
	case schema.String, schema.Varchar, schema.Binary:
		return &typed[parquet.ByteArray]{alias: true, direct: func(v *batch.Vector) []parquet.ByteArray {
			return unsafe.Slice((*parquet.ByteArray)(unsafe.Pointer(unsafe.SliceData(v.Bytes))), len(v.Bytes))
		}}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return &typed[parquet.ByteArray]{keep: cloneAll[parquet.ByteArray],
			convert: func(v *batch.Vector, values []parquet.ByteArray) error {
				return setDecimals(c, v, len(values), func(i int) (batch.Int128, bool) {
					return fromBigEndian(values[i])
				})
			}}
	}
	return nil
}

func decodeFixedBytes(c *schema.Column) decoder {
	switch c.Type {
	case schema.Binary:
		return &typed[parquet.FixedLenByteArray]{alias: true,
			direct: func(v *batch.Vector) []parquet.FixedLenByteArray {
				return unsafe.Slice((*parquet.FixedLenByteArray)(unsafe.Pointer(unsafe.SliceData(v.Bytes))),
					len(v.Bytes))
			}}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return &typed[parquet.FixedLenByteArray]{keep: cloneAll[parquet.FixedLenByteArray],
			convert: func(v *batch.Vector, values []parquet.FixedLenByteArray) error {
				return setDecimals(c, v, len(values), func(i int) (batch.Int128, bool) {
					return fromBigEndian(values[i])
				})
			}}
	case schema.Float:
		return &typed[parquet.FixedLenByteArray]{keep: cloneAll[parquet.FixedLenByteArray],
			convert: func(v *batch.Vector, values []parquet.FixedLenByteArray) error {
				to := batch.Values[float32](v)
				for i, b := range values {
					to[i] = float16.FromBits(binary.LittleEndian.Uint16(b)).Float32()
				}
				return nil
			}}
	}
	return nil
}

// fromBigEndian returns the value of a big-endian integer in two's complement, or false if it has
// more than 128 bits.
func fromBigEndian(b []byte) (batch.Int128, bool) {
	if len(b) == 0 {
		return batch.Int128{}, true
	}
	sign := uint64(int64(int8(b[0])) >> 63)
	for len(b) > 16 {
		if b[0] != byte(sign) {
			return batch.Int128{}, false
		}
		b = b[1:]
	}
	lo, hi := sign, sign
	for _, x := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(x)
	}
	return batch.Int128{Lo: lo, Hi: int64(hi)}, int64(hi)>>63 == int64(sign)
}
