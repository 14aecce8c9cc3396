package aggregate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/aggregate"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// input is a random sequence of batches, and the same selected rows as cells.
type input struct {
	columns []schema.Column
	batches []*batch.RecordBatch
	rows    [][][]byte
}

// randomInput returns batches of some columns. If few is set, cells are from a few values per
// column; byte strings are sometimes in dictionary form.
func randomInput(r *rand.Rand, few bool) *input {
	in := &input{columns: make([]schema.Column, 1+r.IntN(4))}
	types := values.AllTypes
	if r.IntN(3) == 0 {
		types = []schema.Type{schema.String, schema.Binary, schema.Int8, schema.Int64}
	}
	pools := make([][][]byte, len(in.columns))
	for i := range in.columns {
		c := &in.columns[i]
		c.Name, c.Type, c.Nullable = string(rune('a'+i)), types[r.IntN(len(types))], r.IntN(3) == 0
		values.RandomAttributes(r, c)
		for range 6 {
			pools[i] = append(pools[i], values.RandomCell(r, c))
		}
	}
	for range 1 + r.IntN(3) {
		n := 1 + r.IntN(100)
		b := batch.New(in.columns, n)
		for i, v := range b.Columns {
			if in.columns[i].Type.Variable() && r.IntN(3) > 0 {
				words := slices.Clone(pools[i])[:1+r.IntN(len(pools[i]))]
				r.Shuffle(len(words), func(a, b int) { words[a], words[b] = words[b], words[a] })
				v.UseCodes(&batch.Dictionary{Words: words}, n)
				for k := range v.Codes {
					v.Codes[k] = uint32(r.IntN(len(words)))
				}
			} else {
				for k := range n {
					cell := pools[i][r.IntN(len(pools[i]))]
					if !few {
						cell = values.RandomCell(r, &in.columns[i])
					}
					v.SetCell(k, cell)
				}
			}
			for k := 0; k < n && in.columns[i].Nullable; k++ {
				if r.IntN(4) == 0 {
					v.NeedPresent().Clear(k) // the cell stays as it is, as undefined as any
				}
			}
		}
		for k := 0; k < n && r.IntN(4) > 0; k++ {
			b.Selection.Clear(r.IntN(n))
		}
		for k := range b.Rows() {
			row := make([][]byte, len(b.Columns))
			for i, v := range b.Columns {
				row[i] = v.Cell(k)
			}
			in.rows = append(in.rows, row)
		}
		in.batches = append(in.batches, b)
	}
	return in
}

// randomFigures returns figures that fit the columns.
func randomFigures(r *rand.Rand, columns []schema.Column) (figures []aggregate.Figure) {
	var numeric []int
	for i, c := range columns {
		if !c.Type.Variable() {
			numeric = append(numeric, i)
		}
	}
	for range r.IntN(5) {
		f := aggregate.Figure{Kind: aggregate.Kind(1 + r.IntN(5)), Column: r.IntN(len(columns))}
		switch f.Kind {
		case aggregate.Sum:
			for k := 0; k < 1+r.IntN(3) && len(numeric) > 0; k++ {
				f.Terms = append(f.Terms, randomTerm(r, numeric[r.IntN(len(numeric))]))
			}
			if len(numeric) == 0 {
				continue
			}
		case aggregate.Min, aggregate.Max:
			if columns[f.Column].Type == schema.Array {
				continue
			}
		}
		figures = append(figures, f)
	}
	return figures
}

func randomTerm(r *rand.Rand, column int) aggregate.Term {
	t := aggregate.Term{Column: column, Slope: batch.Int128Of(1), FloatSlope: 1}
	switch r.IntN(3) {
	case 0:
		slope, offset := int64(r.IntN(7)-3), int64(r.IntN(200)-100)
		t.Slope, t.Offset, t.FloatSlope, t.FloatOffset = batch.Int128Of(slope), batch.Int128Of(offset),
			float64(slope), float64(offset)
	case 1:
		t.Slope, t.Offset = batch.Int128{Hi: int64(r.IntN(3) - 1), Lo: r.Uint64()}, batch.Pow10(r.IntN(39))
	}
	return t
}

// TestAggregatorMatchesLoopOverCells compares all figures with package big, cell by cell.
func TestAggregatorMatchesLoopOverCells(t *testing.T) {
	seed := seedtest.Seed(t)
	overflows, groups := 0, 0
	for n := range uint64(1000) {
		r := values.NewRand(seed + n)
		in := randomInput(r, r.IntN(2) == 0)
		figures := randomFigures(r, in.columns)
		keys := r.Perm(len(in.columns))[:r.IntN(len(in.columns)+1)]
		a := aggregate.New(in.columns, keys, figures, 1<<20)
		var err error
		for _, b := range in.batches {
			if err = a.Add(b); err != nil {
				break
			}
		}
		switch {
		case !productsFit(in, figures):
			if overflows++; !errors.Is(err, fault.ErrOverflow) {
				t.Fatalf("seed %d: a product that does not fit: %v", n, err)
			}
			continue
		case err != nil:
			t.Fatalf("seed %d: %v", n, err)
		}
		list, wanted := a.Groups(), model.GroupRows(in.columns, in.rows, keys)
		groups += len(list)
		must.Equal(t, len(list), len(wanted), n)
		for i, g := range list {
			if got, want := a.Key(g), wanted[i].Key; !slices.EqualFunc(got, want, equalCells) {
				t.Fatalf("seed %d: group %d has key %x, want %x", n, i, got, want)
			}
			for k, f := range figures {
				must.Equal(t, text(a, g, k, f.Kind), expected(wanted[i], in.columns, f), n, in.columns, f)
			}
		}
	}
	t.Logf("%d overflows, %d groups", overflows, groups)
	if overflows < 20 || groups < 1000 {
		t.Error("too few overflows or groups: the inputs are too easy")
	}
}

