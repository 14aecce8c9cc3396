package oribi

import (
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Term is a factor of SumOfProduct: a column, multiplied by a constant and added to another.
//
//	Col("l_tax").Plus(1)             1 + l_tax
//	Col("l_discount").Neg().Plus(1)  1 − l_discount
//
// Constants are exact: integers, decimals, or floats, which stand for the shortest decimal number
// that is nearest to them. A constant that is none of these is ErrSchema when the call begins, and
// one that is out of range ErrOverflow. A Term is immutable.
type Term struct {
	column        string
	offset, slope Decimal // of offset + slope × column
	err           error
}

// Col returns the term that is a column, whose type is an integer, a decimal, or a float.
func Col(column string) Term { return Term{column: column, slope: NewDecimal(1, 0)} }

// Plus returns t + v.
func (t Term) Plus(v any) Term {
	d := t.constant(v)
	scale := max(t.offset.Scale, d.Scale)
	a, err1 := t.offset.rescale(scale)
	b, err2 := d.rescale(scale)
	sum, ok := a.Add(b)
	if err1 != nil || err2 != nil || !ok {
		t.overflow()
		return t
	}
	t.offset = Decimal{sum, scale}
	return t
}

// Times returns t × v.
func (t Term) Times(v any) Term {
	d := t.constant(v)
	a, ok1 := t.offset.Unscaled.Mul(d.Unscaled)
	b, ok2 := t.slope.Unscaled.Mul(d.Unscaled)
	if !ok1 || !ok2 {
		t.overflow()
		return t
	}
	t.slope = Decimal{b, t.slope.Scale + d.Scale}
	if t.offset.Unscaled = a; a != (Int128{}) {
		t.offset.Scale += d.Scale
	}
	return t
}

// Neg returns −t.
func (t Term) Neg() Term { return t.Times(-1) }

// constant returns v as a number with 0 or more decimals. If that is impossible, it sets t.err.
func (t *Term) constant(v any) (d Decimal) {
	switch x := v.(type) {
	case Decimal:
		d = x
	case float64:
		d, t.err = shortestDecimal(x, 64)
	case float32:
		d, t.err = shortestDecimal(float64(x), 32)
	default:
		var ok bool
		if d.Unscaled, ok = integer(v); !ok && t.err == nil {
			t.err = fmt.Errorf("a %T is not a constant of a term: %w", v, fault.ErrSchema)
		}
	}
	if d.Scale >= 0 {
		return d
	}
	var err error
	if d.Unscaled, err = d.rescale(0); err != nil {
		t.overflow()
	}
	d.Scale = 0
	return d
}

func (t *Term) overflow() {
	if t.err == nil {
		t.err = fmt.Errorf("a constant of a term: %w", fault.ErrOverflow)
	}
}

// bind returns the term for column i of a batch, which has the schema c, and the scale of its
// values.
func (t *Term) bind(c *schema.Column, i int) (bound aggregate.Term, scale int, err error) {
	if t.err != nil {
		return bound, 0, t.err
	}
	if !summable(c.Type) {
		return bound, 0, fmt.Errorf("type %s cannot be added: %w", c.TypeName(), fault.ErrSchema)
	}
	bound = aggregate.Term{Column: i, FloatOffset: t.offset.float(), FloatSlope: t.slope.float()}
	if isFloat(c.Type) {
		return bound, 0, nil
	}
	scale = max(t.offset.Scale, t.slope.Scale+c.Scale)
	slope := Decimal{t.slope.Unscaled, t.slope.Scale + c.Scale}
	if bound.Offset, err = t.offset.rescale(scale); err == nil {
		bound.Slope, err = slope.rescale(scale)
	}
	if err != nil {
		return bound, 0, fmt.Errorf("a constant of a term: %w", fault.ErrOverflow)
	}
	return bound, scale, nil
}

func isFloat(t schema.Type) bool { return t == schema.Float || t == schema.Double }

// summable reports whether values of a type can be added.
func summable(t schema.Type) bool {
	switch t {
	case schema.Bool, schema.Date, schema.Timestamp:
		return false
	}
	return !t.Variable()
}

// String returns t in the syntax of SQL.
func (t Term) String() string {
	name, zero := quoteName(t.column), batch.Int128{}
	product := name
	switch minus := t.slope.Unscaled.Negative(); {
	case t.slope == NewDecimal(1, 0):
	case t.slope == NewDecimal(-1, 0):
		product = "-" + name
	case minus && t.offset.Unscaled != zero:
		product = "-" + strings.TrimPrefix(t.slope.String(), "-") + " * " + name
	default:
		product = t.slope.String() + " * " + name
	}
	switch {
	case t.offset.Unscaled != zero && strings.HasPrefix(product, "-"):
		return "(" + t.offset.String() + " - " + product[1:] + ")"
	case t.offset.Unscaled != zero:
		return "(" + t.offset.String() + " + " + product + ")"
	case product != name:
		return "(" + product + ")"
	}
	return product
}
