package aggregate_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
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
	pools := make([][][]byte, len(in.columns))
	for i := range in.columns {
		c := &in.columns[i]
		c.Name, c.Type, c.Nullable = string(rune('a'+i)), values.AllTypes[r.IntN(len(values.AllTypes))], r.IntN(2) == 0
		values.RandomAttributes(r, c)
		for range 6 {
			pools[i] = append(pools[i], values.RandomCell(r, c))
		}
	}
	for range 1 + r.IntN(3) {
		n := 1 + r.IntN(40)
		b := batch.New(in.columns, n)
		for i, v := range b.Columns {
			if in.columns[i].Type.Variable() && r.IntN(2) == 0 {
				words := slices.Clone(pools[i])
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
		for k := 0; k < n && r.IntN(2) == 0; k++ {
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
		t.Slope, t.Offset, t.FloatSlope, t.FloatOffset = batch.Int128Of(slope), batch.Int128Of(offset), float64(slope), float64(offset)
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
		wanted, fits := expected(in, keys, figures)
		switch {
		case !fits:
			if overflows++; !errors.Is(err, fault.ErrOverflow) {
				t.Fatalf("seed %d: a product that does not fit: %v", n, err)
			}
			continue
		case err != nil:
			t.Fatalf("seed %d: %v", n, err)
		}
		list := a.Groups()
		groups += len(list)
		if len(list) != len(wanted) {
			t.Fatalf("seed %d: %d groups, want %d", n, len(list), len(wanted))
		}
		for i, g := range list {
			if got, want := a.Key(g), wanted[i].key; !slices.EqualFunc(got, want, equalCells) {
				t.Fatalf("seed %d: group %d has key %x, want %x", n, i, got, want)
			}
			for k, f := range figures {
				if got, want := text(a, g, k, f.Kind), wanted[i].figure(in.columns, f); got != want {
					t.Fatalf("seed %d: group %x of %v: %+v is %s, want %s", n, wanted[i].key, in.columns, f, got, want)
				}
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

// oracleGroup is a group of rows.
type oracleGroup struct {
	key  [][]byte
	rows [][][]byte
}

// expected groups rows, and reports whether all products fit 128 bits.
func expected(in *input, keys []int, figures []aggregate.Figure) (list []*oracleGroup, fits bool) {
	fits = true
	byKey := map[string]*oracleGroup{}
	if len(keys) == 0 {
		list = append(list, &oracleGroup{})
		byKey[""] = list[0]
	}
	for _, row := range in.rows {
		var key [][]byte
		name := ""
		for _, k := range keys {
			cell := normal(in.columns[k].Type, row[k])
			key = append(key, cell)
			name += fmt.Sprintf("%x %t ", cell, cell == nil)
		}
		g := byKey[name]
		if g == nil {
			g = &oracleGroup{key: key}
			byKey[name], list = g, append(list, g)
		}
		g.rows = append(g.rows, row)
		for _, f := range figures {
			if f.Kind == aggregate.Sum && !isFloat(in.columns, f) {
				_, _, ok := product(f, row, in.columns)
				fits = fits && ok
			}
		}
	}
	slices.SortFunc(list, func(a, b *oracleGroup) int {
		for i, k := range keys {
			if order := compare(in.columns[k].Type, a.key[i], b.key[i]); order != 0 {
				return order
			}
		}
		return 0
	})
	return list, fits
}

// normal returns the cell of the value that stands for all that are in one group with it.
func normal(t schema.Type, cell []byte) []byte {
	switch f := floatOf(t, cell); {
	case cell == nil || t != schema.Float && t != schema.Double:
		return cell
	case f != f && t == schema.Float:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	case f != f:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
	case f == 0:
		return make([]byte, t.Width())
	}
	return cell
}

// compare orders NULL after all values and NaN after all numbers, and −0 before +0.
func compare(t schema.Type, a, b []byte) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(bit(a == nil), bit(b == nil))
	case t == schema.Float || t == schema.Double:
		x, y := floatOf(t, a), floatOf(t, b)
		if x != x || y != y {
			return cmp.Compare(bit(x != x), bit(y != y))
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(bit(math.Signbit(y)), bit(math.Signbit(x))))
	}
	return batch.Compare(t, a, b)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func floatOf(t schema.Type, cell []byte) float64 {
	switch {
	case cell == nil:
	case t == schema.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
	case t == schema.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(cell))
	}
	return 0
}

func intOf(t schema.Type, cell []byte) *big.Int {
	v := new(big.Int)
	for i := len(cell) - 1; i >= 0; i-- {
		v.Or(v.Lsh(v, 8), big.NewInt(int64(cell[i])))
	}
	switch t {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64, schema.Bool:
		return v
	}
	if cell[len(cell)-1] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(cell))))
	}
	return v
}

