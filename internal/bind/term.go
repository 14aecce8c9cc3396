package bind

import (
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Term is the number Offset + Slope × the value of a column.
type Term struct {
	Column        string
	Offset, Slope batch.Decimal
}

var one = batch.Decimal{Unscaled: batch.Int128{Lo: 1}}

// TermOf returns the term that is a column.
func TermOf(column string) Term { return Term{Column: column, Slope: one} }

// Plus returns t + v. Errors: ErrSchema if v is not a constant, ErrOverflow.
func (t Term) Plus(v any) (Term, error) {
	d, err := constant(v)
	if err != nil {
		return t, err
	}
	scale := max(t.Offset.Scale, d.Scale)
	a, err1 := rescale(t.Offset, scale)
	b, err2 := rescale(d, scale)
	sum, ok := a.Add(b)
	if err1 != nil || err2 != nil || !ok {
		return t, errConstant
	}
	t.Offset = batch.Decimal{Unscaled: sum, Scale: scale}
	return t, nil
}

// Times returns t × v. Errors: as of Plus.
func (t Term) Times(v any) (Term, error) {
	d, err := constant(v)
	if err != nil {
		return t, err
	}
	offset, ok1 := t.Offset.Unscaled.Mul(d.Unscaled)
	slope, ok2 := t.Slope.Unscaled.Mul(d.Unscaled)
	if !ok1 || !ok2 {
		return t, errConstant
	}
	t.Slope = batch.Decimal{Unscaled: slope, Scale: t.Slope.Scale + d.Scale}
	if t.Offset.Unscaled = offset; offset != (batch.Int128{}) {
		t.Offset.Scale += d.Scale
	}
	return t, nil
}

var errConstant = fmt.Errorf("a constant of a term: %w", fault.ErrOverflow)

// constant returns v as a number with 0 or more decimals.
func constant(v any) (d batch.Decimal, err error) {
	switch x := v.(type) {
	case batch.Decimal:
		d = x
	case float64:
		d, err = shortestDecimal(x, 64)
	case float32:
		d, err = shortestDecimal(float64(x), 32)
	default:
		var ok bool
		if d.Unscaled, ok = Integer(v); !ok {
			err = fmt.Errorf("a %T is not a constant of a term: %w", v, fault.ErrSchema)
		}
	}
	if err != nil || d.Scale >= 0 {
		return d, err
	}
	whole, err := rescale(d, 0)
	if err != nil {
		return d, errConstant
	}
	return batch.Decimal{Unscaled: whole}, nil
}

// Bind returns the term for column i of a batch, whose schema is c, and the scale of its values.
// Errors: ErrSchema if values of the column cannot be added, ErrOverflow.
func (t Term) Bind(c *schema.Column, i int) (bound aggregate.Term, scale int, err error) {
	if !summable(c.Type) {
		return bound, 0, fmt.Errorf("type %s cannot be added: %w", c.TypeName(), fault.ErrSchema)
	}
	bound = aggregate.Term{Column: i, FloatOffset: Float(t.Offset), FloatSlope: Float(t.Slope)}
	if c.Type.Float() {
		return bound, 0, nil
	}
	slope := batch.Decimal{Unscaled: t.Slope.Unscaled, Scale: t.Slope.Scale + c.Scale}
	scale = max(t.Offset.Scale, slope.Scale)
	var err1, err2 error
	bound.Offset, err1 = rescale(t.Offset, scale)
	bound.Slope, err2 = rescale(slope, scale)
	if err1 != nil || err2 != nil {
		return bound, 0, errConstant
	}
	return bound, scale, nil
}

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
	name, zero := QuoteName(t.Column), batch.Int128{}
	product := name
	switch minus := t.Slope.Unscaled.Negative(); {
	case t.Slope == one:
	case t.Slope == batch.Decimal{Unscaled: one.Unscaled.Neg()}:
		product = "-" + name
	case minus && t.Offset.Unscaled != zero:
		product = "-" + strings.TrimPrefix(t.Slope.String(), "-") + " * " + name
	default:
		product = t.Slope.String() + " * " + name
	}
	switch {
	case t.Offset.Unscaled != zero && strings.HasPrefix(product, "-"):
		return "(" + t.Offset.String() + " - " + product[1:] + ")"
	case t.Offset.Unscaled != zero:
		return "(" + t.Offset.String() + " + " + product + ")"
	case product != name:
		return "(" + product + ")"
	}
	return product
}
