package encoding

import (
	"math/big"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// bigOf returns cell i as an integer.
func bigOf(cells []byte, i, width int, signed bool) *big.Int {
	c := cellAt(cells, i, width)
	v := new(big.Int).SetUint64(c.hi)
	v.Or(v.Lsh(v, 64), new(big.Int).SetUint64(c.lo))
	if signed && v.Bit(8*width-1) != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	return v
}

// bigSum returns a sum as an integer.
func bigSum(s *Sum) *big.Int {
	v, w := new(big.Int), s.Words()
	v.SetInt64(int64(w[2]))
	for _, part := range []uint64{w[1], w[0]} {
		v.Add(v.Lsh(v, 64), new(big.Int).SetUint64(part))
	}
	return v
}

// checkAggregates compares sums and extremes of the selected cells with the results of a loop over
// them.
func checkAggregates(t *testing.T, cells []byte, v *planeView, n int, signed bool, sel []uint64) {
	t.Helper()
	want, least, greatest := new(big.Int), (*big.Int)(nil), (*big.Int)(nil)
	for i := batch.Bitmap(sel).Next(0); i >= 0; i = batch.Bitmap(sel).Next(i + 1) {
		x := bigOf(cells, i, v.width, signed)
		want.Add(want, x)
		if least == nil || x.Cmp(least) < 0 {
			least = x
		}
		if greatest == nil || x.Cmp(greatest) > 0 {
			greatest = x
		}
	}
	var s Sum
	v.sum(&s, signed, sel, onesIn(sel), nil, 0, false)
	if got := bigSum(&s); got.Cmp(want) != 0 {
		t.Fatalf("%d cells of %d bytes, signed %v: sum %d, want %d", n, v.width, signed, got, want)
	}
	if v.width <= 8 {
		s.Reset()
		g := v.gather(signed)
		if g.sum(&s, new(cellGroup), sel); bigSum(&s).Cmp(want) != 0 {
			t.Fatalf("%d cells of %d bytes, signed %v: sum of gathered cells %d, want %d", n, v.width, signed,
				bigSum(&s), want)
		}
	}
	for k, x := range []*big.Int{least, greatest} {
		got, ok := v.extreme(k == 1, signed, sel)
		must.Equal(t, ok, x != nil, k, sel)
		if !ok {
			return
		}
		if signed {
			got = got.xor(bit128(8*v.width - 1))
		}
		var c [16]byte
		got.put(&c)
		if bigOf(c[:], 0, 16, false).Cmp(bigOf(c[:v.width], 0, v.width, false)) != 0 ||
			bigOf(c[:], 0, v.width, signed).Cmp(x) != 0 {
			t.Fatalf("%d cells of %d bytes, signed %v: extreme %d is %x, want %d", n, v.width, signed, k, got, x)
		}
	}
}

// checkProducts compares a sum of products with a loop's.
func checkProducts(t *testing.T, cells [2][]byte, views [2]planeView, n int, signed [2]bool, sel []uint64) {
	t.Helper()
	want := new(big.Int)
	for i := batch.Bitmap(sel).Next(0); i >= 0; i = batch.Bitmap(sel).Next(i + 1) {
		x := bigOf(cells[0], i, views[0].width, signed[0])
		want.Add(want, x.Mul(x, bigOf(cells[1], i, views[1].width, signed[1])))
	}
	x, y := views[0].gather(signed[0]), views[1].gather(signed[1])
	for k, add := range []func(s *Sum){
		func(s *Sum) {
			addProducts(s, &views[0], &views[1], signed[0], signed[1], sel, onesIn(sel), new(cellGroup))
		},
		func(s *Sum) { addPlaneProducts(s, &views[0], &views[1], signed[0], signed[1], sel, onesIn(sel)) },
		func(s *Sum) { x.addProducts(s, &y, new(cellGroup), sel) },
	} {
		var s Sum
		if add(&s); bigSum(&s).Cmp(want) != 0 {
			t.Fatalf("%d cells of %d and %d bytes, signed %v, way %d: sum of products %d, want %d", n,
				views[0].width, views[1].width, signed, k, bigSum(&s), want)
		}
	}
}

func TestAggregatesOfPlanesAgreeWithCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, width := range []int{1, 2, 4, 8, 16} {
		for _, n := range viewSizes(width) {
			for round := range 4 {
				cells := viewCells(r, n, width)
				v := viewOf(cells, n, width)
				checkAggregates(t, cells, &v, n, round%2 == 0, randomSelection(r, n))
			}
		}
	}
}

func TestSumOfProductsAgreesWithCells(t *testing.T) {
	r := seedtest.Rand(t)
	for round := range 150 {
		narrow, wide := 1<<r.IntN(4), 1<<r.IntN(4)
		n := 8 * (1 + r.IntN(40))
		if round%10 == 0 {
			n = min(chunkBytes/wide, chunkBytes/narrow, 1024+n)
		}
		cells := [2][]byte{viewCells(r, n, narrow), viewCells(r, n, wide)}
		views := [2]planeView{viewOf(cells[0], n, narrow), viewOf(cells[1], n, wide)}
		checkProducts(t, cells, views, n, [2]bool{round&1 != 0, round&2 != 0}, randomSelection(r, n))
	}
}

// One Sum adds up any number of calls, and can be read in between.
func TestSumGoesOnAfterItIsRead(t *testing.T) {
	r := seedtest.Rand(t)
	var s Sum
	want := new(big.Int)
	for round := range 20 {
		n := 64
		cells, sel := viewCells(r, n, 8), randomSelection(r, n)
		v := viewOf(cells, n, 8)
		v.sum(&s, true, sel, onesIn(sel), nil, 0, false)
		for i := batch.Bitmap(sel).Next(0); i >= 0; i = batch.Bitmap(sel).Next(i + 1) {
			want.Add(want, bigOf(cells, i, 8, true))
		}
		if got := bigSum(&s); round%3 == 0 && got.Cmp(want) != 0 {
			t.Fatalf("round %d: %d, want %d", round, got, want)
		}
	}
}

// FuzzPlaneSum adds up cells that the input contains, and their products with others.
func FuzzPlaneSum(f *testing.F) {
	for k := range 5 {
		f.Add(uint8(k), uint16(37*k), []byte("\x03\x00\x00\x00\x00\x00\x00\xff\x01\x02\x03\x04\x05\x06\x07\xff"))
	}
	fuzztest.Run(f, func(t *testing.T, kind uint8, size uint16, input []byte) {
		width, n := 1<<(kind%5), 8*(1+int(size)%64)
		cells := make([]byte, n*width)
		if len(input) > 0 {
			fill(cells[:n*width/len(input)*len(input)], input)
		}
		sel := batch.MakeBitmap(n)
		sel.SetRange(int(size>>8)%n, n)
		v := viewOf(cells, n, width)
		signed := kind&32 != 0
		checkAggregates(t, cells, &v, n, signed, sel)
		if other := 1 << (kind >> 6); width <= 8 && len(input) > 0 {
			factors := make([]byte, n*other)
			fill(factors[:n*other/len(input)*len(input)], input)
			checkProducts(t, [2][]byte{cells, factors}, [2]planeView{v, viewOf(factors, n, other)}, n,
				[2]bool{signed, kind&16 != 0}, sel)
		}
	})
}
