package oribi

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// aggregation is a Table.Aggregate.
type aggregation struct {
	aggregates []Aggregate
	by         []groupKey
	limit      int64 // bytes of the groups
	best       *best // of Top; nil for all groups
	total      int64 // groups

	keys    []int                 // set by bind; from len(read) on, they are periods
	periods []periodKey           // set by bind
	figures []aggregate.Figure    // set by bind
	engine  *aggregate.Aggregator // of all rows, set by run
	read    []schema.Column       // columns of the batches
	indexes []int                 // of these in the table's schema
	columns []schema.Column       // of the result
}

// bind finds the columns of the aggregates in a schema and returns the indexes of those to read.
func (p *aggregation) bind(tableSchema *tablet.TableSchema) ([]int, error) {
	s := tableSchema.Schema
	p.keys, p.figures = make([]int, len(p.by)), make([]aggregate.Figure, len(p.aggregates))
	p.columns, p.periods = nil, nil
	for i, k := range p.by {
		if slices.Contains(p.by[:i], k) {
			return nil, fmt.Errorf("group by: column %q appears twice: %w", k, fault.ErrSchema)
		}
		c, err := p.column(s, k.column)
		if err != nil {
			return nil, fmt.Errorf("group by: %w", err)
		}
		out := p.read[c]
		if p.keys[i] = c; k.byPeriod {
			var period periodKey
			if period, out, err = bindPeriod(k, c, &p.read[c]); err != nil {
				return nil, fmt.Errorf("group by: %w", err)
			}
			p.periods = append(p.periods, period)
		}
		p.columns = append(p.columns, out)
	}
	for i := range p.aggregates {
		a := &p.aggregates[i]
		c, err := p.figure(s, a, &p.figures[i])
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a, err)
		}
		p.columns = append(p.columns, c)
	}
	next := len(p.read)
	for i, k := range p.by {
		if k.byPeriod {
			p.keys[i], next = next, next+1
		}
	}
	return p.indexes, nil
}

// run computes the figures of a scan. If the groups of several workers take too much memory, since
// each may have all of them, it starts again with one. If only some groups are wanted, and all of
// them still take too much memory, it computes parts of them, one after the other.
func (p *aggregation) run(parts *partsScan) error {
	err := p.runWorkers(parts, aggregate.Part{})
	if errors.Is(err, aggregate.ErrMemory) && parts.workers > 1 {
		if err = parts.restart(); err == nil {
			err = p.runWorkers(parts, aggregate.Part{})
		}
	}
	if p.best == nil {
		return err
	}
	for todo := []aggregate.Part{{}}; ; {
		last := len(todo) - 1
		part := todo[last]
		todo = todo[:last]
		if errors.Is(err, aggregate.ErrMemory) {
			if halves, ok := part.Halves(); ok {
				todo, err = append(todo, halves[1], halves[0]), nil
			}
		} else if err == nil {
			err = p.choose()
		}
		if err != nil || len(todo) == 0 {
			return err
		}
		p.engine = nil // its memory is for the next one
		if err = parts.restart(); err == nil {
			err = p.runWorkers(parts, todo[len(todo)-1])
		}
	}
}

// runWorkers gives each worker an engine, and merges them at the end.
func (p *aggregation) runWorkers(parts *partsScan, part aggregate.Part) error {
	engines := make([]*aggregate.Aggregator, parts.workers)
	begin := func(worker int) {
		engines[worker] = aggregate.New(p.inputs(), p.keys, p.figures, p.limit/int64(len(engines)))
		engines[worker].Only(part)
	}
	begin(0)
	err := parts.each(func(worker int, it scan.Iterator) {
		if engines[worker] == nil {
			begin(worker)
		}
		if o, ok := it.(scan.Offerer); ok && len(p.periods) == 0 && engines[worker].FromWindows() {
			o.Offer(engines[worker].AddWindow)
		}
	}, func(worker int, b *batch.RecordBatch) error { return engines[worker].Add(p.withPeriods(b)) })
	p.engine = engines[0]
	for i, e := range engines {
		if err == nil && e != nil {
			err = e.Flush()
		}
		if err == nil && e != nil && i > 0 {
			err = p.engine.Merge(e)
		}
	}
	return err
}

