package oribi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Int128 is a signed 128-bit integer in two's complement.
type Int128 = batch.Int128

// Decimal is an exact decimal number: Unscaled × 10^−Scale.
type Decimal struct {
	Unscaled Int128
	Scale    int
}

// NewDecimal returns a Decimal with a small unscaled integer: NewDecimal(150, 2) is 1.50.
func NewDecimal(unscaled int64, scale int) Decimal {
	return Decimal{Unscaled: batch.Int128Of(unscaled), Scale: scale}
}

// String returns d with all digits of its scale, such as 1.50. A number whose scale no column can
// have is written with an exponent, such as 15e-99.
func (d Decimal) String() string {
	if d.Scale < 0 || d.Scale > schema.MaxPrecision {
		return fmt.Sprintf("%ve%d", d.Unscaled, -d.Scale)
	}
	return string(celltext.AppendDecimal(nil, d.Unscaled, d.Scale))
}

// float returns the float64 that is nearest to d.
func (d Decimal) float() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64) // a number out of range is an infinity
	return f
}

// rescale returns the unscaled value of d at another scale, or an error if it is not exact.
func (d Decimal) rescale(scale int) (Int128, error) {
	v := d.Unscaled
	if v == (Int128{}) {
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

// Cell is a value in the bytes of its column's type, as batch.Vector.Cell and GetCells return them:
// little-endian for types of fixed width. Row, Key, and predicates accept a Cell as well as Go's
// types, and so does a field of a typed row. Bytes that are no cell of the column's type are refused
// like any other value that the column cannot hold. A nil Cell is NULL.
type Cell []byte

// appendValue checks a Go value against a column and returns its cell. The cell of a byte string is
// v itself, not copied if it is a []byte. A cell of fixed width is in the memory of buf, which is
// empty, if that is large enough. nil is NULL.
func appendValue(buf []byte, c *schema.Column, v any) (cell []byte, err error) {
	if v == nil {
		return nil, nil
	}
	switch c.Type {
	case schema.String, schema.Varchar:
		var text []byte
		switch s := v.(type) {
		case string:
			text = bytesOf(s)
		case []byte:
			text = s
		default:
			return byKind(buf, c, v)
		}
		return orEmpty(text), checkText(c, text)
	case schema.Binary:
		switch s := v.(type) {
		case []byte:
			if s == nil {
				return nil, nil
			}
			return orEmpty(s), nil
		case string:
			return orEmpty(bytesOf(s)), nil
		}
		return byKind(buf, c, v)
	case schema.Array:
		return arrayCell(c, v)
	case schema.Bool:
		if b, ok := v.(bool); ok {
			return appendBool(buf, b), nil
		}
		return byKind(buf, c, v)
	case schema.Float, schema.Double:
		switch f := v.(type) {
		case float64:
			return appendFloat(buf, c.Type, f)
		case float32:
			return appendFloat(buf, c.Type, float64(f))
		}
		if i, ok := integer(v); ok {
			return appendIntegerAsFloat(buf, c.Type, i)
		}
		return byKind(buf, c, v)
	case schema.Date, schema.Timestamp:
		if t, ok := v.(time.Time); ok {
			return appendTime(buf, c.Type, t)
		}
		if i, ok := integer(v); ok {
			return appendInteger(buf, c, i)
		}
		return byKind(buf, c, v)
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		switch d := v.(type) {
		case Decimal:
			return appendDecimal(buf, c, d)
		case float64:
			return appendFloatAsDecimal(buf, c, d, 64)
		case float32:
			return appendFloatAsDecimal(buf, c, float64(d), 32)
		}
		if i, ok := integer(v); ok {
			return appendDecimal(buf, c, Decimal{Unscaled: i})
		}
		return byKind(buf, c, v)
	}
	switch f := v.(type) {
	case float64:
		return appendFloatAsInteger(buf, c, f)
	case float32:
		return appendFloatAsInteger(buf, c, float64(f))
	}
	if i, ok := integer(v); ok {
		return appendInteger(buf, c, i)
	}
	return byKind(buf, c, v)
}

// byKind is appendValue for cells, pointers, and named types, which it converts to their underlying
// types.
func byKind(buf []byte, c *schema.Column, v any) ([]byte, error) {
	if cell, ok := v.(Cell); ok {
		return appendCell(buf, c, cell)
	}
	r := reflect.ValueOf(v)
	switch k := r.Kind(); {
	case k == reflect.Pointer && r.IsNil():
		return nil, nil
	case k == reflect.Pointer:
		return appendValue(buf, c, r.Elem().Interface())
	case r.Type().PkgPath() == "":
	case k == reflect.String:
		return appendValue(buf, c, r.String())
	case k == reflect.Bool:
		return appendValue(buf, c, r.Bool())
	case k == reflect.Float32:
		return appendValue(buf, c, float32(r.Float()))
	case k == reflect.Float64:
		return appendValue(buf, c, r.Float())
	case r.CanInt():
		return appendValue(buf, c, r.Int())
	case r.CanUint():
		return appendValue(buf, c, r.Uint())
	case k == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return appendValue(buf, c, r.Bytes())
	}
	return nil, fmt.Errorf("a %T does not fit type %s", v, c.TypeName())
}

// appendCell is appendValue for a value that is a cell already.
func appendCell(buf []byte, c *schema.Column, cell Cell) ([]byte, error) {
	if err := checkCell(c, cell); err != nil || cell == nil {
		return nil, err
	}
	if c.Type.Variable() {
		return cell, nil
	}
	return append(buf, cell...), nil
}

func integer(v any) (Int128, bool) {
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
		return Int128{Lo: i}, true
	case uint:
		return Int128{Lo: uint64(i)}, true
	case uint32:
		return Int128{Lo: uint64(i)}, true
	case uint16:
		return Int128{Lo: uint64(i)}, true
	case uint8:
		return Int128{Lo: uint64(i)}, true
	case Int128:
		return i, true
	}
	return Int128{}, false
}

// bytesOf returns the memory of a string, which must not be modified: cells are copied into rows,
// keys, and lists, and never modified.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

var emptyCell = []byte{}

func orEmpty(b []byte) []byte {
	if b == nil {
		return emptyCell
	}
	return b
}

// checkText checks that text is UTF-8, and the length of a varchar in characters.
func checkText(c *schema.Column, text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not valid UTF-8")
	}
	if c.Type == schema.Varchar && len(text) > c.Length {
		if n := utf8.RuneCount(text); n > c.Length {
			return fmt.Errorf("%d characters, %s takes %d", n, c.TypeName(), c.Length)
		}
	}
	return nil
}

