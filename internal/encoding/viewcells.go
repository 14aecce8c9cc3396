package encoding

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// zeroRow and oneRow are the constant planes. Planes of fewer bytes are parts of them.
var zeroRow, oneRow = make([]byte, chunkBytes/8), bytes.Repeat([]byte{0xff}, chunkBytes/8)

// octet is the planes of one byte of the cells, from bit 0 on: pointers to row bytes each.
type octet [8]*byte

// octet sets o to the planes of byte k of the cells if not all of them are constant, and returns
// the refs of the bytes after k. refs are those from byte k on. Otherwise it returns the value of
// the byte in all cells, and mixed is false.
func (v *planeView) octet(o *octet, k int, refs []planeRef) (rest []planeRef, constant byte, mixed bool) {
	base, row, end := v.base, v.row, 8*k+8
	if len(refs) >= 8 && int(refs[7].plane) == end-1 { // no plane is constant
		for j, r := range (*[8]planeRef)(refs) {
			o[j] = unsafe.SliceData(base[r.at:][:row])
		}
		return refs[8:], 0, true
	}
	constant = byte(v.ones.word(8*k) >> (8 * (k & 7)))
	if len(refs) == 0 || int(refs[0].plane) >= end {
		return refs, constant, false
	}
	for j := range o {
		if constant>>j&1 != 0 {
			o[j] = &oneRow[0]
		} else {
			o[j] = &zeroRow[0]
		}
	}
	for len(refs) > 0 && int(refs[0].plane) < end {
		o[refs[0].plane&7] = unsafe.SliceData(base[refs[0].at:][:row])
		refs = refs[1:]
	}
	return refs, 0, true
}

// cells writes all cells of v to dst, 8·row·width bytes.
func (v *planeView) cells(dst []byte) {
	if !v.cellsWide(dst) {
		v.someCells(dst, 0)
	}
}

// someCells writes cells of v to dst, from a given one on, as many as fit. It converts the lanes
// that contain them, 64 cells each, with 64-bit words, on every machine.
func (v *planeView) someCells(dst []byte, from int) {
	width := v.width
	var w laneWords
	var octets [maxWidth]octet
	var mixed [maxWidth]uint8 // bytes of the cells that have an octet
	n := 0
	for k, refs := 0, v.refs; k < width; k++ {
		var c byte
		var ok bool
		if refs, c, ok = v.octet(&octets[n], k, refs); ok {
			mixed[n] = uint8(k)
			n++
			continue
		}
		for j := range 8 {
			w[j*width+k] = uint64(c) * 0x0101010101010101
		}
	}
	// If bytes 4 to 7 are all constant, half of the second step can be omitted.
	narrow := width == 8 && (n == 0 || mixed[n-1] < 4)
	high := w[4]&maskBytes4 | w[5]&maskBytes5 | w[6]&maskBytes6 | w[7]&maskBytes7
	var lane [laneCells * maxWidth]byte
	skip := from % laneCells * width
	for base := from / laneCells * laneBytes; len(dst) > 0; base += laneBytes {
		for i := range n {
			octets[i].load(w[mixed[i]:], base, v.row, width)
		}
		switch whole := skip == 0 && len(dst) >= laneCells*width; {
		case whole && narrow:
			storeNarrow((*[laneCells * 8]byte)(dst), &w, high)
			dst = dst[laneCells*8:]
		case whole:
			storeCells(dst, &w, width)
			dst = dst[laneCells*width:]
		default:
			// Bits of the last words beyond their rows become cells that are not copied.
			storeCells(lane[:], &w, width)
			dst, skip = dst[copy(dst, lane[skip:laneCells*width]):], 0
		}
	}
}

// load does the first step for 8 bytes of each plane, or those that are left, starting at byte
// base: it sets every width-th word of w.
func (o *octet) load(w []uint64, base, row, width int) {
	var a0, a1, a2, a3, a4, a5, a6, a7 uint64
	if base+laneBytes <= row {
		a0, a1, a2, a3 = wordAt(o[0], base, row), wordAt(o[1], base, row), wordAt(o[2], base, row),
			wordAt(o[3], base, row)
		a4, a5, a6, a7 = wordAt(o[4], base, row), wordAt(o[5], base, row), wordAt(o[6], base, row),
			wordAt(o[7], base, row)
	} else {
		a0, a1, a2, a3 = lastWord(o[0], base, row), lastWord(o[1], base, row), lastWord(o[2], base, row),
			lastWord(o[3], base, row)
		a4, a5, a6, a7 = lastWord(o[4], base, row), lastWord(o[5], base, row), lastWord(o[6], base, row),
			lastWord(o[7], base, row)
	}
	a0, a1, a2, a3, a4, a5, a6, a7 = transposeBits(a0, a1, a2, a3, a4, a5, a6, a7)
	w = w[:7*width+1]
	w[0], w[width], w[2*width], w[3*width] = a0, a1, a2, a3
	w[4*width], w[5*width], w[6*width], w[7*width] = a4, a5, a6, a7
}

// wordAt returns bytes [i, i+8) of a plane of row bytes.
func wordAt(plane *byte, i, row int) uint64 {
	return binary.LittleEndian.Uint64(unsafe.Slice(plane, row)[i:])
}

// lastWord returns the bytes of a plane of row bytes from byte i on, fewer than 8.
func lastWord(plane *byte, i, row int) uint64 { return load64(unsafe.Slice(plane, row)[i:]) }
