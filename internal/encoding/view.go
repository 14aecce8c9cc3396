package encoding

import (
	"bytes"
	"encoding/binary"
)

// A chunk's bits are stored in rows, here called planes: plane i contains bit i of every cell (see
// transpose.go). A view lists the planes of a chunk, so that cells can be compared, added up and
// decoded from where the planes are: in the LZ4 stream if it contains them whole, otherwise in the
// unpacked rows.

// maxPlanes is the number of planes of the widest cells.
const maxPlanes = 8 * maxWidth

// planeView lists the planes of consecutive cells of one chunk: which of them are constant, and
// where the others are. It aliases base and refs and changes neither.
type planeView struct {
	base  []byte     // the chunk's stream, or its unpacked rows
	row   int        // bytes of a plane: cells / 8
	width int        // bytes of a cell, as stored; there are 8·width planes
	ones  uint128    // bit i: plane i is all ones
	refs  []planeRef // the planes that are neither all zeros nor all ones, ascending

	visited bool // compare or split has visited planes in refs

	// offsets has the offsets in payload of a run of chunks with the same planes. Their part of the
	// selection follows the first chunk's. It is nil if the view has only one chunk.
	offsets []uint32
	payload []byte
}

// planeRef is the position of one plane. Adjacent planes that are equal may share a position.
type planeRef struct {
	at    uint16 // offset in base; a stream has at most 8226 bytes
	plane uint8
}

// viewRows returns the view of n cells whose unpacked rows are given. n is a positive multiple of
// 8. refs is memory for the result.
func viewRows(rows []byte, n, width int, refs *[maxPlanes]planeRef) planeView {
	row := n / 8
	rows = rows[:n*width]
	v := planeView{base: rows, row: row, width: width}
	k := 0
	var before uint64 // the first bytes of the plane before
	for i := 0; i < 8*width; i++ {
		at := i * row
		p := rows[at : at+row]
		word := load64(p)
		if word != 0 && word+1 != 1<<(8*min(row, 8)) {
			// The first bytes show that the plane is not constant.
		} else if i&7 == 0 && constantRow(rows[at:at+n]) {
			v.ones = v.ones.or(shift128(word&0xff, i))
			i += 7
			continue
		} else if constantRow(p) {
			v.ones = v.ones.or(shift128(word&1, i))
			continue
		}
		if k > 0 && word == before && int(refs[k-1].plane) == i-1 && bytes.Equal(p, rows[at-row:at]) {
			at = int(refs[k-1].at)
		}
		before = word
		refs[k] = planeRef{at: uint16(at), plane: uint8(i)}
		k++
	}
	v.refs = refs[:k]
	return v
}

// viewAllRows is viewRows without the search for constant and equal planes, for reads of few cells.
func viewAllRows(rows []byte, n, width int, refs *[maxPlanes]planeRef) planeView {
	for i := range 8 * width {
		refs[i] = planeRef{at: uint16(i * (n / 8)), plane: uint8(i)}
	}
	return planeView{base: rows[:n*width], row: n / 8, width: width, refs: refs[:8*width]}
}

// part returns the view of n cells of v from cell skip on, a multiple of 8. Bits of the planes
// beyond the n cells are arbitrary.
func (v planeView) part(skip, n int) planeView {
	if v.row = (n + 7) / 8; len(v.refs) > 0 { // otherwise base may be shorter than a plane
		v.base = v.base[skip/8:]
	}
	return v
}

// mixed returns a bit for each plane in refs.
func (v *planeView) mixed() (m uint128) {
	n := len(v.refs)
	if n == 0 {
		return m
	}
	first, last := v.refs[0].plane, v.refs[n-1].plane
	if last < 64 && int(last-first) == n-1 { // most views: small numbers, or a sign that repeats
		m.lo = allOnes >> (64 - n) << first
		return m
	}
	for _, r := range v.refs {
		m = m.or(bit128(int(r.plane)))
	}
	return m
}

// signRun returns the index of the ref from which on all planes up to the top are equal to the top
// plane: the cells, in two's complement, are extended from there. It returns len(v.refs) if the top
// plane is constant.
func (v *planeView) signRun() int {
	n := len(v.refs)
	if n == 0 || int(v.refs[n-1].plane) != 8*v.width-1 {
		return n
	}
	// Equal planes are adjacent, so that the refs with this position are the last ones.
	lo, hi, at := 0, n-1, v.refs[n-1].at
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v.refs[mid].at == at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// word returns the bits of 64 cells in a plane, from byte i of the plane on. Bits beyond the plane
// are arbitrary.
func (v *planeView) word(r planeRef, i int) uint64 {
	b := v.base[int(r.at)+i:]
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return load64(b)
}

// cell returns cell i. The bits above the stored width are 0.
func (v *planeView) cell(i int) (c uint128) {
	c = v.ones
	for _, r := range v.refs {
		c = c.or(shift128(uint64(v.base[int(r.at)+i>>3]>>(i&7)&1), int(r.plane)))
	}
	return c
}