func appendBool(buf []byte, b bool) []byte {
	var x byte
	if b {
		x = 1
	}
	return append(buf, x)
}

// appendFloat appends the cell of a float. For type float, it rounds to the nearest float32, and
// refuses a finite number that is too large for one.
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
func appendIntegerAsFloat(buf []byte, t schema.Type, v Int128) ([]byte, error) {
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
func exactFloat(v Int128, digits int) (f float64, ok bool) {
	size := v
	if v.Hi < 0 {
		size = v.Neg() // of −2^127 itself, whose bits are also those of 2^127
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
	v := Int128{Hi: int64(high), Lo: uint64(size - math.Ldexp(high, 64))}
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
	v, err := d.rescale(c.Scale)
	if err != nil || !v.FitsDigits(c.Precision) {
		return nil, fmt.Errorf("%v cannot be represented exactly as %s", f, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

// shortestDecimal returns the shortest decimal number for which a float of size bits is the nearest
// one. For a constant, this is the number in the source. The scale may be negative.
func shortestDecimal(f float64, size int) (Decimal, error) {
	if math.IsInf(f, 0) || f != f {
		return Decimal{}, fmt.Errorf("%v is not a decimal number: %w", f, fault.ErrSchema)
	}
	var memory [32]byte
	text := strconv.AppendFloat(memory[:0], f, 'e', -1, size) // -d.ddde±dd
	mantissa, exponent, _ := strings.Cut(string(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	unscaled, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return Decimal{}, err
	}
	power, err := strconv.Atoi(exponent)
	if err != nil {
		return Decimal{}, err
	}
	if unscaled == 0 {
		return Decimal{}, nil
	}
	return NewDecimal(unscaled, len(fraction)-power), nil
}

const secondsPerDay = 86400

func appendTime(buf []byte, t schema.Type, v time.Time) ([]byte, error) {
	if t == schema.Timestamp {
		us := v.UnixMicro()
		switch at := time.UnixMicro(us); {
		case at.Equal(v):
		case v.Nanosecond()%1000 != 0:
			return nil, fmt.Errorf("time %s has nanoseconds, a timestamp has microseconds: truncate it", v.Format(time.RFC3339Nano))
		default:
			return nil, fmt.Errorf("time %v is out of range", v)
		}
		return binary.LittleEndian.AppendUint64(buf, uint64(us)), nil
	}
	_, offset := v.Zone()
	local := v.Unix() + int64(offset) // where this overflows, it becomes a day out of range on the other side
	days := local / secondsPerDay
	if local%secondsPerDay < 0 {
		days--
	}
	if days < schema.MinDate || days > schema.MaxDate {
		return nil, fmt.Errorf("date %s is not between 0001-01-01 and 9999-12-31", v.Format(time.DateOnly))
	}
	return binary.LittleEndian.AppendUint32(buf, uint32(int32(days))), nil
}

func appendDecimal(buf []byte, c *schema.Column, d Decimal) ([]byte, error) {
	v, err := d.rescale(c.Scale)
	if err != nil {
		return nil, err
	}
	if !v.FitsDigits(c.Precision) {
		return nil, fmt.Errorf("%v is out of range for %s", d, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

func appendInteger(buf []byte, c *schema.Column, v Int128) ([]byte, error) {
	if !fits(c.Type, v) {
		return nil, fmt.Errorf("%v is out of range for %s", v, c.TypeName())
	}
	return appendWidth(buf, v, c.Type.Width()), nil
}

// fits reports whether an integer is in the range of a type.
func fits(t schema.Type, v Int128) bool {
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

func appendWidth(buf []byte, v Int128, width int) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], v.Lo)
	binary.LittleEndian.PutUint64(b[8:], uint64(v.Hi))
	return append(buf, b[:width]...)
}

// checkCell checks the bytes of a cell against its column: the width, and the range of the type.
func checkCell(c *schema.Column, cell []byte) error {
	switch {
	case cell == nil:
		return nil
	case !c.Type.Variable() && len(cell) != c.Type.Width():
		return fmt.Errorf("a cell of %d bytes, %s has %d", len(cell), c.TypeName(), c.Type.Width())
	case c.Type == schema.String || c.Type == schema.Varchar:
		return checkText(c, cell)
	case c.Type == schema.Array:
		return checkArrayCell(c, cell)
	case c.Type == schema.Bool && cell[0] > 1:
		return fmt.Errorf("a bool of %d", cell[0])
	case c.Type == schema.Date && !fits(c.Type, wide(cell)):
		return fmt.Errorf("date %v is not between %d and %d", wide(cell), schema.MinDate, schema.MaxDate)
	case c.Type.Decimal() && !wide(cell).FitsDigits(c.Precision):
		return fmt.Errorf("unscaled %v is out of range for %s", wide(cell), c.TypeName())
	}
	return nil
}

// wide returns the value of a signed integer cell of any width.
func wide(cell []byte) Int128 {
	switch len(cell) {
	case 1:
		return batch.Int128Of(int64(int8(cell[0])))
	case 2:
		return batch.Int128Of(int64(int16(binary.LittleEndian.Uint16(cell))))
	case 4:
		return batch.Int128Of(int64(int32(binary.LittleEndian.Uint32(cell))))
	case 8:
		return batch.Int128Of(int64(binary.LittleEndian.Uint64(cell)))
	}
	return Int128{Lo: binary.LittleEndian.Uint64(cell), Hi: int64(binary.LittleEndian.Uint64(cell[8:]))}
}

// isText reports whether a column's values are strings in Go.
func isText(t schema.Type) bool { return t == schema.String || t == schema.Varchar }

// valueOf returns a cell as a Go value: the integer, float, or bool of the column's width; string;
// []byte; time.Time for date and timestamp; Decimal; []any for arrays; nil for NULL. It copies byte
// strings.
func valueOf(c *schema.Column, cell []byte) any {
	if cell == nil {
		return nil
	}
	switch c.Type {
	case schema.String, schema.Varchar:
		return string(cell)
	case schema.Binary:
		return append([]byte{}, cell...)
	case schema.Array:
		return arrayOf(c, cell)
	case schema.Bool:
		return cell[0] != 0
	case schema.Int8:
		return int8(cell[0])
	case schema.Int16:
		return int16(binary.LittleEndian.Uint16(cell))
	case schema.Int32:
		return int32(binary.LittleEndian.Uint32(cell))
	case schema.Int64:
		return int64(binary.LittleEndian.Uint64(cell))
	case schema.Uint8:
		return cell[0]
	case schema.Uint16:
		return binary.LittleEndian.Uint16(cell)
	case schema.Uint32:
		return binary.LittleEndian.Uint32(cell)
	case schema.Uint64:
		return binary.LittleEndian.Uint64(cell)
	case schema.Float:
		return math.Float32frombits(binary.LittleEndian.Uint32(cell))
	case schema.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(cell))
	case schema.Date, schema.Timestamp:
		return timeOf(c.Type, cell)
	case schema.Int128:
		return wide(cell)
	}
	return Decimal{Unscaled: wide(cell), Scale: c.Scale}
}

// timeOf returns a date or timestamp cell as a time in UTC.
func timeOf(t schema.Type, cell []byte) time.Time {
	if t == schema.Date {
		return time.Unix(int64(int32(binary.LittleEndian.Uint32(cell)))*secondsPerDay, 0).UTC()
	}
	return time.UnixMicro(int64(binary.LittleEndian.Uint64(cell))).UTC()
}
