package carbondata

import (
	"math"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// defaultValue returns the value of c in files that do not have the column, nil without a default.
// Source: carbondata spec §4.2; CarbonData's DataTypeUtil writes and RestructureUtil reads it.
//
//	BYTE, SHORT, INT, LONG      decimal text
//	FLOAT, DOUBLE               decimal text; NaN and infinities are null
//	BOOLEAN                     "true" in any case; anything else is false
//	DECIMAL                     scale (1), unscaled: two's complement, big-endian
//	DATE                        decimal text of days since 1970-01-01 and 3fffffff; "1" is null
//	TIMESTAMP                   milliseconds (8, big-endian), sign bit flipped
//	STRING, VARCHAR, BINARY     bytes
//
// A DECIMAL(8,2) with the default 12.35: 02 04 d3
func defaultValue(c *Column) (any, error) {
	b := c.Default
	if b == nil || len(b) == 0 && c.Type != String && c.Type != Varchar {
		return nil, nil
	}
	switch c.Type {
	case String, Varchar, Binary:
		return textValue(c.Type, b), nil
	case Boolean:
		return strings.EqualFold(string(b), "true"), nil
	case Decimal:
		return nestedDecimal(c, b)
	case Timestamp:
		return oldNumber(c, b)
	case Byte, Short, Int, Long:
		v, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return nil, fault.Corruptf("default: %v", err)
		}
		return integer(c.Type, v)
	case Date:
		v, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return nil, fault.Corruptf("default: %v", err)
		}
		return date(uint32(v)), nil
	case Float, Double:
		bits := 64
		if c.Type == Float {
			bits = 32
		}
		v, err := strconv.ParseFloat(string(b), bits)
		switch {
		case math.IsInf(v, 0), math.IsNaN(v):
			return nil, nil
		case err != nil:
			return nil, fault.Corruptf("default: %v", err)
		case c.Type == Float:
			return float32(v), nil
		}
		return v, nil
	}
	return nil, fault.Corruptf("%s with a default", c.TypeName())
}

// widen makes the column of a file read as to, the table's column, if that has the same type or a
// wider one: LONG for INT, a DECIMAL with more digits and no fewer on either side of the point;
// fields of a STRUCT may have other names with the same IDs. It reports whether it has. Source:
// carbondata spec §21, "Schema evolution".
func (c *Column) widen(to *Column) bool {
	if len(c.Children) != len(to.Children) {
		return false
	}
	for i := range c.Children {
		from, to := &c.Children[i], &to.Children[i]
		if c.Type == Struct && from.Name != to.Name && (from.ID == "" || from.ID != to.ID) || !from.widen(to) {
			return false
		}
	}
	if c.Type == to.Type && (c.Type != Decimal || c.Precision == to.Precision && c.Scale == to.Scale) {
		return true
	}
	if !(c.Type == Int && to.Type == Long || c.Type == Decimal && to.Type == Decimal && c.Scale <= to.Scale &&
		c.Precision-c.Scale <= to.Precision-to.Scale) {
		return false
	}
	stored := *c
	c.stored, c.Type, c.Precision, c.Scale = &stored, to.Type, to.Precision, to.Scale
	return true
}

// inFile returns the column as the file has it.
func (c *Column) inFile() *Column {
	if c.stored != nil {
		return c.stored
	}
	return c
}

// rescale returns the unscaled integer of a DECIMAL with more digits after the point.
func rescale(v batch.Int128, digits int) (batch.Int128, error) {
	ok := true
	for ; digits > 0 && ok; digits-- {
		v, ok = v.Mul10()
	}
	if !ok {
		return v, fault.Corruptf("a DECIMAL of more than 128 bits")
	}
	return v, nil
}
