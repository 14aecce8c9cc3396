package values

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// GoValue returns the Go value that an oribi.Row has for a cell.
func GoValue(c *schema.Column, cell []byte) any {
	if cell == nil {
		return nil
	}
	if c.Type == schema.Array {
		elements, err := schema.ArrayElements(nil, c.Element, cell)
		if err != nil {
			panic(err) // the generator is wrong
		}
		element, out := c.Elements(), make([]any, len(elements))
		for i, e := range elements {
			out[i] = GoValue(&element, e)
		}
		return out
	}
	var wide [16]byte
	copy(wide[:], cell)
	if n := len(cell); !c.Type.Variable() && cell[n-1] >= 0x80 {
		for i := n; i < 16; i++ {
			wide[i] = 0xff
		}
	}
	u := binary.LittleEndian.Uint64(wide[:])
	i128 := batch.Int128{Lo: u, Hi: int64(binary.LittleEndian.Uint64(wide[8:]))}
	switch c.Type {
	case schema.Bool:
		return u != 0
	case schema.Int8:
		return int8(u)
	case schema.Int16:
		return int16(u)
	case schema.Int32:
		return int32(u)
	case schema.Int64:
		return int64(u)
	case schema.Uint8:
		return uint8(u)
	case schema.Uint16:
		return uint16(u)
	case schema.Uint32:
		return uint32(u)
	case schema.Uint64:
		return u
	case schema.Int128:
		return i128
	case schema.Float:
		return math.Float32frombits(uint32(u))
	case schema.Double:
		return math.Float64frombits(u)
	case schema.String, schema.Varchar:
		return string(cell)
	case schema.Binary:
		return cell
	case schema.Date:
		return time.Date(1970, 1, 1+int(int32(u)), 0, 0, 0, 0, time.UTC)
	case schema.Timestamp:
		return time.UnixMicro(int64(u)).UTC()
	}
	return oribi.Decimal{Unscaled: i128, Scale: c.Scale}
}

// SameValue reports whether two values of oribi.Row are equal: floats by their bits, times by
// their instant.
func SameValue(a, b any) bool {
	switch x := a.(type) {
	case float32:
		y, ok := b.(float32)
		return ok && math.Float32bits(x) == math.Float32bits(y)
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	case []byte:
		y, ok := b.([]byte)
		return ok && string(x) == string(y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, SameValue)
	}
	return reflect.DeepEqual(a, b)
}

// RowValues returns the cells of an operation or a row as an oribi.Row. The row has the columns
// that set selects; nil selects all.
func RowValues(s *schema.Schema, cells [][]byte, set []bool) oribi.Row {
	row := oribi.Row{}
	for i := range cells {
		if set == nil || set[i] {
			row[s.Columns[i].Name] = GoValue(&s.Columns[i], cells[i])
		}
	}
	return row
}
