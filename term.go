package oribi

import (
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/grouping"
)

// Term is a factor of SumOfProduct: a column, multiplied by a constant and added to another.
//
//	Col("l_tax").Plus(1)             1 + l_tax
//	Col("l_discount").Neg().Plus(1)  1 − l_discount
//
// Constants are exact: integers, decimals, or floats, which stand for the shortest decimal number
// to which they are nearest. A constant of another type is ErrSchema when the call begins, and a
// constant that is out of range ErrOverflow. A Term is immutable.
type Term struct{ t grouping.Term }

// Col returns the term that is a column, whose type is an integer, a decimal, or a float.
func Col(column string) Term { return Term{grouping.Term{Term: bind.TermOf(column)}} }

// Plus returns t + v.
func (t Term) Plus(v any) Term {
	if t.t.Err == nil {
		t.t.Term, t.t.Err = t.t.Plus(v)
	}
	return t
}

// Times returns t × v.
func (t Term) Times(v any) Term {
	if t.t.Err == nil {
		t.t.Term, t.t.Err = t.t.Times(v)
	}
	return t
}

// Neg returns −t.
func (t Term) Neg() Term { return t.Times(-1) }

// String returns t in the syntax of SQL.
func (t Term) String() string { return t.t.String() }
