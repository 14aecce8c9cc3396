package history

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// figure is an aggregate and its expected value in a group.
type figure struct {
	aggregate oribi.Aggregate
	want      func(g *model.Group) (v any, fits bool)
	decoded   bool // needs values that are decoded
}

// aggregate computes aggregates of all columns over the rows of a read, in groups by its first two
// columns.
func (r *Runner) aggregate(t *oribi.Table, rd *script.Read, rows [][][]byte) error {
	all := figures(t.Schema())
	if err := r.compareAggregates(t, rd, rows, rd.Columns[:min(2, len(rd.Columns))], all); err != nil {
		return err
	}
	// A single figure is computed from stored values, if the encoding allows it.
	stored := slices.DeleteFunc(all, func(f figure) bool { return f.decoded })
	for k := range 3 {
		at := (3*int(r.Counts.Reads) + k) % len(stored)
		if err := r.compareAggregates(t, rd, rows, rd.Columns[:min(k, len(rd.Columns))], stored[at:at+1]); err != nil {
			return err
		}
	}
	return nil
}

// compareAggregates compares figures in groups by some columns with the model.
func (r *Runner) compareAggregates(t *oribi.Table, rd *script.Read, rows [][][]byte, by []int, figures []figure) error {
	s := t.Schema()
	options := []oribi.AggregateOption{oribi.Workers(max(1, rd.Workers))}
	for _, o := range countOptions(t, rd) {
		options = append(options, o)
	}
	for _, c := range by {
		options = append(options, oribi.GroupBy(s.Columns[c].Name))
	}
	groups := model.GroupRows(s.Columns, rows, by)
	fits := slices.DeleteFunc(slices.Clone(figures), func(f figure) bool {
		return slices.ContainsFunc(groups, func(g *model.Group) bool { _, fits := f.want(g); return !fits })
	})
	if len(fits) < len(figures) {
		if _, err := t.Aggregate(r.ctx, aggregatesOf(figures), options...); !errors.Is(err, oribi.ErrOverflow) {
			return fmt.Errorf("aggregates that do not fit: %v", err)
		}
	}
	got, err := t.Aggregate(r.ctx, aggregatesOf(fits), options...)
	if err != nil {
		return err
	}
	if len(got.Groups) != len(groups) {
		return fmt.Errorf("%d groups, want %d", len(got.Groups), len(groups))
	}
	for i, g := range groups {
		for k, c := range by {
			if want := values.GoValue(&s.Columns[c], g.Key[k]); !values.SameValue(got.Groups[i].Key[k], want) {
				return fmt.Errorf("group %d: column %s is %v, want %v", i,
					s.Columns[c].Name, got.Groups[i].Key[k], want)
			}
		}
		for k, f := range fits {
			if v, want := got.Groups[i].Values[k].Any(), first(f.want(g)); !values.SameValue(v, want) {
				return fmt.Errorf("group %v: %v is %v (%T), want %v (%T)", got.Groups[i].Key,
					f.aggregate, v, v, want, want)
			}
		}
	}
	return nil
}

func first[A, B any](a A, _ B) A { return a }

func aggregatesOf(figures []figure) (list []oribi.Aggregate) {
	for _, f := range figures {
		list = append(list, f.aggregate)
	}
	return list
}

// figures returns aggregates of all columns of a schema.
func figures(s *schema.Schema) (list []figure) {
	add := func(a oribi.Aggregate, want func(g *model.Group) (any, bool)) {
		list = append(list, figure{aggregate: a, want: want})
	}
	add(oribi.CountRows(), func(g *model.Group) (any, bool) { return int64(len(g.Rows)), true })
	for i := range s.Columns {
		c := &s.Columns[i]
		add(oribi.CountOf(c.Name), func(g *model.Group) (any, bool) { return g.Count(i), true })
		if c.Type == schema.Array {
			continue
		}
		at := len(list)
		add(oribi.MinOf(c.Name), func(g *model.Group) (any, bool) {
			return values.GoValue(c, g.Extreme(c.Type, i, false)), true
		})
		add(oribi.MaxOf(c.Name), func(g *model.Group) (any, bool) {
			return values.GoValue(c, g.Extreme(c.Type, i, true)), true
		})
		if model.IsFloat(c.Type) {
			add(oribi.SumOf(c.Name), func(g *model.Group) (any, bool) { return floatSum(g, c, i, false), true })
			add(oribi.AvgOf(c.Name), func(g *model.Group) (any, bool) { return floatSum(g, c, i, true), true })
		}
		for k := range list[at:] {
			list[at+k].decoded = c.Type.Variable()
		}
	}
	numeric := numbers(s)
	for k, y := range numeric {
		c, x := &s.Columns[y], numeric[max(k-1, 0)]
		add(oribi.SumOf(c.Name), func(g *model.Group) (any, bool) { return intSum(g, c, y) })
		add(oribi.AvgOf(c.Name), func(g *model.Group) (any, bool) { return average(g, c, y), true })
		if s.Columns[x].Scale+s.Columns[y].Scale <= schema.MaxPrecision {
			a := oribi.SumOfProduct(oribi.Col(s.Columns[x].Name), oribi.Col(s.Columns[y].Name).Neg().Plus(1))
			add(a, func(g *model.Group) (any, bool) { return product(g, s, x, y) })
		}
	}
	return list
}

