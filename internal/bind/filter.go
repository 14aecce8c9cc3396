package bind

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Bind returns p as a filter of rows with schema s. InBloom may rest in it if mayRest is set (see
// batch.Predicate.MayRest). Errors: ErrNoColumn and ErrSchema, with the name of the column.
func (p *Predicate) Bind(s *schema.Schema, mayRest bool) (batch.Filter, error) {
	return p.filterOf(s, false, mayRest)
}

// filterOf returns a filter that is true for the rows for which p is true or, if negated is set,
// false.
//
// A batch.Filter has two truth values, SQL has three. So filterOf pushes negation down to the
// comparisons, which exclude NULLs with a separate test.
func (p *Predicate) filterOf(s *schema.Schema, negated, mayRest bool) (batch.Filter, error) {
	switch p.Kind {
	case Not:
		return p.Children[0].filterOf(s, !negated, mayRest)
	case And, Or:
		children := p.Children
		if p.Kind == Or {
			children = joinEqualities(appendAlternatives(nil, children))
		}
		filters := make([]batch.Filter, len(children))
		for i := range children {
			var err error
			if filters[i], err = children[i].filterOf(s, negated, mayRest); err != nil {
				return batch.Filter{}, err
			}
		}
		if (p.Kind == And) == negated {
			return batch.Or(filters...), nil
		}
		return batch.And(filters...), nil
	}
	i := s.Index(p.Column)
	if i < 0 {
		return batch.Filter{}, fmt.Errorf("column %q: %w", p.Column, s.NoColumn(p.Column))
	}
	f, err := p.testOf(&s.Columns[i], negated, mayRest && !negated && p.Kind == InBloom)
	if err != nil {
		return f, fmt.Errorf("column %q: %w: %w", p.Column, err, fault.ErrSchema)
	}
	return f, nil
}

// appendAlternatives appends predicates to dst. It replaces an Or by its own alternatives.
func appendAlternatives(dst, predicates []Predicate) []Predicate {
	for i := range predicates {
		if p := predicates[i].only(); p.Kind == Or {
			dst = appendAlternatives(dst, p.Children)
		} else {
			dst = append(dst, *p)
		}
	}
	return dst
}

// joinEqualities joins the alternatives on each column that are Eq or In into one In.
func joinEqualities(alternatives []Predicate) []Predicate {
	var out []Predicate
	places := map[string]int{}
	for _, p := range alternatives {
		if p.Kind == Eq || p.Kind == In {
			if at, ok := places[p.Column]; ok {
				out[at].Kind = In
				out[at].Values = append(slices.Clip(out[at].Values), p.Values...)
				continue
			}
			places[p.Column] = len(out)
		}
		out = append(out, p)
	}
	return out
}

// operators are the operators of the predicates that are one test of a column; opposites are the
// opposites of operators.
var (
	operators = map[Kind]batch.Operator{Eq: batch.Eq, Ne: batch.Ne, Lt: batch.Lt, Le: batch.Le, Gt: batch.Gt,
		Ge: batch.Ge, In: batch.In, Null: batch.IsNull, NotNull: batch.NotNull, InBloom: batch.InFilter}
	opposites = map[batch.Operator]batch.Operator{batch.Eq: batch.Ne, batch.Ne: batch.Eq, batch.Lt: batch.Ge,
		batch.Ge: batch.Lt, batch.Gt: batch.Le, batch.Le: batch.Gt, batch.IsNull: batch.NotNull,
		batch.NotNull: batch.IsNull}
)

// columnTests collects the tests of one column that a predicate consists of.
type columnTests struct {
	column  *schema.Column
	bloom   *bloom.BloomFilter
	mayRest bool
	tests   []batch.Filter
	err     error
}

func (t *columnTests) add(op batch.Operator, values ...[]byte) {
	c := t.column
	test := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: op, Values: values, Filter: t.bloom,
		MayRest: t.mayRest}
	if err := test.Prepare(); t.err == nil {
		t.err = err
	}
	t.tests = append(t.tests, batch.Test(test))
}

// addPrefix adds the tests of a prefix: a range, which key ranges and zone maps can exclude.
func (t *columnTests) addPrefix(prefix []byte) {
	t.add(batch.Ge, prefix)
	if end := keyenc.PrefixEnd(prefix); end != nil {
		t.add(batch.Lt, end)
	}
}

