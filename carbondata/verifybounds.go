package carbondata

import (
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// usableBounds returns the bounds of a column, nil if they cannot be used.
func (c *Column) usableBounds(lo, hi []byte, present bool) (first, last any, err error) {
	if !present || c.nested || len(c.Children) > 0 {
		return nil, nil, nil
	}
	first, ok1 := c.boundValue(lo)
	last, ok2 := c.boundValue(hi)
	switch typ := c.inFile().Type; {
	case isNaN(first), isNaN(last): // without order
		return nil, nil, nil
	case ok1 && ok2 && compareValues(first, last) > 0:
		return nil, nil, fault.Corruptf("the minimum, %s, is greater than the maximum, %s",
			valueText(first), valueText(last))
	case ok1 && ok2:
		return first, last, nil
	case c.dimension && typ != Date && typ != Short && typ != Int && typ != Long && typ != Timestamp:
		return nil, nil, nil
	// before 1.5, of a column with nulls; out of range
	case typ == Timestamp && (len(lo) == 0 || len(lo) == 8 && len(hi) == 8):
		return nil, nil, nil
	}
	return nil, nil, fault.Corruptf("bounds %x and %x of %s", lo, hi, c.inFile().TypeName())
}

// seenBounds are the least and the greatest of some values, where a null counts as the value that
// is stored for it. Source: carbondata spec §9.
type seenBounds struct {
	min, max  any // nil: no values
	nan       bool
	tolerance float64 // how far values of FLOAT and DOUBLE can be from those that the writer had
}

// tolerance returns how far the values of the page can be from those that the writer had: floating
// codecs round, and with delta the maximum is truncated. Source: carbondata spec §7.3.
func (p *page) tolerance() float64 {
	if p.form == formNumbers && (p.numbers.enc == encAdaptiveFloat || p.numbers.enc == encAdaptiveFloatDel) {
		return 2 / p.numbers.factor
	}
	return 0
}

// nullBound returns what bounds contain for a null of the column, or nil.
func (c *Column) nullBound() any {
	switch c.Type {
	case String, Varchar:
		return nullText
	case Binary:
		return []byte{}
	case Date:
		const days = dateNull - dateZero
		return Days(days)
	case Boolean:
		return false
	case Float:
		return float32(0)
	case Double:
		return float64(0)
	case Decimal:
		return batch.Int128{}
	}
	return ofNumber(c.Type, 0)
}

// add adds a value of a column without children.
func (s *seenBounds) add(c *Column, value any) {
	if value == nil {
		value = c.nullBound()
	}
	switch {
	case isNaN(value):
		s.nan = true
	case s.min == nil:
		s.min, s.max = value, value
	case compareValues(value, s.min) < 0:
		s.min = value
	case compareValues(value, s.max) > 0:
		s.max = value
	}
}

// merge adds the values of o, which are of the same column.
func (s *seenBounds) merge(o *seenBounds) {
	if s.min == nil || o.min != nil && compareValues(o.min, s.min) < 0 {
		s.min = o.min
	}
	if s.max == nil || o.max != nil && compareValues(o.max, s.max) > 0 {
		s.max = o.max
	}
	s.nan = s.nan || o.nan
	s.tolerance = max(s.tolerance, o.tolerance)
}

// within reports whether the values are in [lo, hi].
func (s *seenBounds) within(lo, hi any) bool {
	if s.min == nil {
		return true
	}
	// The product of the maximum and the factor is rounded to the precision of the type.
	near := func(min, max, lo, hi, precision float64) bool {
		margin := s.tolerance + precision*math.Max(math.Abs(lo), math.Abs(hi))
		return min >= lo-margin && max <= hi+margin
	}
	switch lo := lo.(type) {
	case float32:
		if s.tolerance > 0 {
			return near(float64(s.min.(float32)), float64(s.max.(float32)), float64(lo), float64(hi.(float32)), 0x1p-22)
		}
	case float64:
		if s.tolerance > 0 {
			return near(s.min.(float64), s.max.(float64), lo, hi.(float64), 0x1p-51)
		}
	}
	return compareValues(lo, s.min) <= 0 && compareValues(s.max, hi) <= 0
}

// equal checks that the bounds lo and hi, within which the values are, are values, if these are
// exact.
func (s *seenBounds) equal(lo, hi any) error {
	switch {
	case lo == nil || s.min == nil || s.nan || s.tolerance > 0:
		return nil
	case compareValues(lo, s.min) != 0:
		return fault.Corruptf("the minimum is %s, the least value %s", valueText(lo), valueText(s.min))
	case compareValues(hi, s.max) != 0:
		return fault.Corruptf("the maximum is %s, the greatest value %s", valueText(hi), valueText(s.max))
	}
	return nil
}

// valueText returns the text of a value in an error.
func valueText(v any) string {
	const cut = 40
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%.*q", cut, v)
	case []byte:
		return fmt.Sprintf("%x", v[:min(len(v), cut)])
	}
	return fmt.Sprint(v)
}
