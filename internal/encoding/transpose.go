package encoding

import "encoding/binary"

// Bitshuffle converts N cells of B bytes, N a multiple of 8, into 8·B rows of N bits: row 8k+b
// contains bit b of byte k of every cell, cell e in bit e mod 8 of byte e/8 of the row. A row is
// also called a plane, and the eight planes of one byte of the cells an octet. If numbers are
// small, the planes of their high bits are all 0, or all ff.
//
// 64 cells are converted at a time, in 64-bit words, in two steps, each of which is its own
// inverse:
//
//	planes                              words of an octet                    cells
//	word b of octet k:   transposeBits  word j: byte g is     transposeBytes  word: the bytes of one
//	bits b of byte k,    ───────────▶   byte k of cell 8g+j   ────────────▶   or more cells in order
//	for 64 cells         ◀───────────                         ◀────────────
//
// transposeBits transposes eight 8×8 bit matrices at once, one in each byte of its eight words.
// transposeBytes transposes one 8×8 byte matrix. The input of the second step is chosen so that
// cells come out in order: cell 8g+j of B bytes is at bytes (8g+j)·B of the output, so its bytes
// are those 8g·B + (j·B + k), and the words w[j·B+k] of planes k, taken by eights, come out as
// words g·B + m for the m-th eight. So w is kept in this order.
const (
	laneCells = 64
	laneBytes = laneCells / 8 // of a row
	maxWidth  = 16
)

// maskLow32 to maskBits1 select the low half of each 64, 32, 16, 8, 4 and 2 bits.
const (
	maskLow32 = 0x00000000ffffffff
	maskLow16 = 0x0000ffff0000ffff
	maskLow8  = 0x00ff00ff00ff00ff
	maskBits4 = 0x0f0f0f0f0f0f0f0f
	maskBits2 = 0x3333333333333333
	maskBits1 = 0x5555555555555555
)

// swap4, swap2 and swap1 exchange the high halves of a's nibbles, pairs, bits with the low halves
// of b's.

func swap4(a, b uint64) (uint64, uint64) {
	t := (a>>4 ^ b) & maskBits4
	return a ^ t<<4, b ^ t
}

func swap2(a, b uint64) (uint64, uint64) {
	t := (a>>2 ^ b) & maskBits2
	return a ^ t<<2, b ^ t
}

func swap1(a, b uint64) (uint64, uint64) {
	t := (a>>1 ^ b) & maskBits1
	return a ^ t<<1, b ^ t
}

// swap32, swap16 and swap8 do the same with halves of 64, 32 and 16 bits.

func swap32(a, b uint64) (uint64, uint64) {
	return a&maskLow32 | b<<32, a>>32 | b&^maskLow32
}

func swap16(a, b uint64) (uint64, uint64) {
	t := (a>>16 ^ b) & maskLow16
	return a ^ t<<16, b ^ t
}

func swap8(a, b uint64) (uint64, uint64) {
	t := (a>>8 ^ b) & maskLow8
	return a ^ t<<8, b ^ t
}

// transposeBits exchanges bit j of byte g of word b with bit b of byte g of word j.
func transposeBits(a0, a1, a2, a3, a4, a5, a6, a7 uint64) (uint64, uint64, uint64, uint64, uint64, uint64,
	uint64, uint64) {
	a0, a4 = swap4(a0, a4)
	a1, a5 = swap4(a1, a5)
	a2, a6 = swap4(a2, a6)
	a3, a7 = swap4(a3, a7)
	a0, a2 = swap2(a0, a2)
	a1, a3 = swap2(a1, a3)
	a4, a6 = swap2(a4, a6)
	a5, a7 = swap2(a5, a7)
	a0, a1 = swap1(a0, a1)
	a2, a3 = swap1(a2, a3)
	a4, a5 = swap1(a4, a5)
	a6, a7 = swap1(a6, a7)
	return a0, a1, a2, a3, a4, a5, a6, a7
}

