package encoding

import (
	"math/bits"

	"github.com/oribi-db/oribi/batch"
)

// A nullable column has values only for the rows that are present. CompressBits turns a selection
// of rows into a selection of values, ExpandBits a selection of values into a selection of rows:
//
//	rows that are present   1 0 1 1 0 1
//	selected rows           1 1 0 1 0 1     the NULL in row 1 has no value
//	selected values         1   0 1   1

// CompressBits writes the bits of src that have a 1 in mask to dst, back to back, and returns how
// many there are. The other bits of the last word are 0. src and mask have the same length. dst may
// be src, and has a word for each 64 bits written.
func CompressBits(dst, src, mask []uint64) (n int) {
	acc := uint64(0)
	for i, m := range mask {
		x, at, more := compressWord(src[i], m), n&63, bits.OnesCount64(m)
		acc |= x << at
		if n += more; at+more >= 64 {
			dst[n>>6-1] = acc
			acc = x >> 1 >> (63 - at)
		}
	}
	if n&63 != 0 {
		dst[n>>6] = acc
	}
	return n
}

// ExpandBits is the inverse: it writes the bits of src, one after the other, to the bits of dst
// that have a 1 in mask, and 0 to the others. dst and mask have the same length. src has a word for
// each 64 bits read.
func ExpandBits(dst, src, mask []uint64) {
	at := 0
	for i, m := range mask {
		n := bits.OnesCount64(m)
		if n == 0 {
			dst[i] = 0
			continue
		}
		x := src[at>>6] >> (at & 63)
		if at&63+n > 64 {
			x |= src[at>>6+1] << (-at & 63)
		}
		dst[i] = expandWord(x, m)
		at += n
	}
}

// CopyBits writes bits [at, at+n) of src to dst, from bit 0 on. The other bits of the last word are
// 0. dst has a word for each 64 bits. at may be negative; bits outside of src are 0.
func CopyBits(dst []uint64, src batch.Bitmap, at, n int) {
	if n == 0 {
		return
	}
	for i := range dst {
		dst[i] = bitsAt(src, at+64*i)
	}
	dst[len(dst)-1] &= allOnes >> (-n & 63)
}

// bitsAt returns 64 bits of m from bit at on. Bits outside of m are 0.
func bitsAt(m batch.Bitmap, at int) (w uint64) {
	i, shift := at>>6, uint(at)&63
	if i >= 0 && i < len(m) {
		w = m[i] >> shift
	}
	if i+1 < len(m) {
		w |= m[i+1] << 1 << (63 - shift)
	}
	return w
}

// compressRuns is compressWord for every machine. It takes time for each run of ones: there are few
// if rows are mostly present, or mostly NULL.
func compressRuns(x, m uint64) (out uint64) {
	for at := 0; m != 0; {
		skip := bits.TrailingZeros64(m)
		m, x = m>>skip, x>>skip
		n := bits.TrailingZeros64(^m)
		out |= x & lowBits(n) << at
		m, x, at = m>>n, x>>n, at+n
	}
	return out
}

// expandRuns is expandWord for every machine.
func expandRuns(x, m uint64) (out uint64) {
	for at := 0; m != 0; {
		skip := bits.TrailingZeros64(m)
		m, at = m>>skip, at+skip
		n := bits.TrailingZeros64(^m)
		out |= x & lowBits(n) << at
		m, x, at = m>>n, x>>n, at+n
	}
	return out
}
