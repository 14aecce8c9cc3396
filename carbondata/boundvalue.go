package carbondata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"github.com/oribi-db/oribi/batch"
)

// boundValue returns a minimum or maximum of the column as a value of the Go type that Type gives,
// and whether it can be used. Bounds of complex columns and of BOOLEAN sort columns cannot be used.
// Integers are big-endian. Source: carbondata spec §9.
//
//	STRING, VARCHAR, BINARY     the bytes; a null is @NU#LL$!, or empty
//	DATE                        4, as in pages; a null is 1, less than all days
//	SHORT, INT, LONG, TIMESTAMP dimensions: 2, 4, 8, 8, sign bit flipped; TIMESTAMP in milliseconds
//	BOOLEAN, BYTE               1
//	SHORT, INT, LONG            measures: 8
//	DOUBLE; FLOAT               8; 4, and 4 bytes that are not used
//	DECIMAL                     scale (1), unscaled: two's complement
//
// The INT 99 of a measure: 00 00 00 00 00 00 00 63. Of a sort column: 80 00 00 63. The DECIMAL
// 12.35: 02 04 d3
func (c *Column) boundValue(b []byte) (v any, usable bool) {
	if c.nested || len(c.Children) > 0 {
		return nil, false
	}
	be := binary.BigEndian
	integerOf := func(width int, n int64) (any, bool) {
		if len(b) != width {
			return nil, false
		}
		v, err := integer(c.Type, n)
		return v, err == nil
	}
	var wide [8]byte // b at its end, for integers
	if len(b) <= len(wide) {
		copy(wide[len(wide)-len(b):], b)
	}
	n := int64(be.Uint64(wide[:]))
	switch typ := c.inFile().Type; {
	case typ == String || typ == Varchar:
		return string(b), true
	case typ == Binary:
		return bytes.Clone(b), true
	case typ == Date:
		return Days(int32(n - dateZero)), len(b) == dateLen
	case typ == Short && c.dimension:
		return integerOf(2, int64(int16(n^1<<15)))
	case typ == Int && c.dimension:
		return integerOf(4, int64(int32(n^1<<31)))
	case (typ == Long || typ == Timestamp) && c.dimension:
		return integerOf(8, n^math.MinInt64)
	case c.dimension:
		return nil, false
	case typ == Boolean || typ == Byte:
		return integerOf(1, int64(int8(n)))
	case typ == Short || typ == Int || typ == Long:
		return integerOf(8, n)
	case typ == Double && len(b) == 8:
		return math.Float64frombits(uint64(n)), true
	case typ == Float && len(b) == 8:
		return math.Float32frombits(uint32(n >> 32)), true
	case typ == Decimal && len(b) > 1 && len(b) <= 1+16 && int(b[0]) <= c.Scale:
		d, err := rescale(batch.Int128(int128(b[1:])), c.Scale-int(b[0]))
		return d, err == nil
	}
	return nil, false
}

// compareValues returns the order of two values of one type without children, not nil. NaN is equal
// to nothing and has no order: the result is 0.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case bool:
		b := b.(bool)
		switch {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	case int8:
		return cmp.Compare(a, b.(int8))
	case int16:
		return cmp.Compare(a, b.(int16))
	case int32:
		return cmp.Compare(a, b.(int32))
	case int64:
		return cmp.Compare(a, b.(int64))
	case Days:
		return cmp.Compare(a, b.(Days))
	case Micros:
		return cmp.Compare(a, b.(Micros))
	case float32:
		return compareFloats(float64(a), float64(b.(float32)))
	case float64:
		return compareFloats(a, b.(float64))
	case batch.Int128:
		return a.Cmp(b.(batch.Int128))
	case string:
		return strings.Compare(a, b.(string))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	}
	return 0
}

// isNaN reports whether a value is a FLOAT or DOUBLE that is not a number.
func isNaN(v any) bool {
	switch v := v.(type) {
	case float32:
		return v != v
	case float64:
		return v != v
	}
	return false
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