// transposeBytes exchanges byte j of word i with byte i of word j.
func transposeBytes(a0, a1, a2, a3, a4, a5, a6, a7 uint64) (uint64, uint64, uint64, uint64, uint64, uint64,
	uint64, uint64) {
	a0, a4 = swap32(a0, a4)
	a1, a5 = swap32(a1, a5)
	a2, a6 = swap32(a2, a6)
	a3, a7 = swap32(a3, a7)
	a0, a2 = swap16(a0, a2)
	a1, a3 = swap16(a1, a3)
	a4, a6 = swap16(a4, a6)
	a5, a7 = swap16(a5, a7)
	a0, a1 = swap8(a0, a1)
	a2, a3 = swap8(a2, a3)
	a4, a5 = swap8(a4, a5)
	a6, a7 = swap8(a6, a7)
	return a0, a1, a2, a3, a4, a5, a6, a7
}

// laneWords contains the words between the two steps, word j of octet k at j·width + k.
type laneWords [8 * maxWidth]uint64

// The bytes of an 8-byte cell that come from octets 4 to 7.
const (
	maskBytes4 = 0xff << 32
	maskBytes5 = 0xff << 40
	maskBytes6 = 0xff << 48
	maskBytes7 = 0xff << 56
)

// storeCells does the second step and writes 64 cells.
func storeCells(out []byte, w *laneWords, width int) {
	out = out[:laneCells*width]
	step := 8 * width
	for m := range width {
		a := (*[8]uint64)(w[8*m:])
		a0, a1, a2, a3, a4, a5, a6, a7 := transposeBytes(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])
		o := out[8*m:]
		binary.LittleEndian.PutUint64(o, a0)
		binary.LittleEndian.PutUint64(o[step:], a1)
		binary.LittleEndian.PutUint64(o[2*step:], a2)
		binary.LittleEndian.PutUint64(o[3*step:], a3)
		binary.LittleEndian.PutUint64(o[4*step:], a4)
		binary.LittleEndian.PutUint64(o[5*step:], a5)
		binary.LittleEndian.PutUint64(o[6*step:], a6)
		binary.LittleEndian.PutUint64(o[7*step:], a7)
	}
}

// storeNarrow is storeCells for cells of 8 bytes whose upper four bytes are in high.
func storeNarrow(out *[64 * 8]byte, w *laneWords, high uint64) {
	for m := range 8 {
		a := (*[4]uint64)(w[8*m:])
		a0, a2 := swap16(a[0], a[2])
		a1, a3 := swap16(a[1], a[3])
		a0, a1 = swap8(a0, a1)
		a2, a3 = swap8(a2, a3)
		o := out[8*m:]
		binary.LittleEndian.PutUint64(o, a0&maskLow32|high)
		binary.LittleEndian.PutUint64(o[64:], a1&maskLow32|high)
		binary.LittleEndian.PutUint64(o[128:], a2&maskLow32|high)
		binary.LittleEndian.PutUint64(o[192:], a3&maskLow32|high)
		binary.LittleEndian.PutUint64(o[256:], a0>>32|high)
		binary.LittleEndian.PutUint64(o[320:], a1>>32|high)
		binary.LittleEndian.PutUint64(o[384:], a2>>32|high)
		binary.LittleEndian.PutUint64(o[448:], a3>>32|high)
	}
}

// shuffle converts n cells of the given width in src into rows in dst, both of n·width bytes. n is
// a multiple of 8.
func shuffle(dst, src []byte, n, width int) {
	row := n / 8
	var w laneWords
	set := seenBits(src, width)
	narrow := width == 8 && set[4]|set[5]|set[6]|set[7] == 0
	for base := 0; base < row; base += laneBytes {
		cells := src[base*8*width:]
		if len(cells) < laneCells*width {
			var last [laneCells * maxWidth]byte
			copy(last[:], cells)
			cells = last[:]
		}
		if narrow {
			loadNarrow(&w, (*[64 * 8]byte)(cells))
		} else {
			loadCells(&w, cells, width)
		}
		for k := range width {
			if set[k] != 0 {
				storeOctet(dst[k*8*row:(k+1)*8*row], &w, k, base, row, width)
			}
		}
	}
	for k := range width {
		if set[k] == 0 {
			clear(dst[k*8*row : (k+1)*8*row])
		}
	}
}

