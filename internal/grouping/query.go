package grouping

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Query computes aggregates over groups of rows. It is bound to a schema, runs over a scan, and
// then has the groups. It may be bound and run again.
type Query struct {
	aggregates []Aggregate
	by         []Key
	limit      int64 // bytes of the groups
	best       *best // of the greatest groups; nil for all groups
	total      int64 // groups

	keys    []int                 // set by Bind; from len(read) on, they are periods
	periods []periodKey           // set by Bind
	figures []aggregate.Figure    // set by Bind
	engine  *aggregate.Aggregator // of all rows, set by Run
	read    []schema.Column       // columns of the batches
	indexes []int                 // of these in the table's schema
	columns []schema.Column       // of the result
}

// New returns a query of aggregates, grouped by keys whose groups take at most limit bytes. If top
// is above 0, its result has the top groups with the greatest values of the first aggregate only.
func New(aggregates []Aggregate, by []Key, top int, limit int64) *Query {
	q := &Query{aggregates: aggregates, by: by, limit: limit}
	if top > 0 {
		q.best = &best{n: top, limit: limit}
	}
	return q
}

// Scan is a scan whose rows are aggregated, in one or several goroutines.
type Scan interface {
	// Workers returns the number of goroutines.
	Workers() int
	// Each calls f for the batches of the scan, and begin for each part before its batches. Calls
	// with the same worker, below Workers, never overlap.
	Each(begin func(worker int, it scan.Iterator), f func(worker int, b *batch.RecordBatch) error) error
	// Restart makes the scan read all rows once more, in one goroutine.
	Restart() error
}

// Columns returns x one for each aggregate.
func (q *Query) Columns() []schema.Column { return q.columns }

// Bind finds the columns of the aggregates in a schema and returns the indexes of those to read.
// Errors: ErrNoColumn; ErrSchema.
func (q *Query) Bind(s *schema.Schema) ([]int, error) {
	q.keys, q.figures = make([]int, len(q.by)), make([]aggregate.Figure, len(q.aggregates))
	q.columns, q.periods = nil, nil
	for i, k := range q.by {
		if slices.Contains(q.by[:i], k) {
			return nil, fmt.Errorf("group by: column %q appears twice: %w", k, fault.ErrSchema)
		}
		c, err := q.column(s, k.Column)
		if err != nil {
			return nil, fmt.Errorf("group by: %w", err)
		}
		out := q.read[c]
		if q.keys[i] = c; k.ByPeriod {
			var period periodKey
			if period, out, err = bindPeriod(k, c, &q.read[c]); err != nil {
				return nil, fmt.Errorf("group by: %w", err)
			}
			q.periods = append(q.periods, period)
		}
		q.columns = append(q.columns, out)
	}
	for i := range q.aggregates {
		a := &q.aggregates[i]
		c, err := q.figure(s, a, &q.figures[i])
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a, err)
		}
		q.columns = append(q.columns, c)
	}
	next := len(q.read)
	for i, k := range q.by {
		if k.ByPeriod {
			q.keys[i], next = next, next+1
		}
	}
	return q.indexes, nil
}

// Run computes the figures of a scan. If the groups of several workers take too much memory, since
// each may have all of them, it starts again with one. If only some groups are wanted, and all of
// them still take too much memory, it computes parts of them, one after the other.
func (q *Query) Run(parts Scan) error {
	err := q.runWorkers(parts, aggregate.Part{})
	if errors.Is(err, aggregate.ErrMemory) && parts.Workers() > 1 {
		if err = parts.Restart(); err == nil {
			err = q.runWorkers(parts, aggregate.Part{})
		}
	}
	if q.best == nil {
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
			err = q.choose()
		}
		if err != nil || len(todo) == 0 {
			return err
		}
		q.engine = nil // its memory is for the next one
		if err = parts.Restart(); err == nil {
			err = q.runWorkers(parts, todo[len(todo)-1])
		}
	}
}