func equalCells(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// text returns a figure as text.
func text(a *aggregate.Aggregator, g, k int, kind aggregate.Kind) string {
	switch kind {
	case aggregate.CountRows, aggregate.CountCells:
		return fmt.Sprint(a.Count(g, k))
	case aggregate.Min, aggregate.Max:
		return fmt.Sprintf("%x %t", a.Cell(g, k), a.Cell(g, k) == nil)
	}
	if s := a.FloatSum(g, k); s != nil {
		if s.Count() == 0 {
			return "NULL"
		}
		return fmt.Sprint(s.Count(), s.Float64(), s.Mean())
	}
	s := a.IntSum(g, k)
	v, ok := s.Int128()
	if ok && v.String() != s.Big().String() || s.Negative() != (s.Big().Sign() < 0) {
		return fmt.Sprint(v, " and ", s.Big())
	}
	return fmt.Sprint(s.Count(), s.Big(), ok)
}

// productsFit reports whether all products of integers fit 128 bits.
func productsFit(in *input, figures []aggregate.Figure) bool {
	for _, row := range in.rows {
		for _, f := range figures {
			if f.Kind != aggregate.Sum || isFloat(in.columns, f) {
				continue
			}
			if _, _, fits := product(f, row, in.columns); !fits {
				return false
			}
		}
	}
	return true
}

func isFloat(columns []schema.Column, f aggregate.Figure) bool {
	return slices.ContainsFunc(f.Terms, func(t aggregate.Term) bool { return model.IsFloat(columns[t.Column].Type) })
}

func bigOf(v batch.Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.Lo))
}

// product returns the product of integers in a row, and whether it is a value and fits. It is
// computed up to the first NULL.
func product(f aggregate.Figure, row [][]byte, columns []schema.Column) (v *big.Int, valid, fits bool) {
	v = big.NewInt(1)
	for _, term := range f.Terms {
		if row[term.Column] == nil {
			return nil, false, true
		}
		x := model.IntOf(columns[term.Column].Type, row[term.Column])
		x.Mul(x, bigOf(term.Slope))
		fits := model.Fits128(x)
		x.Add(x, bigOf(term.Offset))
		if v.Mul(v, x); !fits || !model.Fits128(x) || !model.Fits128(v) {
			return nil, false, false
		}
	}
	return v, true, true
}

// floatProduct is product for floats.
func floatProduct(f aggregate.Figure, row [][]byte, columns []schema.Column) (v float64, valid bool) {
	for i, term := range f.Terms {
		c := &columns[term.Column]
		if row[term.Column] == nil {
			return 0, false
		}
		var x float64
		if model.IsFloat(c.Type) {
			x = model.FloatOf(c.Type, row[term.Column])
		} else {
			whole, _ := new(big.Rat).SetInt(model.IntOf(c.Type, row[term.Column])).Float64()
			x = whole / math.Pow10(c.Scale)
		}
		if x = term.FloatOffset + float64(term.FloatSlope*x); i > 0 {
			x *= v
		}
		v = x
	}
	return v, true
}

// expected returns a figure of a group as text.
func expected(g *model.Group, columns []schema.Column, f aggregate.Figure) string {
	switch f.Kind {
	case aggregate.CountRows:
		return fmt.Sprint(len(g.Rows))
	case aggregate.CountCells:
		return fmt.Sprint(g.Count(f.Column))
	case aggregate.Min, aggregate.Max:
		best := g.Extreme(columns[f.Column].Type, f.Column, f.Kind == aggregate.Max)
		return fmt.Sprintf("%x %t", best, best == nil)
	}
	if isFloat(columns, f) {
		var sum model.FloatSum
		for _, row := range g.Rows {
			if v, valid := floatProduct(f, row, columns); valid {
				sum.Add(v)
			}
		}
		if sum.N == 0 {
			return "NULL"
		}
		return fmt.Sprint(sum.N, sum.Over(1), sum.Over(sum.N))
	}
	n, sum := 0, new(big.Int)
	for _, row := range g.Rows {
		if v, valid, _ := product(f, row, columns); valid {
			n++
			sum.Add(sum, v)
		}
	}
	return fmt.Sprint(n, sum, model.Fits128(sum))
}
