package encoding

import (
	"math/big"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// checkGroups compares gathered cells with those selected in cells.
func checkGroups(t *testing.T, v *planeView, cells []byte, signed bool, sel batch.Bitmap) {
	t.Helper()
	g := v.gather(signed)
	var c cellGroup
	var got, slow [groupCells]uint64
	i := -1
	for c.next(sel) {
		g.load(&c, &got)
		g.loadBits(&c, &slow)
		for k := range c.count {
			i = sel.Next(i + 1)
			if i < 0 {
				t.Fatalf("more cells than the %d selected", sel.Count())
			}
			want := bigOf(cells, i, v.width, signed)
			for _, x := range []uint64{got[k], slow[k]} {
				m, negative := g.magnitude(x)
				if want.CmpAbs(new(big.Int).SetUint64(m)) != 0 || negative != (want.Sign() < 0) {
					t.Fatalf("cell %d of %d bytes, signed %v: %x, want %d", i, v.width, signed, x, want)
				}
			}
		}
	}
	if i = sel.Next(i + 1); i >= 0 {
		t.Fatalf("cell %d is not gathered", i)
	}
}

func TestGroupsAreTheSelectedCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, width := range []int{1, 2, 4, 8} {
		for _, n := range viewSizes(width) {
			for round := range 6 {
				cells := viewCells(r, n, width)
				v := viewOf(cells, n, width)
				sel := batch.Bitmap(randomSelection(r, n))
				if round >= 2 { // a few cells in each word, or in some
					sel = batch.MakeBitmap(n)
					for range 1 + n/(30<<round) {
						sel.Set(r.IntN(n))
					}
				}
				checkGroups(t, &v, cells, round%2 == 0, sel)
			}
		}
	}
}
