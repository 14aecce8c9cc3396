package batch

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// InFilter passes exactly the cells that the filter itself reports, including false positives. It
// never passes NULL or NaN.
func TestInFilterPassesAddedCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range allTypes {
		for round := range 20 {
			p := &Predicate{Column: "c", Type: typ, Op: InFilter, Filter: bloom.NewWithEstimates(4, 0.3)}
			for range r.IntN(5) {
				p.Filter.Add(randomCell(r, typ))
			}
			if round%2 == 0 {
				must.Do(t, p.Prepare())
			}
			n := r.IntN(200)
			v := randomVector(r, typ, n, round%3 == 0, typ.Variable() && round%4 == 0)
			sel := MakeBitmap(n)
			sel.SetRange(0, n)
			p.Eval(v, sel)
			for i := range n {
				cell := v.Cell(i)
				want := cell != nil && p.Filter.Test(cell)
				if typ == schema.Float || typ == schema.Double {
					want = cell != nil && !IsNaN(typ, cell)
					zero := want && Compare(typ, cell, make([]byte, 8)) == 0
					if zero {
						minus := make([]byte, typ.Width())
						minus[len(minus)-1] = 0x80
						want = p.Filter.Test(make([]byte, typ.Width())) || p.Filter.Test(minus)
					} else if want {
						want = p.Filter.Test(cell)
					}
				}
				must.Equal(t, sel.Get(i), want, typ, "cell", cell, "selected")
				must.Equal(t, p.EvalCell(cell), want, typ, "cell", cell, "alone")
			}
		}
	}
}

func TestInFilterTreatsZerosAsEqual(t *testing.T) {
	minus := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Copysign(0, -1)))
	for _, added := range [][]byte{make([]byte, 8), minus} {
		p := &Predicate{Type: schema.Double, Op: InFilter, Filter: bloom.NewWithEstimates(100, 1e-9)}
		p.Filter.Add(added)
		for _, cell := range [][]byte{make([]byte, 8), minus} {
			must.Equal(t, p.EvalCell(cell), true, added, "was added", cell, "does not pass")
		}
	}
	p := &Predicate{Type: schema.Int64, Op: InFilter, Filter: bloom.NewWithEstimates(100, 1e-9)}
	p.Filter.Add(make([]byte, 8))
	must.Equal(t, p.EvalCell(minus), false, "an integer that differs in its sign bit passes")
}

func TestPrepareRefusesInvalidInFilter(t *testing.T) {
	f := bloom.NewWithEstimates(10, 0.1)
	for name, p := range map[string]Predicate{
		"no filter":             {Type: schema.Int32, Op: InFilter},
		"filter of a list":      {Type: schema.Int32, Op: In, Filter: f},
		"filter and values":     {Type: schema.Int32, Op: InFilter, Filter: f, Values: [][]byte{make([]byte, 4)}},
		"filter without a size": {Type: schema.Int32, Op: InFilter, Filter: &bloom.BloomFilter{}},
		"unknown test":          {Type: schema.Int32, Op: InFilter + 1, Filter: f},
	} {
		must.Fail(t, p.Prepare(), fault.ErrSchema, name)
	}
	must.Equal(t, InFilter.String(), "in filter", "InFilter is printed as")
}