// column returns the index in the batches of a column to read.
func (p *aggregation) column(s *schema.Schema, name string) (int, error) {
	c := s.Index(name)
	if c < 0 {
		return c, fmt.Errorf("column %q: %w", name, s.NoColumn(name))
	}
	i := slices.Index(p.indexes, c)
	if i < 0 {
		i = len(p.indexes)
		p.indexes, p.read = append(p.indexes, c), append(p.read, s.Columns[c])
	}
	return i, nil
}

// countColumn returns the column of a result that contains counts.
func countColumn(name string) schema.Column { return schema.Column{Name: name, Type: schema.Int64} }

// figure sets f to the figure that the engine computes for a, and returns the column of the result.
func (p *aggregation) figure(s *schema.Schema, a *Aggregate, f *aggregate.Figure) (out schema.Column, err error) {
	f.Name = a.String()
	switch a.kind {
	case countRows:
		f.Kind = aggregate.CountRows
		return countColumn("count"), nil
	case countOf:
		if c := s.Index(a.column); c >= 0 && !s.Columns[c].Nullable {
			f.Kind = aggregate.CountRows // the column need not be read
			return countColumn(a.String()), nil
		}
		f.Kind = aggregate.CountCells
		f.Column, err = p.column(s, a.column)
		return countColumn(a.String()), err
	case minOf, maxOf:
		if f.Kind = aggregate.Min; a.kind == maxOf {
			f.Kind = aggregate.Max
		}
		if f.Column, err = p.column(s, a.column); err != nil {
			return out, err
		}
		in := &p.read[f.Column]
		if in.Type == schema.Array {
			return out, fmt.Errorf("type %s has no order: %w", in.TypeName(), fault.ErrSchema)
		}
		return schema.Column{Name: a.String(), Type: in.Type, Nullable: true, Precision: in.Precision,
			Scale: in.Scale, Length: in.Length}, nil
	case sumOf, avgOf:
		f.Kind = aggregate.Sum
		return p.sum(s, a, f)
	}
	return out, fmt.Errorf("an unknown aggregate: use CountRows, SumOf, …: %w", fault.ErrSchema)
}

// moreDecimals is how many more decimals an average has than its column.
const moreDecimals = 6

// sum is figure for sums and averages.
func (p *aggregation) sum(s *schema.Schema, a *Aggregate, f *aggregate.Figure) (out schema.Column, err error) {
	if len(a.terms) == 0 {
		return out, fmt.Errorf("a product without terms: %w", fault.ErrSchema)
	}
	out = schema.Column{Name: a.String(), Type: schema.Int128, Nullable: true}
	floats, decimals := false, false
	for i := range a.terms {
		t := &a.terms[i]
		c, err := p.column(s, t.term.Column)
		if err != nil {
			return out, err
		}
		in := &p.read[c]
		term, scale, err := t.term.Bind(in, c)
		if err = cmp.Or(t.err, err); err != nil {
			return out, fmt.Errorf("column %q: %w", in.Name, err)
		}
		f.Terms = append(f.Terms, term)
		out.Scale += scale
		floats, decimals = floats || in.Type.Float(), decimals || in.Type.Decimal() || scale > 0
		if a.kind == avgOf {
			out.Scale += min(moreDecimals, schema.MaxPrecision-in.Precision)
		}
	}
	switch {
	case floats, a.kind == avgOf && !decimals:
		out.Type, out.Scale = schema.Double, 0
	case out.Scale > schema.MaxPrecision:
		return out, fmt.Errorf("%d decimals, more than %d: %w", out.Scale, schema.MaxPrecision, fault.ErrSchema)
	case decimals:
		out.Type, out.Precision = schema.Decimal128, schema.MaxPrecision
	}
	return out, nil
}

