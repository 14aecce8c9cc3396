package bind

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// MaxWidth is the largest width of a cell of fixed width, in bytes.
const MaxWidth = 16

// appendScalar is Append for a column that is not an array.
func appendScalar(buf []byte, c *schema.Column, v any) (cell []byte, err error) {
	if v == nil {
		return nil, nil
	}
	switch c.Type {
	case schema.String, schema.Varchar:
		switch s := v.(type) {
		case string:
			text := bytesOf(s)
			return orEmpty(text), celltext.CheckText(c, text)
		case []byte:
			return orEmpty(s), celltext.CheckText(c, s)
		}
	case schema.Binary:
		switch s := v.(type) {
		case []byte:
			if s == nil {
				return nil, nil
			}
			return s, nil
		case string:
			return orEmpty(bytesOf(s)), nil
		}
	case schema.Bool:
		if b, ok := v.(bool); ok {
			return appendBool(buf, b), nil
		}
	case schema.Float, schema.Double:
		switch f := v.(type) {
		case float64:
			return appendFloat(buf, c.Type, f)
		case float32:
			return appendFloat(buf, c.Type, float64(f))
		}
		if i, ok := Integer(v); ok {
			return appendIntegerAsFloat(buf, c.Type, i)
		}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		switch d := v.(type) {
		case batch.Decimal:
			return appendDecimal(buf, c, d)
		case float64:
			return appendFloatAsDecimal(buf, c, d, 64)
		case float32:
			return appendFloatAsDecimal(buf, c, float64(d), 32)
		}
		if i, ok := Integer(v); ok {
			return appendDecimal(buf, c, batch.Decimal{Unscaled: i})
		}
	case schema.Date, schema.Timestamp:
		if t, ok := v.(time.Time); ok {
			return appendTime(buf, c.Type, t)
		}
		if i, ok := Integer(v); ok {
			return appendInteger(buf, c, i)
		}
	default:
		switch f := v.(type) {
		case float64:
			return appendFloatAsInteger(buf, c, f)
		case float32:
			return appendFloatAsInteger(buf, c, float64(f))
		}
		if i, ok := Integer(v); ok {
			return appendInteger(buf, c, i)
		}
	}
	return appendByKind(buf, c, v)
}

// appendByKind is appendScalar for cells, pointers, and named types. It converts a value of a named
// type to the underlying type.
func appendByKind(buf []byte, c *schema.Column, v any) ([]byte, error) {
	if cell, ok := v.(batch.Cell); ok {
		return appendCell(buf, c, cell)
	}
	r := reflect.ValueOf(v)
	switch k := r.Kind(); {
	case k == reflect.Pointer && r.IsNil():
		return nil, nil
	case k == reflect.Pointer:
		return appendScalar(buf, c, r.Elem().Interface())
	case r.Type().PkgPath() == "":
	case k == reflect.String:
		return appendScalar(buf, c, r.String())
	case k == reflect.Bool:
		return appendScalar(buf, c, r.Bool())
	case k == reflect.Float32:
		return appendScalar(buf, c, float32(r.Float()))
	case k == reflect.Float64:
		return appendScalar(buf, c, r.Float())
	case r.CanInt():
		return appendScalar(buf, c, r.Int())
	case r.CanUint():
		return appendScalar(buf, c, r.Uint())
	case k == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return appendScalar(buf, c, r.Bytes())
	}
	return nil, errType(c, v)
}

func errType(c *schema.Column, v any) error {
	return fmt.Errorf("a %T does not fit type %s", v, c.TypeName())
}

// appendCell is Append for a value that is a cell already.
func appendCell(buf []byte, c *schema.Column, cell batch.Cell) ([]byte, error) {
	if err := Check(c, cell); err != nil || cell == nil {
		return nil, err
	}
	if c.Type.Variable() {
		return cell, nil
	}
	return append(buf, cell...), nil
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

func appendBool(buf []byte, b bool) []byte {
	var x byte
	if b {
		x = 1
	}
	return append(buf, x)
}

const secondsPerDay = 86400

// appendTime appends the cell of a time, which it rounds down: to microseconds, or to the day in the
// time's own zone.
func appendTime(buf []byte, t schema.Type, v time.Time) ([]byte, error) {
	if t == schema.Timestamp {
		us := v.UnixMicro()
		if !time.UnixMicro(us).Add(time.Duration(v.Nanosecond() % 1000)).Equal(v) {
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

// checkScalar is Check for a column that is not an array.
func checkScalar(c *schema.Column, cell []byte) error {
	if cell == nil {
		return nil
	}
	if !c.Type.Variable() && len(cell) != c.Type.Width() {
		return fmt.Errorf("a cell of %d bytes, %s has %d", len(cell), c.TypeName(), c.Type.Width())
	}
	switch {
	case c.Type.Text():
		return celltext.CheckText(c, cell)
	case c.Type == schema.Bool && cell[0] > 1:
		return fmt.Errorf("a bool of %d", cell[0])
	case c.Type == schema.Date:
		if v := batch.Int128OfCell(c.Type, cell); !fits(c.Type, v) {
			return fmt.Errorf("date %v is not between %d and %d", v, schema.MinDate, schema.MaxDate)
		}
	case c.Type.Decimal():
		if v := batch.Int128OfCell(c.Type, cell); !v.FitsDigits(c.Precision) {
			return fmt.Errorf("unscaled %v is out of range for %s", v, c.TypeName())
		}
	}
	return nil
}

// scalarValue is Value for a column that is not an array.
func scalarValue(c *schema.Column, cell []byte) any {
	if cell == nil {
		return nil
	}
	switch c.Type {
	case schema.String, schema.Varchar:
		return string(cell)
	case schema.Binary:
		return append([]byte{}, cell...)
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
		return batch.Int128OfCell(c.Type, cell)
	}
	return decimalOf(c, cell)
}

// timeOf returns a date or timestamp cell as a time in UTC.
func timeOf(t schema.Type, cell []byte) time.Time {
	if t == schema.Date {
		return time.Unix(int64(int32(binary.LittleEndian.Uint32(cell)))*secondsPerDay, 0).UTC()
	}
	return time.UnixMicro(int64(binary.LittleEndian.Uint64(cell))).UTC()
}

func decimalOf(c *schema.Column, cell []byte) batch.Decimal {
	return batch.Decimal{Unscaled: batch.Int128OfCell(c.Type, cell), Scale: c.Scale}
}