// numbers returns the indexes of the columns of integers and decimals.
func numbers(s *schema.Schema) (list []int) {
	for i := range s.Columns {
		switch t := s.Columns[i].Type; {
		case t.Variable() || model.IsFloat(t) || t == schema.Bool || t == schema.Date || t == schema.Timestamp:
		default:
			list = append(list, i)
		}
	}
	return list
}

func floatSum(g *model.Group, c *schema.Column, i int, mean bool) any {
	var sum model.FloatSum
	for _, row := range g.Rows {
		if row[i] != nil {
			sum.Add(model.FloatOf(c.Type, row[i]))
		}
	}
	switch {
	case sum.N == 0:
		return nil
	case mean:
		return sum.Over(sum.N)
	}
	return sum.Over(1)
}

// total returns the sum of integers, or of unscaled decimals, and how many there are.
func total(g *model.Group, c *schema.Column, i int) (sum *big.Int, n int64) {
	sum = new(big.Int)
	for _, row := range g.Rows {
		if row[i] != nil {
			sum.Add(sum, model.IntOf(c.Type, row[i]))
			n++
		}
	}
	return sum, n
}

func intSum(g *model.Group, c *schema.Column, i int) (v any, fits bool) {
	sum, n := total(g, c, i)
	if n == 0 {
		return nil, true
	}
	fits = model.Fits128(sum)
	if c.Type.Decimal() {
		return oribi.Decimal{Unscaled: int128Of(sum), Scale: c.Scale},
			fits && int128Of(sum).FitsDigits(schema.MaxPrecision)
	}
	return int128Of(sum), fits
}

// int128Of returns v, if it fits 128 bits.
func int128Of(v *big.Int) oribi.Int128 {
	low := new(big.Int).SetUint64(math.MaxUint64)
	return oribi.Int128{Lo: low.And(v, low).Uint64(), Hi: new(big.Int).Rsh(v, 64).Int64()}
}

// product returns the sum of x × (1 − y) for the columns x and y, whose types are not floats.
func product(g *model.Group, s *schema.Schema, x, y int) (v any, fits bool) {
	a, b := &s.Columns[x], &s.Columns[y]
	sum, n := new(big.Int), 0
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(b.Scale)), nil)
	for _, row := range g.Rows {
		if row[x] == nil || row[y] == nil {
			continue
		}
		n++
		minus := model.IntOf(b.Type, row[y])
		minus.Neg(minus)
		term := new(big.Int).Add(one, minus)
		p := new(big.Int).Mul(term, model.IntOf(a.Type, row[x]))
		if !model.Fits128(minus) || !model.Fits128(term) || !model.Fits128(p) {
			return nil, false
		}
		sum.Add(sum, p)
	}
	total, fits := int128Of(sum), model.Fits128(sum)
	switch {
	case n == 0:
		return nil, true
	case !a.Type.Decimal() && !b.Type.Decimal():
		return total, fits
	}
	return oribi.Decimal{Unscaled: total, Scale: a.Scale + b.Scale}, fits && total.FitsDigits(schema.MaxPrecision)
}

func average(g *model.Group, c *schema.Column, i int) any {
	sum, n := total(g, c, i)
	if n == 0 {
		return nil
	}
	mean := new(big.Rat).SetFrac(sum, big.NewInt(n))
	if !c.Type.Decimal() {
		f, _ := mean.Float64()
		return f
	}
	more := min(6, schema.MaxPrecision-c.Precision)
	digits := strings.Replace(mean.FloatString(more), ".", "", 1) // rounds halves away from zero
	unscaled, _ := new(big.Int).SetString(digits, 10)
	return oribi.Decimal{Unscaled: int128Of(unscaled), Scale: c.Scale + more}
}
