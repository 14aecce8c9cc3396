package bind

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Integer returns a value of one of Go's integer types, or an Int128, as an Int128. It reports
// whether v is such a value.
func Integer(v any) (batch.Int128, bool) {
	switch i := v.(type) {
	case int:
		return batch.Int128Of(int64(i)), true
	case int64:
		return batch.Int128Of(i), true
	case int32:
		return batch.Int128Of(int64(i)), true
	case int16:
		return batch.Int128Of(int64(i)), true
	case int8:
		return batch.Int128Of(int64(i)), true
	case uint64:
		return batch.Int128{Lo: i}, true
	case uint:
		return batch.Int128{Lo: uint64(i)}, true
	case uint32:
		return batch.Int128{Lo: uint64(i)}, true
	case uint16:
		return batch.Int128{Lo: uint64(i)}, true
	case uint8:
		return batch.Int128{Lo: uint64(i)}, true
	case batch.Int128:
		return i, true
	}
	return batch.Int128{}, false
}

// Float returns the float64 that is nearest to d.
func Float(d batch.Decimal) float64 {
	f, _ := strconv.ParseFloat(d.String(), 64) // a number out of range is an infinity
	return f
}

// rescale returns the unscaled value of d at another scale. It returns an error if the value at
// that scale is not exact, or out of range.
func rescale(d batch.Decimal, scale int) (batch.Int128, error) {
	v := d.Unscaled
	if v == (batch.Int128{}) {
		return v, nil // the loops end when a digit does not fit, which no digit of 0 does
	}
	for s := d.Scale; s < scale; s++ {
		var ok bool
		if v, ok = v.Mul10(); !ok {
			return v, errors.New("out of range")
		}
	}
	for s := d.Scale; s > scale; s-- {
		q, rest := v.Div10()
		if rest != 0 {
			return v, fmt.Errorf("%v has more than %d decimals", d, scale)
		}
		v = q
	}
	return v, nil
}

func appendDecimal(buf []byte, c *schema.Column, d batch.Decimal) ([]byte, error) {
	v, err := rescale(d, c.Scale)
	if err != nil {
		return nil, err
	}
	if !v.FitsDigits(c.Precision) {
		return nil, fmt.Errorf("%v is out of range for %s", d, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

func appendInteger(buf []byte, c *schema.Column, v batch.Int128) ([]byte, error) {
	if !fits(c.Type, v) {
		return nil, fmt.Errorf("%v is out of range for %s", v, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

// fits reports whether an integer is in the range of a type.
func fits(t schema.Type, v batch.Int128) bool {
	switch t {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return v.Hi == 0 && (t == schema.Uint64 || v.Lo>>(8*t.Width()) == 0)
	case schema.Int128:
		return true
	case schema.Date:
		return v.Hi == int64(v.Lo)>>63 && int64(v.Lo) >= schema.MinDate && int64(v.Lo) <= schema.MaxDate
	}
	shift := 64 - 8*t.Width()
	return v.Hi == int64(v.Lo)>>63 && int64(v.Lo)<<shift>>shift == int64(v.Lo)
}

func appendWidth(buf []byte, v batch.Int128, width int) []byte {
	var b [MaxWidth]byte
	binary.LittleEndian.PutUint64(b[:], v.Lo)
	binary.LittleEndian.PutUint64(b[8:], uint64(v.Hi))
	return append(buf, b[:width]...)
}

// appendFloat appends the cell of a float. For type float, it rounds to the nearest float32, and
// refuses a finite number that is too large for a float32.
func appendFloat(buf []byte, t schema.Type, f float64) ([]byte, error) {
	if t == schema.Double {
		return binary.LittleEndian.AppendUint64(buf, math.Float64bits(f)), nil
	}
	near := float32(f)
	if math.IsInf(float64(near), 0) && !math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is out of range for %s", f, t)
	}
	return binary.LittleEndian.AppendUint32(buf, math.Float32bits(near)), nil
}

// appendIntegerAsFloat appends the cell of an integer that a float of type t can represent exactly.
func appendIntegerAsFloat(buf []byte, t schema.Type, v batch.Int128) ([]byte, error) {
	digits := 53
	if t == schema.Float {
		digits = 24
	}
	f, ok := exactFloat(v, digits)
	if !ok {
		return nil, fmt.Errorf("%v cannot be represented exactly as %s", v, t)
	}
	return appendFloat(buf, t, f)
}

// exactFloat returns v as a float with at most the given number of binary digits. ok is false if v
// has more.
func exactFloat(v batch.Int128, digits int) (f float64, ok bool) {
	size := v
	if v.Hi < 0 {
		size = v.Neg() // of −2^127 itself, whose bits are also the bits of 2^127
	}
	lo, hi := size.Lo, uint64(size.Hi)
	length, zeros := bits.Len64(lo), bits.TrailingZeros64(lo)
	if hi != 0 {
		length = 64 + bits.Len64(hi)
		if lo == 0 {
			zeros = 64 + bits.TrailingZeros64(hi)
		}
	}
	if length-min(zeros, length) > digits {
		return 0, false
	}
	if f = math.Ldexp(float64(hi), 64) + float64(lo); v.Hi < 0 {
		f = -f
	}
	return f, true
}

// appendFloatAsInteger appends the integer cell of a float that has no fraction.
func appendFloatAsInteger(buf []byte, c *schema.Column, f float64) ([]byte, error) {
	if math.Trunc(f) != f || math.Abs(f) >= 1<<127 { // NaN is not equal to itself
		return nil, fmt.Errorf("%v cannot be represented exactly as %s", f, c.TypeName())
	}
	size := math.Abs(f)
	high := math.Floor(math.Ldexp(size, -64)) // exact, as is the rest: f has 53 binary digits
	v := batch.Int128{Hi: int64(high), Lo: uint64(size - math.Ldexp(high, 64))}
	if f < 0 {
		v = v.Neg()
	}
	return appendInteger(buf, c, v)
}

// appendFloatAsDecimal appends the decimal cell of a float of size bits, as shortestDecimal returns
// it.
func appendFloatAsDecimal(buf []byte, c *schema.Column, f float64, size int) ([]byte, error) {
	d, err := shortestDecimal(f, size)
	if err != nil {
		return nil, fmt.Errorf("%v cannot be represented as %s", f, c.TypeName())
	}
	v, err := rescale(d, c.Scale)
	if err != nil || !v.FitsDigits(c.Precision) {
		return nil, fmt.Errorf("%v cannot be represented exactly as %s", f, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

// shortestDecimal returns the shortest decimal number whose nearest float of size bits is f. For a
// constant, this is the number in the source: 0.1 is 1 × 10^−1. The scale may be negative.
func shortestDecimal(f float64, size int) (batch.Decimal, error) {
	if math.IsInf(f, 0) || f != f {
		return batch.Decimal{}, fmt.Errorf("%v is not a decimal number: %w", f, fault.ErrSchema)
	}
	var memory [32]byte
	text := strconv.AppendFloat(memory[:0], f, 'e', -1, size) // -d.ddde±dd
	mantissa, exponent, _ := strings.Cut(string(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	unscaled, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return batch.Decimal{}, err
	}
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return batch.Decimal{}, err
	}
	if unscaled == 0 {
		return batch.Decimal{}, nil
	}
	return batch.Decimal{Unscaled: batch.Int128Of(unscaled), Scale: len(fraction) - power}, nil
}
