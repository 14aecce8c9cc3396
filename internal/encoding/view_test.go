package encoding

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// viewCells returns n random cells, n a multiple of 8, with a random number of significant bits,
// some of them extended by their sign, some with constant bits.
func viewCells(r *rand.Rand, n, width int) []byte {
	significant, signed, set := 1+r.IntN(8*width), r.IntN(2) == 0, [2]uint64{}
	if r.IntN(3) == 0 {
		set = [2]uint64{r.Uint64() & r.Uint64() & r.Uint64(), r.Uint64() & r.Uint64() & r.Uint64()}
	}
	if r.IntN(8) == 0 {
		significant = 0
	}
	cells := make([]byte, 0, n*width+maxWidth)
	for range n {
		var c [maxWidth]byte
		lo, hi := r.Uint64(), r.Uint64()
		switch {
		case significant == 0:
			lo, hi = 0, 0
		case significant <= 64 && signed:
			lo = uint64(int64(lo) >> (64 - significant))
			hi = uint64(int64(lo) >> 63)
		case significant <= 64:
			lo, hi = lo>>(64-significant), 0
		case signed:
			hi = uint64(int64(hi) >> (128 - significant))
		default:
			hi >>= 128 - significant
		}
		binary.LittleEndian.PutUint64(c[:], lo|set[0])
		binary.LittleEndian.PutUint64(c[8:], hi|set[1])
		cells = append(cells, c[:width]...)
	}
	return cells
}

// viewOf shuffles n cells and returns a view of their rows.
func viewOf(cells []byte, n, width int) planeView {
	rows := make([]byte, n*width)
	shuffle(rows, cells, n, width)
	return viewRows(rows, n, width, new([maxPlanes]planeRef))
}

// cellAt returns cell i as two words, the bits above its width 0.
func cellAt(cells []byte, i, width int) uint128 {
	var c [maxWidth]byte
	copy(c[:], cells[i*width:(i+1)*width])
	return uint128{binary.LittleEndian.Uint64(c[:]), binary.LittleEndian.Uint64(c[8:])}
}

// viewSizes returns numbers of cells that fill a chunk, or end at, before and after whole words.
func viewSizes(width int) []int {
	return []int{8, 16, 56, 64, 72, 248, 256, 264, 8192/width - 8, 8192 / width}
}

func TestViewListsPlanesOfCells(t *testing.T) {
	r := seedtest.Rand(t)
	for _, width := range []int{1, 2, 4, 8, 16} {
		for _, n := range viewSizes(width) {
			for range 8 {
				cells := viewCells(r, n, width)
				v := viewOf(cells, n, width)
				mixed := v.mixed()
				for k, ref := range v.refs {
					if p := ref.plane; mixed.bit(int(p)) == 0 || v.ones.bit(int(p)) != 0 ||
						k > 0 && p <= v.refs[k-1].plane {
						t.Fatalf("width %d, %d cells: refs %v, mixed %x, ones %x", width, n, v.refs, mixed, v.ones)
					}
				}
				from := r.IntN(n/8) * 8
				part := v.part(from, n-from)
				for i := range n {
					must.Equal(t, v.cell(i), cellAt(cells, i, width), width, i, n)
					if i >= from && part.cell(i-from) != v.cell(i) {
						t.Fatalf("width %d, cell %d of %d, in a view from %d: %x", width, i, n, from, part.cell(i-from))
					}
				}
				checkSignRun(t, &v, cells, n)
			}
		}
	}
}

// checkSignRun checks that the planes of the sign run equal the top plane and that the one below
// does not.
func checkSignRun(t *testing.T, v *planeView, cells []byte, n int) {
	t.Helper()
	plane := func(p uint8, i int) byte { return cells[i*v.width+int(p>>3)] >> (p & 7) & 1 }
	run, top := v.signRun(), uint8(8*v.width-1)
	for k := range v.refs {
		same := true
		for i := range n {
			same = same && plane(v.refs[k].plane, i) == plane(top, i)
		}
		if k >= run && !same || k == run-1 && same && v.refs[k].plane+1 == v.refs[min(run, len(v.refs)-1)].plane {
			t.Fatalf("width %d: sign run from ref %d of %v", v.width, run, v.refs)
		}
	}
}