// result returns the result after all rows. Errors: ErrOverflow.
func (p *aggregation) result() (*AggregateResult, error) {
	if p.best != nil {
		return &AggregateResult{Columns: p.columns, Groups: p.best.groups(), Total: p.total}, nil
	}
	r := &AggregateResult{Columns: p.columns}
	for _, g := range p.engine.Groups() {
		group, err := p.group(g)
		if err != nil {
			return nil, err
		}
		r.Groups = append(r.Groups, group)
	}
	r.Total = int64(len(r.Groups))
	return r, nil
}

// group returns a group of the result.
func (p *aggregation) group(g int) (Group, error) {
	group := Group{Values: make([]Value, len(p.aggregates))}
	for i, cell := range p.engine.Key(g) {
		group.Key = append(group.Key, p.keyValue(i, cell))
	}
	for i := range p.aggregates {
		v, err := p.value(g, i)
		if err != nil {
			return group, fmt.Errorf("%v: %w", p.aggregates[i], err)
		}
		group.Values[i] = Value{v}
	}
	return group, nil
}

// value returns aggregate i of a group.
func (p *aggregation) value(g, i int) (any, error) {
	a, c := &p.aggregates[i], &p.columns[len(p.by)+i]
	switch a.kind {
	case countRows, countOf:
		return p.engine.Count(g, i), nil
	case minOf, maxOf:
		return bind.Value(c, p.engine.Cell(g, i)), nil
	}
	if sum := p.engine.FloatSum(g, i); sum != nil {
		switch {
		case sum.Count() == 0:
			return nil, nil
		case a.kind == avgOf:
			return sum.Mean(), nil
		}
		return sum.Float64(), nil
	}
	sum := p.engine.IntSum(g, i)
	switch {
	case sum.Count() == 0:
		return nil, nil
	case a.kind == avgOf:
		return average(sum, c, p.scale(a))
	}
	total, ok := sum.Int128()
	switch {
	case !ok || c.Type.Decimal() && !total.FitsDigits(schema.MaxPrecision):
		return nil, fault.ErrOverflow
	case c.Type.Decimal():
		return Decimal{Unscaled: total, Scale: c.Scale}, nil
	}
	return total, nil
}

// scale returns the scale of an average's column.
func (p *aggregation) scale(a *Aggregate) int {
	i := slices.IndexFunc(p.read, func(c schema.Column) bool { return c.Name == a.column })
	return p.read[i].Scale
}

// average returns the average of integers for the column c of a result. They have the given scale.
func average(sum *aggregate.IntSum, c *schema.Column, scale int) (any, error) {
	total, n := sum.Big(), big.NewInt(sum.Count())
	if c.Type == schema.Double {
		f, _ := new(big.Rat).SetFrac(total, n).Float64()
		return f, nil
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale-scale)), nil)
	q, rest := total.QuoRem(total.Mul(total, power), n, new(big.Int))
	if rest.Abs(rest.Lsh(rest, 1)).Cmp(n) >= 0 {
		one := big.NewInt(1)
		if sum.Negative() {
			one.Neg(one)
		}
		q.Add(q, one)
	}
	v, err := int128Of(q)
	return Decimal{Unscaled: v, Scale: c.Scale}, err
}

// int128Of returns v, or ErrOverflow if it has more than 38 digits.
func int128Of(v *big.Int) (Int128, error) {
	var size [16]byte
	if v.BitLen() > 127 {
		return Int128{}, fault.ErrOverflow
	}
	new(big.Int).Abs(v).FillBytes(size[:])
	var out Int128
	for _, b := range size {
		out = Int128{Lo: out.Lo<<8 | uint64(b), Hi: out.Hi<<8 | int64(out.Lo>>56)}
	}
	if v.Sign() < 0 {
		out = out.Neg()
	}
	if !out.FitsDigits(schema.MaxPrecision) {
		return Int128{}, fault.ErrOverflow
	}
	return out, nil
}