func bigOf(v batch.Int128) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return b.Add(b, new(big.Int).SetUint64(v.Lo))
}

// fits128 reports whether v is in the range of 128 bits.
func fits128(v *big.Int) bool {
	if v.Sign() < 0 {
		v = new(big.Int).Not(v)
	}
	return v.BitLen() < 128
}

func isFloat(columns []schema.Column, f aggregate.Figure) bool {
	return slices.ContainsFunc(f.Terms, func(t aggregate.Term) bool {
		return columns[t.Column].Type == schema.Float || columns[t.Column].Type == schema.Double
	})
}

// product returns the product of integers in a row, and whether it is a value and fits. It is
// computed up to the first NULL.
func product(f aggregate.Figure, row [][]byte, columns []schema.Column) (v *big.Int, valid, fits bool) {
	v = big.NewInt(1)
	for _, term := range f.Terms {
		if row[term.Column] == nil {
			return nil, false, true
		}
		x := intOf(columns[term.Column].Type, row[term.Column])
		x.Mul(x, bigOf(term.Slope))
		fits := fits128(x)
		x.Add(x, bigOf(term.Offset))
		if v.Mul(v, x); !fits || !fits128(x) || !fits128(v) {
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
		x := floatOf(c.Type, row[term.Column])
		if c.Type != schema.Float && c.Type != schema.Double {
			whole, _ := new(big.Rat).SetInt(intOf(c.Type, row[term.Column])).Float64()
			x = whole / math.Pow10(c.Scale)
		}
		if x = term.FloatOffset + float64(term.FloatSlope*x); i > 0 {
			x *= v
		}
		v = x
	}
	return v, true
}

// figure returns a figure of the group as text.
func (g *oracleGroup) figure(columns []schema.Column, f aggregate.Figure) string {
	var best []byte
	cells := 0
	for _, row := range g.rows {
		cell := row[f.Column]
		if cell == nil {
			continue
		}
		cells++
		if f.Kind != aggregate.Min && f.Kind != aggregate.Max {
			continue
		}
		order := 0
		if best != nil {
			order = compare(columns[f.Column].Type, cell, best)
		}
		if best == nil || order < 0 && f.Kind == aggregate.Min || order > 0 && f.Kind == aggregate.Max {
			best = cell
		}
	}
	switch {
	case f.Kind == aggregate.CountRows:
		return fmt.Sprint(len(g.rows))
	case f.Kind == aggregate.CountCells:
		return fmt.Sprint(cells)
	case f.Kind != aggregate.Sum:
		if v := floatOf(columns[f.Column].Type, best); v != v {
			best = normal(columns[f.Column].Type, best)
		}
		return fmt.Sprintf("%x %t", best, best == nil)
	case isFloat(columns, f):
		return g.floatSum(columns, f)
	}
	n, sum := 0, new(big.Int)
	for _, row := range g.rows {
		if v, valid, _ := product(f, row, columns); valid {
			n++
			sum.Add(sum, v)
		}
	}
	return fmt.Sprint(n, sum, fits128(sum))
}

func (g *oracleGroup) floatSum(columns []schema.Column, f aggregate.Figure) string {
	n, sum, special := int64(0), new(big.Rat), 0.0
	for _, row := range g.rows {
		v, valid := floatProduct(f, row, columns)
		if !valid {
			continue
		}
		n++
		if math.IsInf(v, 0) || v != v {
			special += v
			continue
		}
		sum.Add(sum, new(big.Rat).SetFloat64(v))
	}
	if n == 0 {
		return "NULL"
	}
	if special != 0 {
		return fmt.Sprint(n, special, special)
	}
	total, _ := sum.Float64()
	mean, _ := sum.Quo(sum, new(big.Rat).SetInt64(n)).Float64()
	return fmt.Sprint(n, total, mean)
}
