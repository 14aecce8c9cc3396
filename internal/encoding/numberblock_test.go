package encoding

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// numberBlock encodes n random cells, and returns them too.
func numberBlock(t *testing.T, r *rand.Rand, typ schema.Type, n int) (NumberBlock, []byte) {
	t.Helper()
	width := typ.Width()
	cells := viewCells(r, n, width)
	if float(typ) {
		specialFloats(r, cells, n, typ)
	}
	b := mustBuilder(t, BuilderOptions{Type: typ, Encoding: schema.Bitshuffle, BlockBytes: 1 << 20,
		Exact: r.IntN(2) == 0})
	v := batch.NewVector(typ, n)
	for i := range n {
		v.SetCell(i, cells[i*width:(i+1)*width])
	}
	must.Equal(t, b.Append(v, 0, n), n, "a block does not fit all values")
	block := must.Get(Parse(Params{Type: typ, Encoding: schema.Bitshuffle, Payload: b.Finish(nil, 0)}))(t)
	return block.(NumberBlock), cells
}

// randomRange returns a range of at most n values, and the bit of a selection at which it begins.
func randomRange(r *rand.Rand, n int) (from, count, at int) {
	from = r.IntN(n)
	count, at = 1+r.IntN(n-from), r.IntN(200)
	if r.IntN(3) == 0 {
		from, at = from&^63, at&^63
	}
	return from, count, at
}

func TestNumberBlocksAgreeWithCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range planeTypes {
		for range 4 {
			n := 1 + r.IntN(5000)
			block, cells := numberBlock(t, r, typ, n)
			for range 6 {
				from, count, at := randomRange(r, n)
				sel := batch.Bitmap(randomSelection(r, at+count+70))
				checkSum(t, block, typ, cells, from, count, sel, at)
				checkExtreme(t, block, typ, cells, from, count, sel, at)
			}
		}
	}
}

// checkSum compares Sum with a loop over the cells.
func checkSum(t *testing.T, b NumberBlock, typ schema.Type, cells []byte, from, n int, sel batch.Bitmap, at int) {
	t.Helper()
	want, count := new(big.Int), int64(0)
	for i := range n {
		if sel.Get(at + i) {
			want.Add(want, bigOf(cells, from+i, typ.Width(), signed(typ)))
			count++
		}
	}
	var s Sum
	handled, err := b.Sum(from, n, sel, at, &s)
	if err != nil || handled == float(typ) {
		t.Fatalf("sum of %s: handled %v, %v", typ, handled, err)
	}
	if got := bigSum(&s); handled && (got.Cmp(want) != 0 || s.Count() != count) {
		t.Fatalf("%s, values [%d,%d), bit %d: sum %d of %d, want %d of %d", typ, from, from+n, at, got,
			s.Count(), want, count)
	}
}

// betterCell reports whether a is a better extreme than b: a cell of the type, nil for none.
func betterCell(typ schema.Type, greatest bool, a, b []byte) bool {
	if b == nil {
		return true
	}
	if float(typ) {
		x, y := floatOf(a), floatOf(b)
		switch {
		case x != x || y != y:
			return x == x
		case x == 0 && y == 0:
			return math.Signbit(x) != math.Signbit(y) && math.Signbit(y) == greatest
		}
	}
	order := batch.Compare(typ, a, b)
	return order > 0 && greatest || order < 0 && !greatest
}

// floatOf returns a cell as a number.
func floatOf(cell []byte) float64 {
	x := number128(cell).lo
	if len(cell) == 4 {
		return float64(math.Float32frombits(uint32(x)))
	}
	return math.Float64frombits(x)
}

// checkExtreme compares Extreme with a loop over the cells.
func checkExtreme(t *testing.T, b NumberBlock, typ schema.Type, cells []byte, from, n int, sel batch.Bitmap, at int) {
	t.Helper()
	for _, greatest := range []bool{false, true} {
		var want []byte
		for i := range n {
			cell := wideCell(cells, from+i, typ.Width(), typ)
			if sel.Get(at+i) && betterCell(typ, greatest, cell, want) {
				want = cell
			}
		}
		e := Extreme{Greatest: greatest}
		// In two calls, the second of which continues.
		handled, err := b.Extreme(from, n/3, sel, at, &e)
		if err == nil && handled {
			handled, err = b.Extreme(from+n/3, n-n/3, sel, at+n/3, &e)
		}
		got := e.Cell()
		must.Do(t, err, typ)
		must.Equal(t, handled, true, typ)
		if float(typ) && want != nil && math.IsNaN(floatOf(want)) && len(got) == len(want) && math.IsNaN(floatOf(got)) {
			continue // any NaN
		}
		must.Equal(t, got, want, typ, from, from+n, at, greatest)
	}
}

func TestSumProductsOfBlocksAgreesWithCells(t *testing.T) {
	r := seedtest.Rand(t)
	types := []schema.Type{schema.Int8, schema.Uint16, schema.Date, schema.Uint32, schema.Int64,
		schema.Decimal64, schema.Int128}
	for range 30 {
		n := 1 + r.IntN(4000)
		typ, otherType := types[r.IntN(len(types))], types[r.IntN(len(types))]
		block, cells := numberBlock(t, r, typ, n)
		other, factors := numberBlock(t, r, otherType, n)
		from, count, at := randomRange(r, n)
		otherFrom := r.IntN(n - count + 1)
		if r.IntN(3) > 0 {
			otherFrom = otherFrom&^7 | from&7
			count = min(count, n-otherFrom)
		}
		sel := batch.Bitmap(randomSelection(r, at+max(count, 0)+70))
		if count <= 0 {
			continue
		}
		want := new(big.Int)
		for i := range count {
			if sel.Get(at + i) {
				x := bigOf(cells, from+i, typ.Width(), signed(typ))
				want.Add(want, x.Mul(x, bigOf(factors, otherFrom+i, otherType.Width(), signed(otherType))))
			}
		}
		var s Sum
		handled, err := block.SumProducts(from, other, otherFrom, count, sel, at, &s)
		can := typ != schema.Int128 && otherType != schema.Int128 && (from-otherFrom)%8 == 0
		must.Do(t, err, typ, from, otherType, otherFrom)
		must.Equal(t, handled, can, typ, from, otherType, otherFrom)
		if got := bigSum(&s); handled && got.Cmp(want) != 0 {
			t.Fatalf("%s from %d times %s from %d, %d values: %d, want %d", typ, from, otherType, otherFrom,
				count, got, want)
		}
	}
}