// seenBits returns, for each byte of a cell, the bits that are 1 in some cell of src.
func seenBits(src []byte, width int) (set [maxWidth]byte) {
	var or [maxWidth]byte // of 8 bytes, or of 16: a whole number of cells
	var lo, hi uint64
	for ; len(src) >= maxWidth; src = src[maxWidth:] {
		lo |= binary.LittleEndian.Uint64(src)
		hi |= binary.LittleEndian.Uint64(src[8:])
	}
	if len(src) >= 8 {
		lo |= binary.LittleEndian.Uint64(src)
	}
	binary.LittleEndian.PutUint64(or[:], lo)
	binary.LittleEndian.PutUint64(or[8:], hi)
	for i, b := range or {
		set[i%width] |= b
	}
	return set
}

// loadCells is the inverse of storeCells.
func loadCells(w *laneWords, cells []byte, width int) {
	cells = cells[:laneCells*width]
	step := 8 * width
	for m := range width {
		s := cells[8*m:]
		a := (*[8]uint64)(w[8*m:])
		a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7] = transposeBytes(
			binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[step:]),
			binary.LittleEndian.Uint64(s[2*step:]), binary.LittleEndian.Uint64(s[3*step:]),
			binary.LittleEndian.Uint64(s[4*step:]), binary.LittleEndian.Uint64(s[5*step:]),
			binary.LittleEndian.Uint64(s[6*step:]), binary.LittleEndian.Uint64(s[7*step:]))
	}
}

// loadNarrow is loadCells for cells of 8 bytes whose upper four bytes are 0. It computes the words
// of octets 0 to 3.
func loadNarrow(w *laneWords, cells *[64 * 8]byte) {
	for m := range 8 {
		s := cells[8*m:]
		a0 := uint64(binary.LittleEndian.Uint32(s)) | uint64(binary.LittleEndian.Uint32(s[256:]))<<32
		a1 := uint64(binary.LittleEndian.Uint32(s[64:])) | uint64(binary.LittleEndian.Uint32(s[320:]))<<32
		a2 := uint64(binary.LittleEndian.Uint32(s[128:])) | uint64(binary.LittleEndian.Uint32(s[384:]))<<32
		a3 := uint64(binary.LittleEndian.Uint32(s[192:])) | uint64(binary.LittleEndian.Uint32(s[448:]))<<32
		a0, a2 = swap16(a0, a2)
		a1, a3 = swap16(a1, a3)
		a := (*[4]uint64)(w[8*m:])
		a[0], a[1] = swap8(a0, a1)
		a[2], a[3] = swap8(a2, a3)
	}
}

// storeOctet is the inverse of the first step for octet k: 8 bytes of each of its planes, starting
// at byte base.
func storeOctet(octet []byte, w *laneWords, k, base, row, width int) {
	s := w[k:]
	a0, a1, a2, a3, a4, a5, a6, a7 := transposeBits(
		s[0], s[width], s[2*width], s[3*width], s[4*width], s[5*width], s[6*width], s[7*width])
	if row-base >= laneBytes {
		o := octet[base:]
		binary.LittleEndian.PutUint64(o, a0)
		binary.LittleEndian.PutUint64(o[row:], a1)
		binary.LittleEndian.PutUint64(o[2*row:], a2)
		binary.LittleEndian.PutUint64(o[3*row:], a3)
		binary.LittleEndian.PutUint64(o[4*row:], a4)
		binary.LittleEndian.PutUint64(o[5*row:], a5)
		binary.LittleEndian.PutUint64(o[6*row:], a6)
		binary.LittleEndian.PutUint64(o[7*row:], a7)
		return
	}
	var buf [8]byte
	for b, word := range [8]uint64{a0, a1, a2, a3, a4, a5, a6, a7} {
		binary.LittleEndian.PutUint64(buf[:], word)
		copy(octet[b*row+base:(b+1)*row], buf[:])
	}
}
