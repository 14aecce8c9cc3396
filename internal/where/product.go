package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Number is a constant: Unscaled × 10^−Scale.
type Number struct {
	Unscaled batch.Int128
	Scale    int
}

// Factor is a factor of a product: Offset + Slope × Column.
type Factor struct {
	Column        *schema.Column
	Offset, Slope Number
}

// ParseProduct parses a product of columns, and of constants plus or times a column:
//
//	product  = factor { "*" factor }
//	factor   = column | "(" item [ ( "+" | "-" ) item ] ")"
//	item     = [ "-" ] ( column | number [ "*" column ] )
//
// One of the items in parentheses has a column. A text that is the name of a column is that column,
// whatever characters it has. Errors name the column or the byte, counted from 1.
func ParseProduct(columns []schema.Column, text string) (factors []Factor, err error) {
	one := Number{Unscaled: batch.Int128Of(1)}
	for i := range columns {
		if columns[i].Name == text {
			return []Factor{{Column: &columns[i], Slope: one}}, nil
		}
	}
	p := parser{columns: columns, lexer: lexer{input: text, arithmetic: true}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for {
		f := Factor{Slope: one}
		if p.at("(") {
			f, err = p.linear()
		} else {
			f.Column, err = p.column()
		}
		if err != nil {
			return nil, err
		}
		factors = append(factors, f)
		switch {
		case p.token.kind == end:
			return factors, nil
		case !p.at("*"):
			return nil, p.unexpected(`"*"`)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

var errLinear = errors.New("want one column and at most one other number in parentheses, such as (1 - tax)")

// linear parses a factor in parentheses.
func (p *parser) linear() (f Factor, err error) {
	begin := p.token.at
	minus := false
	for n := 0; ; n++ {
		if err := p.advance(); err != nil {
			return f, err
		}
		column, number, err := p.item(minus)
		if err != nil {
			return f, err
		}
		switch {
		case column != nil && f.Column == nil:
			f.Column, f.Slope = column, number
		case column == nil && f.Offset == Number{}:
			f.Offset = number
		default:
			return f, fmt.Errorf("byte %d: %w", begin+1, errLinear)
		}
		if minus = p.at("-"); !minus && !p.at("+") || n == 1 {
			break
		}
	}
	if f.Column == nil && p.at(")") {
		return f, fmt.Errorf("byte %d: %w", begin+1, errLinear)
	}
	return f, p.expect(")")
}

// item parses a column with its factor, or a number alone, both negated if minus is set.
func (p *parser) item(minus bool) (column *schema.Column, n Number, err error) {
	if p.at("-") {
		minus = !minus
		if err := p.advance(); err != nil {
			return nil, n, err
		}
	}
	n.Unscaled = batch.Int128Of(1)
	if p.token.kind == number {
		if n, err = numberOf(p.token); err == nil {
			err = p.advance()
		}
		if err != nil || !p.at("*") {
			return nil, n.negated(minus), err
		}
		if err := p.advance(); err != nil {
			return nil, n, err
		}
	}
	column, err = p.column()
	return column, n.negated(minus), err
}

func (n Number) negated(minus bool) Number {
	if minus {
		n.Unscaled = n.Unscaled.Neg()
	}
	return n
}

// numberOf returns the value of a number without a sign.
func numberOf(t token) (n Number, err error) {
	whole, fraction, _ := strings.Cut(t.text, ".")
	if strings.ContainsAny(t.text, "eE") {
		return n, fmt.Errorf("byte %d: %s: write the number without an exponent", t.at+1, t.text)
	}
	n.Scale = len(fraction)
	for _, digit := range whole + fraction {
		var ok1, ok2 bool
		n.Unscaled, ok1 = n.Unscaled.Mul10()
		n.Unscaled, ok2 = n.Unscaled.Add(batch.Int128Of(int64(digit - '0')))
		if !ok1 || !ok2 {
			return n, fmt.Errorf("byte %d: %s has too many digits", t.at+1, t.text)
		}
	}
	return n, nil
}