// AggregateResult is the result of Table.Aggregate.
type AggregateResult struct {
	// Columns describe the values: the columns of GroupBy, then one for each aggregate, named as in
	// SQL: count, sum(price).
	Columns []schema.Column
	// Groups are in ascending order of their keys, with NULL after all other values, and NaN after
	// all numbers. Arrays are in the order of their bytes. Without GroupBy, there is one group,
	// even if there are no rows. With Top, there are only some groups, in another order.
	Groups []Group
	// Total is the number of all groups, also of those that Top leaves out.
	Total int64
}

// Group is one group of rows, and the values of the aggregates.
type Group struct {
	Key    []any   // the values of the columns of GroupBy, as in Row
	Values []Value // of the aggregates, in their order
}

// Batch returns the result as a record batch with one row for each group.
func (r *AggregateResult) Batch() (*batch.RecordBatch, error) {
	b := batch.New(r.Columns, len(r.Groups))
	var buf []byte
	for i, g := range r.Groups {
		for k := range r.Columns {
			v := any(nil)
			if k < len(g.Key) {
				v = g.Key[k]
			} else {
				v = g.Values[k-len(g.Key)].v
			}
			cell, err := bind.Append(buf[:0], &r.Columns[k], v)
			if err != nil {
				return nil, callErr("column "+r.Columns[k].Name, err)
			}
			b.Columns[k].SetCell(i, cell)
		}
	}
	return b, nil
}

// Value is the value of an aggregate, or NULL: an int64 for a count; an Int128, a Decimal, or a
// float64 for a sum; a Decimal or a float64 for an average; a value as in Row for a minimum or a
// maximum.
type Value struct{ v any }

var errNull = errors.New("the value is NULL")

// IsNull reports whether v is NULL.
func (v Value) IsNull() bool { return v.v == nil }

// Any returns the value, nil for NULL.
func (v Value) Any() any { return v.v }

// String returns the value as fmt.Print formats it, NULL for NULL.
func (v Value) String() string {
	if v.v == nil {
		return "NULL"
	}
	return fmt.Sprint(v.v)
}

// Int128 returns a value that is an integer. Errors: NULL, and any other value.
func (v Value) Int128() (Int128, error) {
	if i, ok := bind.Integer(v.v); ok {
		return i, nil
	}
	return Int128{}, v.not("an integer")
}

// Int64 returns a value that is an integer. Errors: ErrOverflow if it does not fit; NULL, and any
// value that is not an integer.
func (v Value) Int64() (int64, error) {
	i, err := v.Int128()
	if err == nil && i != batch.Int128Of(int64(i.Lo)) {
		err = fmt.Errorf("oribi: %v as int64: %w", i, fault.ErrOverflow)
	}
	return int64(i.Lo), err
}

// Decimal returns a value that is a decimal or an integer. Errors: NULL, and any other value.
func (v Value) Decimal() (Decimal, error) {
	if d, ok := v.v.(Decimal); ok {
		return d, nil
	}
	if i, ok := bind.Integer(v.v); ok {
		return Decimal{Unscaled: i}, nil
	}
	return Decimal{}, v.not("a decimal")
}

// Float64 returns the float64 that is nearest to a value that is a number. Errors: NULL, and any
// other value.
func (v Value) Float64() (float64, error) {
	switch x := v.v.(type) {
	case float64:
		return x, nil
	case float32:
		return float64(x), nil
	}
	d, err := v.Decimal()
	if err != nil {
		return 0, v.not("a number")
	}
	return bind.Float(d), nil
}

// not returns the error for a value that is not what was asked for.
func (v Value) not(what string) error {
	if v.v == nil {
		return callErr("", errNull)
	}
	return fmt.Errorf("oribi: the value, a %T, is not %s", v.v, what)
}
