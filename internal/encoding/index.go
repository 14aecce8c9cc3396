package encoding

import (
	"encoding/binary"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// IndexRows is the greatest number of indexes that are made at once.
const IndexRows = 2048

// Index makes a 16-bit integer for each of some rows, from the values of several columns that are
// small integers: a column gets some of the bits. It takes the planes of these bits from where they
// are stored, so that one conversion of 16 planes to integers serves all columns. The zero Index
// has no columns; all integers are 0. Not safe for concurrent use.
type Index struct {
	octets [2]octet
	wide   bool // some bit above the lowest 8 is used
	mask   [IndexRows / 8]byte
	cells  [2 * IndexRows]byte
	views  []*indexView // one for each column
	used   int
}

// indexView is the view of the chunk that was used last for a column. Often the next rows are in
// the same chunk, which then need not be decompressed again.
type indexView struct {
	block *shuffled
	chunk int
	view  planeView
	buf   viewBuffer
}

// Release forgets all blocks.
func (x *Index) Release() {
	for _, v := range x.views {
		v.block, v.view = nil, planeView{}
	}
}

// Reset removes all columns.
func (x *Index) Reset() {
	for k := range x.octets {
		for j := range x.octets[k] {
			x.octets[k][j] = &zeroRow[0]
		}
	}
	x.wide, x.used = false, 0
}

// IndexSpan returns how many of values [from, from+n) of b can be added to an Index at once, 0 if
// they must be added in another way.
func IndexSpan(b Block, from, n int) int {
	s := indexable(b)
	if s == nil || from&7 != 0 {
		return 0
	}
	return s.restOfChunk(from, min(n, IndexRows))
}

// indexable returns the integers of b, or the codes, nil if b has neither.
func indexable(b Block) *shuffled {
	switch b := b.(type) {
	case *shuffled:
		if physical := b.typ.Physical(); float(b.typ) || physical == schema.Int128 {
			return nil
		}
		return b
	case *dictBlock:
		return &b.codes
	}
	return nil
}

// Add makes the lowest bits of values [from, from+n) of b, which IndexSpan allows, bits [shift,
// shift+bits) of the indexes. It returns false, and has added nothing, if there is a cell, perhaps
// a padding cell, that has more bits.
func (x *Index) Add(b Block, from, n, shift, bits int) (ok bool, err error) {
	if x.used == len(x.views) {
		x.views = append(x.views, new(indexView))
	}
	v, err := x.views[x.used].part(indexable(b), from, n)
	if err != nil {
		return false, err
	}
	refs := v.refs
	if v.ones.hi != 0 || v.ones.lo>>bits != 0 {
		return false, nil
	}
	for len(refs) > 0 && int(refs[len(refs)-1].plane) >= bits {
		at := refs[len(refs)-1].at
		if p := v.base[at:][:v.row]; p[0] != 0 || !constantRow(p) { // an LZ4 block ends with literals, also of zeros
			return false, nil
		}
		refs = refs[:len(refs)-1]
	}
	for i := range bits {
		if v.ones.lo>>i&1 != 0 {
			x.set(shift+i, &oneRow[0])
		}
	}
	for _, r := range refs {
		x.set(shift+int(r.plane), unsafe.SliceData(v.base[r.at:][:v.row]))
	}
	x.used++
	return true, nil
}

// part returns the view of values [from, from+n) of b.
func (x *indexView) part(b *shuffled, from, n int) (v planeView, err error) {
	if chunk := from >> b.shift; x.block != b || x.chunk != chunk {
		x.block = nil
		if x.view, err = b.view(chunk, &x.buf); err != nil {
			return v, err
		}
		x.block, x.chunk = b, chunk
	}
	return x.view.part(from&(1<<b.shift-1), n), nil
}

// AddMissing makes bit i of n indexes 1 for the rows whose bits in sel are 0.
func (x *Index) AddMissing(sel batch.Bitmap, n, i int) {
	for k, word := range sel[:(n+63)/64] {
		binary.LittleEndian.PutUint64(x.mask[8*k:], ^word)
	}
	x.set(i, &x.mask[0])
}

func (x *Index) set(i int, plane *byte) {
	x.octets[i>>3][i&7] = plane
	x.wide = x.wide || i >= 8
}

// Fill sets dst to the indexes. All columns have as many values as dst, up to IndexRows.
func (x *Index) Fill(dst []uint16) {
	row := (len(dst) + 7) / 8
	low, high := x.cells[:8*row], x.cells[8*row:][:8*row]
	x.octets[0].cells(low, row)
	if x.wide {
		x.octets[1].cells(high, row)
	} else {
		clear(high)
	}
	done := join16(dst, x.cells[:])
	for i := done; i < len(dst); i++ {
		dst[i] = uint16(low[i]) | uint16(high[i])<<8
	}
}

// cells writes the bytes of 8·row cells to dst.
func (o *octet) cells(dst []byte, row int) {
	done := o.cellsWide(dst, row)
	var w laneWords
	var lane [laneCells]byte
	for base := done; base < row; base += laneBytes {
		o.load(w[:], base, row, 1)
		if 8*(row-base) >= laneCells {
			storeCells(dst[8*base:], &w, 1)
			continue
		}
		storeCells(lane[:], &w, 1)
		copy(dst[8*base:], lane[:])
	}
}