// runWorkers gives each worker an engine, and merges them at the end.
func (q *Query) runWorkers(parts Scan, part aggregate.Part) error {
	engines := make([]*aggregate.Aggregator, parts.Workers())
	begin := func(worker int) {
		engines[worker] = aggregate.New(q.inputs(), q.keys, q.figures, q.limit/int64(len(engines)))
		engines[worker].Only(part)
	}
	begin(0)
	err := parts.Each(func(worker int, it scan.Iterator) {
		if engines[worker] == nil {
			begin(worker)
		}
		if o, ok := it.(scan.Offerer); ok && len(q.periods) == 0 && engines[worker].FromWindows() {
			o.Offer(engines[worker].AddWindow)
		}
	}, func(worker int, b *batch.RecordBatch) error { return engines[worker].Add(q.withPeriods(b)) })
	q.engine = engines[0]
	for i, e := range engines {
		if err == nil && e != nil {
			err = e.Flush()
		}
		if err == nil && e != nil && i > 0 {
			err = q.engine.Merge(e)
		}
	}
	return err
}

// column returns the index in the batches of a column to read.
func (q *Query) column(s *schema.Schema, name string) (int, error) {
	c := s.Index(name)
	if c < 0 {
		return c, fmt.Errorf("column %q: %w", name, s.NoColumn(name))
	}
	i := slices.Index(q.indexes, c)
	if i < 0 {
		i = len(q.indexes)
		q.indexes, q.read = append(q.indexes, c), append(q.read, s.Columns[c])
	}
	return i, nil
}

// CountColumn returns the column of a result that contains counts.
func CountColumn(name string) schema.Column { return schema.Column{Name: name, Type: schema.Int64} }

// figure sets f to the figure that the engine computes for a, and returns the column of the result.
func (q *Query) figure(s *schema.Schema, a *Aggregate, f *aggregate.Figure) (out schema.Column, err error) {
	f.Name = a.String()
	switch a.Kind {
	case CountRows:
		f.Kind = aggregate.CountRows
		return CountColumn("count"), nil
	case CountOf:
		if c := s.Index(a.Column); c >= 0 && !s.Columns[c].Nullable {
			f.Kind = aggregate.CountRows // the column need not be read
			return CountColumn(a.String()), nil
		}
		f.Kind = aggregate.CountCells
		f.Column, err = q.column(s, a.Column)
		return CountColumn(a.String()), err
	case MinOf, MaxOf:
		if f.Kind = aggregate.Min; a.Kind == MaxOf {
			f.Kind = aggregate.Max
		}
		if f.Column, err = q.column(s, a.Column); err != nil {
			return out, err
		}
		in := &q.read[f.Column]
		if in.Type == schema.Array {
			return out, fmt.Errorf("type %s has no order: %w", in.TypeName(), fault.ErrSchema)
		}
		return schema.Column{Name: a.String(), Type: in.Type, Nullable: true, Precision: in.Precision,
			Scale: in.Scale, Length: in.Length}, nil
	case SumOf, AvgOf:
		f.Kind = aggregate.Sum
		return q.sum(s, a, f)
	}
	return out, fmt.Errorf("an unknown aggregate: use CountRows, SumOf, …: %w", fault.ErrSchema)
}

// moreDecimals is how many more decimals an average has than its column.
const moreDecimals = 6

// sum is figure for sums and averages.
func (q *Query) sum(s *schema.Schema, a *Aggregate, f *aggregate.Figure) (out schema.Column, err error) {
	if len(a.Terms) == 0 {
		return out, fmt.Errorf("a product without terms: %w", fault.ErrSchema)
	}
	out = schema.Column{Name: a.String(), Type: schema.Int128, Nullable: true}
	floats, decimals := false, false
	for i := range a.Terms {
		t := &a.Terms[i]
		c, err := q.column(s, t.Column)
		if err != nil {
			return out, err
		}
		in := &q.read[c]
		term, scale, err := t.Term.Bind(in, c)
		if err = cmp.Or(t.Err, err); err != nil {
			return out, fmt.Errorf("column %q: %w", in.Name, err)
		}
		f.Terms = append(f.Terms, term)
		out.Scale += scale
		floats, decimals = floats || in.Type.Float(), decimals || in.Type.Decimal() || scale > 0
		if a.Kind == AvgOf {
			out.Scale += min(moreDecimals, schema.MaxPrecision-in.Precision)
		}
	}
	switch {
	case floats, a.Kind == AvgOf && !decimals:
		out.Type, out.Scale = schema.Double, 0
	case out.Scale > schema.MaxPrecision:
		return out, fmt.Errorf("%d decimals, more than %d: %w", out.Scale, schema.MaxPrecision, fault.ErrSchema)
	case decimals:
		out.Type, out.Precision = schema.Decimal128, schema.MaxPrecision
	}
	return out, nil
}

