package cfile

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// computedColumn writes a column of random cells, some NULL, and returns them with a reader.
func computedColumn(t *testing.T, rng *rand.Rand, typ schema.Type, rows int, share float64) (*ColumnReader, [][]byte) {
	t.Helper()
	cells := randomCells(rng, typ, rows, share)
	o := WriterOptions{Type: typ, Encoding: schema.Bitshuffle, Nullable: share > 0, PositionalIndex: true,
		BlockBytes: 1024 << rng.IntN(5), Exact: rng.IntN(3) == 0}
	return open(t, writeSteps(t, rng, o, cells), cache.New(1<<20)).NewColumnReader(), cells
}

// integerOf returns an integer cell as a big number.
func integerOf(typ schema.Type, cell []byte) *big.Int {
	v := new(big.Int)
	for i := len(cell) - 1; i >= 0; i-- {
		v.Or(v.Lsh(v, 8), big.NewInt(int64(cell[i])))
	}
	if batch.Compare(typ, cell, make([]byte, len(cell))) < 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(cell))))
	}
	return v
}

// checkTotal compares a sum with the expected sum.
func checkTotal(t *testing.T, s *Sum, want *big.Int, count int64) {
	t.Helper()
	w, got := s.Words(), new(big.Int)
	got.SetInt64(int64(w[2]))
	for _, part := range []uint64{w[1], w[0]} {
		got.Or(got.Lsh(got, 64), new(big.Int).SetUint64(part))
	}
	must.Equal(t, got.Cmp(want), 0, got, want)
	must.Equal(t, s.Count(), count, got, want)
}

// window returns a window of rows and a selection of some of them.
func window(rng *rand.Rand, rows int) (at, n int, sel batch.Bitmap) {
	at = rng.IntN(rows)
	n = min(1+rng.IntN(3000), rows-at)
	sel = batch.MakeBitmap(n)
	for i := range n {
		if rng.IntN(3) > 0 {
			sel.Set(i)
		}
	}
	return at, n, sel
}

func TestSumsAndExtremesOfColumns(t *testing.T) {
	for seed, typ := range allTypes {
		if !schema.Bitshuffle.Allowed(typ) {
			continue
		}
		for _, share := range []float64{0, 0.2, 0.95} {
			t.Run(fmt.Sprintf("type=%v/nulls=%v", typ, share), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(31, uint64(seed)))
				c, cells := computedColumn(t, rng, typ, 2000+rng.IntN(3000), share)
				for range 10 {
					at, n, sel := window(rng, len(cells))
					var total Sum
					e, greatest := new(Extreme), rng.IntN(2) == 0
					if greatest {
						e = Maximum()
					}
					if handled, err := c.Sum(batch.Ordinal(at), n, sel, &total); err != nil || handled == isFloat(typ) {
						t.Fatal(handled, err)
					}
					must.Equal(t, must.Get(c.Extreme(batch.Ordinal(at), n, sel, e))(t), true)
					if isFloat(typ) {
						continue
					}
					want, count, best := new(big.Int), int64(0), []byte(nil)
					for i, cell := range cells[at : at+n] {
						if cell == nil || !sel.Get(i) {
							continue
						}
						want.Add(want, integerOf(typ, cell))
						count++
						if best == nil || batch.Compare(typ, cell, best) > 0 == greatest {
							best = cell
						}
					}
					checkTotal(t, &total, want, count)
					if got := e.Cell(); (got == nil) != (best == nil) ||
						best != nil && batch.Compare(typ, got, best) != 0 {
						t.Fatalf("extreme, greatest %v: %x, want %x", greatest, got, best)
					}
				}
			})
		}
	}
}

func TestSumProductsOfColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	types := []schema.Type{schema.Int64, schema.Int32, schema.Uint16, schema.Int8}
	handledCount := 0
	for round := range 12 {
		typ, other := types[rng.IntN(len(types))], types[rng.IntN(len(types))]
		share := 0.0
		if round%4 == 0 {
			share = 0.001
		}
		c, cells := computedColumn(t, rng, typ, 5000, share)
		o, factors := computedColumn(t, rng, other, 5000, 0)
		for range 10 {
			at, n, sel := window(rng, len(cells))
			var total Sum
			handled, err := c.SumProducts(batch.Ordinal(at), n, o, sel, &total)
			if err != nil || !handled && share == 0 {
				t.Fatal(handled, err)
			}
			want, count := new(big.Int), int64(0)
			for i, cell := range cells[at : at+n] {
				if handled && sel.Get(i) {
					x := integerOf(typ, cell)
					want.Add(want, x.Mul(x, integerOf(other, factors[at+i])))
					count++
				}
			}
			checkTotal(t, &total, want, count)
			if handled && share > 0 {
				handledCount++
			}
		}
	}
	if handledCount == 0 {
		t.Error("no window of a nullable column was computed")
	}
}

func TestOtherColumnsAreNotComputed(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 1))
	for _, o := range []WriterOptions{
		{Type: schema.Int32, Encoding: schema.Plain, PositionalIndex: true},
		{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true},
	} {
		cells := randomCells(rng, o.Type, 100, 0)
		c := open(t, writeSteps(t, rng, o, cells), nil).NewColumnReader()
		sel := batch.MakeBitmap(100)
		sel.SetRange(0, 100)
		var total Sum
		for i, f := range []func() (bool, error){
			func() (bool, error) { return c.Sum(0, 100, sel, &total) },
			func() (bool, error) { return c.SumProducts(0, 100, c, sel, &total) },
			func() (bool, error) { return c.Extreme(0, 100, sel, new(Extreme)) },
		} {
			if i == 2 && o.Type.Variable() {
				continue
			}
			must.Equal(t, must.Get(f())(t), false, o.Type, o.Encoding, i)
		}
	}
}
