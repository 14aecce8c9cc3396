package bind

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/where"
)

// Predicate describes a condition on the columns of a row. The zero Predicate is true for every row.
// A Predicate and all that it contains are immutable.
type Predicate struct {
	Kind     Kind
	Column   string             // unless Kind is And, Or, or Not
	Values   []any              // as of Append, not nil; copies that the caller cannot modify
	Bloom    *bloom.BloomFilter // of InBloom
	Children []Predicate        // of And and Or; of Not, the only one
}

// Kind is the kind of a predicate.
type Kind uint8

// The kinds. A Like has two or more values: the column consists of them, in their order, with any
// text between two of them.
const (
	And Kind = iota // without children: true
	Or              // without children: false
	Not
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	In
	Between // both ends inclusive
	Prefix
	Null
	NotNull
	InBloom
	Like
)

// NewPredicate returns a predicate on one column. It keeps values and replaces each element by a
// copy.
func NewPredicate(kind Kind, column string, values ...any) Predicate {
	for i, v := range values {
		values[i] = freeze(v)
	}
	return Predicate{Kind: kind, Column: column, Values: values}
}

// freeze returns a copy of a value that the caller cannot modify.
func freeze(v any) any {
	switch b := v.(type) {
	case nil:
		return nil
	case []byte:
		if b == nil {
			return nil
		}
		return bytes.Clone(b)
	case batch.Cell:
		if b == nil {
			return nil
		}
		return batch.Cell(bytes.Clone(b))
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Pointer && r.IsNil():
		return nil
	case r.Kind() == reflect.Pointer:
		return freeze(r.Elem().Interface())
	case r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return freeze(r.Bytes())
	}
	return v
}

// Columns returns the names of the columns that p tests, each once, in the order of p.
func (p *Predicate) Columns() []string { return p.appendColumns(nil) }

func (p *Predicate) appendColumns(dst []string) []string {
	switch p.Kind {
	case And, Or, Not:
		for i := range p.Children {
			dst = p.Children[i].appendColumns(dst)
		}
	default:
		if !slices.Contains(dst, p.Column) {
			dst = append(dst, p.Column)
		}
	}
	return dst
}

// only returns p, or the only predicate that p joins.
func (p *Predicate) only() *Predicate {
	for (p.Kind == And || p.Kind == Or) && len(p.Children) == 1 {
		p = &p.Children[0]
	}
	return p
}

// OfExpression returns the predicate of an expression.
func OfExpression(e *where.Expr) Predicate {
	p := Predicate{Kind: kinds[e.Op]}
	for _, o := range e.Operands {
		p.Children = append(p.Children, OfExpression(o))
	}
	if e.Column != nil {
		p.Column = e.Column.Name
	}
	for _, c := range e.Cells {
		p.Values = append(p.Values, batch.Cell(c))
	}
	return p
}

// kinds are the kinds of predicates by the operators of expressions.
var kinds = map[where.Op]Kind{where.And: And, where.Or: Or, where.Not: Not, where.Eq: Eq, where.Ne: Ne,
	where.Lt: Lt, where.Le: Le, where.Gt: Gt, where.Ge: Ge, where.In: In, where.Between: Between,
	where.Prefix: Prefix, where.Like: Like, where.IsNull: Null}