// Groups yields the groups after Run. Total is their number, also of those that are left out.
// Errors: ErrOverflow.
func (q *Query) Groups() (groups iter.Seq2[Group, error], total int64) {
	if q.best != nil {
		return func(yield func(Group, error) bool) {
			for _, g := range q.best.groups() {
				if !yield(g, nil) {
					return
				}
			}
		}, q.total
	}
	list := q.engine.Groups()
	return func(yield func(Group, error) bool) {
		for _, g := range list {
			if !yield(q.group(g)) {
				return
			}
		}
	}, int64(len(list))
}

// Group is one group of rows: the values of the keys, and of the aggregates.
type Group struct{ Key, Values []any }

// group returns a group of the result.
func (q *Query) group(g int) (Group, error) {
	group := Group{Values: make([]any, len(q.aggregates))}
	for i, cell := range q.engine.Key(g) {
		group.Key = append(group.Key, q.keyValue(i, cell))
	}
	for i := range q.aggregates {
		v, err := q.value(g, i)
		if err != nil {
			return group, fmt.Errorf("%v: %w", q.aggregates[i], err)
		}
		group.Values[i] = v
	}
	return group, nil
}

// value returns aggregate i of a group.
func (q *Query) value(g, i int) (any, error) {
	a, c := &q.aggregates[i], &q.columns[len(q.by)+i]
	switch a.Kind {
	case CountRows, CountOf:
		return q.engine.Count(g, i), nil
	case MinOf, MaxOf:
		return bind.Value(c, q.engine.Cell(g, i)), nil
	}
	if sum := q.engine.FloatSum(g, i); sum != nil {
		switch {
		case sum.Count() == 0:
			return nil, nil
		case a.Kind == AvgOf:
			return sum.Mean(), nil
		}
		return sum.Float64(), nil
	}
	sum := q.engine.IntSum(g, i)
	switch {
	case sum.Count() == 0:
		return nil, nil
	case a.Kind == AvgOf:
		return average(sum, c, q.scale(a))
	}
	total, ok := sum.Int128()
	switch {
	case !ok || c.Type.Decimal() && !total.FitsDigits(schema.MaxPrecision):
		return nil, fault.ErrOverflow
	case c.Type.Decimal():
		return batch.Decimal{Unscaled: total, Scale: c.Scale}, nil
	}
	return total, nil
}

// scale returns the scale of an average's column.
func (q *Query) scale(a *Aggregate) int {
	i := slices.IndexFunc(q.read, func(c schema.Column) bool { return c.Name == a.Column })
	return q.read[i].Scale
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
	return batch.Decimal{Unscaled: v, Scale: c.Scale}, err
}

// int128Of returns v, or ErrOverflow if it has more than 38 digits.
func int128Of(v *big.Int) (batch.Int128, error) {
	var size [16]byte
	if v.BitLen() > 127 {
		return batch.Int128{}, fault.ErrOverflow
	}
	new(big.Int).Abs(v).FillBytes(size[:])
	var out batch.Int128
	for _, b := range size {
		out = batch.Int128{Lo: out.Lo<<8 | uint64(b), Hi: out.Hi<<8 | int64(out.Lo>>56)}
	}
	if v.Sign() < 0 {
		out = out.Neg()
	}
	if !out.FitsDigits(schema.MaxPrecision) {
		return batch.Int128{}, fault.ErrOverflow
	}
	return out, nil
}