// testOf is filterOf for a predicate on column c, which may rest.
func (p *Predicate) testOf(c *schema.Column, negated, mayRest bool) (batch.Filter, error) {
	cells, err := p.cells(c)
	if err != nil {
		return batch.Filter{}, err
	}
	t := columnTests{column: c, bloom: p.Bloom, mayRest: mayRest}
	switch p.Kind {
	case Between:
		t.add(batch.Ge, cells[0])
		t.add(batch.Le, cells[1])
	case Prefix:
		t.addPrefix(cells[0])
	case Like:
		if len(cells[0]) > 0 {
			t.addPrefix(cells[0]) // decides most rows by fewer values
		}
		t.add(batch.Like, cells...)
	default:
		op := operators[p.Kind]
		if opposite, ok := opposites[op]; negated && ok && exactOpposite(c.Type, op) {
			op, negated = opposite, false
		}
		t.add(op, cells...)
	}
	f := batch.And(t.tests...)
	if !negated || t.err != nil {
		return f, t.err
	}
	if !c.Nullable {
		return batch.Not(f), nil
	}
	notNull := columnTests{column: c}
	notNull.add(batch.NotNull)
	return batch.And(notNull.tests[0], batch.Not(f)), notNull.err
}

// cells returns the values of p as cells.
func (p *Predicate) cells(c *schema.Column) ([][]byte, error) {
	c, err := p.valueColumn(c)
	if err != nil {
		return nil, err
	}
	cells := make([][]byte, len(p.Values))
	for i, v := range p.Values {
		if cells[i], err = predicateCell(c, v); err != nil {
			return nil, fmt.Errorf("value %s: %w", Clip(Literal(v)), err)
		}
	}
	return cells, nil
}

// valueColumn returns the column that the values of p must fit: c, except that a prefix, suffix, or
// part may be longer than a varchar. Then it is true for no row.
func (p *Predicate) valueColumn(c *schema.Column) (*schema.Column, error) {
	switch {
	case p.Kind != Prefix && p.Kind != Like:
		return c, nil
	case c.Type.Variable() && c.Type != schema.Array:
		text := *c
		if c.Type == schema.Varchar {
			text.Type, text.Length = schema.String, 0
		}
		return &text, nil
	case p.Kind == Prefix:
		return nil, fmt.Errorf("type %s has no prefixes", c.TypeName())
	}
	return nil, fmt.Errorf("type %s has no text to search", c.TypeName())
}

// exactOpposite reports whether the opposite of op is true for exactly the cells, other than NULL,
// for which op is not. A NaN is neither below a value nor at least equal to it.
func exactOpposite(t schema.Type, op batch.Operator) bool {
	ordered := op == batch.Lt || op == batch.Le || op == batch.Gt || op == batch.Ge
	return !ordered || !t.Float()
}

// predicateCell returns a predicate's value as a cell.
func predicateCell(c *schema.Column, v any) ([]byte, error) {
	if c.Type == schema.Array {
		return nil, errors.New("arrays are tested with IsNull and NotNull alone")
	}
	if v == nil {
		return nil, errors.New("NULL equals nothing: use IsNull or NotNull")
	}
	if t, ok := v.(time.Time); ok && c.Type == schema.Date {
		if h, m, s := t.Clock(); h != 0 || m != 0 || s != 0 || t.Nanosecond() != 0 {
			return nil, fmt.Errorf("%s is not a date: its time of day is not midnight", t.Format(time.RFC3339Nano))
		}
	}
	return Append(nil, c, v)
}

// BloomCell returns the bytes that InBloom looks up for a value of a column. The caller may modify
// them.
func BloomCell(c *schema.Column, v any) ([]byte, error) {
	cell, err := predicateCell(c, v)
	if err != nil {
		return nil, fmt.Errorf("value %s: %w", Clip(Literal(v)), err)
	}
	if c.Type.Float() && batch.Compare(c.Type, cell, make([]byte, len(cell))) == 0 {
		return make([]byte, len(cell)), nil // −0 as +0
	}
	return bytes.Clone(cell), nil
}
