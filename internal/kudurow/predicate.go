package kudurow

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Tests is what of a conjunction of predicates a server can decide.
type Tests struct {
	// Server are the predicates that a server applies. They pass all rows of the result.
	Server []*kudurpcpb.ColumnPredicatePB
	// Client are the predicates that the client must apply too. They are prepared.
	Client []batch.Predicate
	// None is whether no row passes.
	None bool
}

// Predicates translates predicates, all of which a row must pass, on columns of s with the given names.
// Kudu has no ≠, and no patterns except prefixes; servers treat NaN as equal to all numbers, so the
// client repeats tests of floating-point columns. Errors: ErrNoColumn; ErrSchema.
func Predicates(s *schema.Schema, predicates []batch.Predicate) (*Tests, error) {
	t := &Tests{}
	for _, p := range predicates {
		i := s.Index(p.Column)
		if i < 0 {
			return nil, schemaError("predicate: %w", s.NoColumn(p.Column))
		}
		c := &s.Columns[i]
		p.Type, p.ID, p.Values = c.Type, c.ID, slices.Clone(p.Values)
		if err := p.Prepare(); err != nil {
			return nil, err
		}
		t.add(c, p)
	}
	return t, nil
}

func (t *Tests) add(c *schema.Column, p batch.Predicate) {
	out := &kudurpcpb.ColumnPredicatePB{Column: &c.Name}
	decided := !c.Type.Float()
	switch p.Op {
	case batch.IsNull, batch.NotNull:
		decided = true
		t.addNull(c, out, p.Op)
		return
	case batch.Eq:
		out.Predicate = &kudurpcpb.ColumnPredicatePB_Equality_{
			Equality: &kudurpcpb.ColumnPredicatePB_Equality{Value: p.Values[0]}}
	case batch.In:
		if len(p.Values) == 0 {
			t.None = true
			return
		}
		out.Predicate = &kudurpcpb.ColumnPredicatePB_InList_{InList: &kudurpcpb.ColumnPredicatePB_InList{Values: p.Values}}
	case batch.Lt, batch.Le, batch.Gt, batch.Ge:
		decided = t.addRange(c, out, &p) && decided
	case batch.Like:
		decided = setPrefix(out, &p) // of byte strings
	default: // Ne, InFilter
		decided = false
		out.Predicate = notNull
	}
	if out.Predicate != nil {
		t.Server = append(t.Server, out)
	}
	if !decided {
		t.Client = append(t.Client, p)
	}
}

var notNull = &kudurpcpb.ColumnPredicatePB_IsNotNull_{IsNotNull: &kudurpcpb.ColumnPredicatePB_IsNotNull{}}

func (t *Tests) addNull(c *schema.Column, out *kudurpcpb.ColumnPredicatePB, op batch.Operator) {
	switch {
	case op == batch.NotNull:
		out.Predicate = notNull
	case !c.Nullable:
		t.None = true
		return
	default:
		out.Predicate = &kudurpcpb.ColumnPredicatePB_IsNull_{IsNull: &kudurpcpb.ColumnPredicatePB_IsNull{}}
	}
	t.Server = append(t.Server, out)
}

// addRange sets a predicate to a range, whose lower bound is inclusive and upper bound exclusive, and
// reports whether it decides alone.
func (t *Tests) addRange(c *schema.Column, out *kudurpcpb.ColumnPredicatePB, p *batch.Predicate) (decides bool) {
	bound := p.Values[0]
	if p.Op == batch.Le || p.Op == batch.Gt {
		next, ok := successor(c, bound)
		switch {
		case !ok && p.Op == batch.Le:
			out.Predicate = notNull
			return !c.Type.Float()
		case !ok:
			t.None = true
			return true
		}
		bound = next
	}
	r := &kudurpcpb.ColumnPredicatePB_Range{Lower: bound}
	if p.Op == batch.Lt || p.Op == batch.Le {
		r = &kudurpcpb.ColumnPredicatePB_Range{Upper: bound}
	}
	out.Predicate = &kudurpcpb.ColumnPredicatePB_Range_{Range: r}
	return true
}

// setPrefix sets a predicate to the range of byte strings with a prefix, and reports whether that
// decides.
func setPrefix(out *kudurpcpb.ColumnPredicatePB, p *batch.Predicate) (decides bool) {
	prefix := p.Values[0]
	if len(prefix) == 0 {
		out.Predicate = notNull
	} else {
		r := &kudurpcpb.ColumnPredicatePB_Range{Lower: prefix, Upper: keyenc.PrefixEnd(prefix)}
		out.Predicate = &kudurpcpb.ColumnPredicatePB_Range_{Range: r}
	}
	return len(p.Values) == 2 && len(p.Values[1]) == 0
}

// successor returns the least value of column c's type that is greater than cell; ok is false if there is
// none.
func successor(c *schema.Column, cell []byte) (next []byte, ok bool) {
	switch t := c.Type; {
	case t.Variable():
		return append(slices.Clone(cell), 0), true
	case t == schema.Float:
		x := math.Float32frombits(binary.LittleEndian.Uint32(cell))
		next := math.Nextafter32(x, float32(math.Inf(1)))
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(next)), next > x
	case t == schema.Double:
		x := math.Float64frombits(binary.LittleEndian.Uint64(cell))
		next := math.Nextafter(x, math.Inf(1))
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(next)), next > x
	case t == schema.Bool:
		return []byte{1}, cell[0] == 0
	}
	next = slices.Clone(cell)
	for i := range next { // plus 1
		if next[i]++; next[i] != 0 {
			break
		}
	}
	return next, batch.Compare(c.Type, next, cell) > 0
}
