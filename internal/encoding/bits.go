package encoding

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
)

// load64 reads a little-endian word from the front of b. If b is shorter, the missing bytes are 0.
func load64(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	var w uint64
	for i := len(b) - 1; i >= 0; i-- {
		w = w<<8 | uint64(b[i])
	}
	return w
}

// lowBits returns a mask of the low n bits, n in 0 … 64.
func lowBits(n int) uint64 { return 1<<uint(n) - 1 }

// orBits sets the bits in [at, at+n) of dst that are 1 in the first n bits of src, lowest bit of a
// byte first. src has at least n bits.
func orBits(dst batch.Bitmap, at int, src []byte, n int) {
	for i := 0; i < n; i += 64 {
		w := load64(src[i/8:])
		if n-i < 64 {
			w &= lowBits(n - i)
		}
		word, shift := (at+i)>>6, uint(at+i)&63
		dst[word] |= w << shift
		// The word may straddle two words of dst; if the second is beyond the end, w has no bits
		// for it.
		if high := w >> 1 >> (63 - shift); high != 0 {
			dst[word+1] |= high
		}
	}
}

// andBits clears the bits in [at, at+n) of dst that are 0 in the first n bits of keep.
func andBits(dst batch.Bitmap, at int, keep batch.Bitmap, n int) {
	for i := 0; i < n; i += 64 {
		drop := ^keep[i>>6]
		if n-i < 64 {
			drop &= lowBits(n - i)
		}
		word, shift := (at+i)>>6, uint(at+i)&63
		dst[word] &^= drop << shift
		if high := drop >> 1 >> (63 - shift); high != 0 {
			dst[word+1] &^= high
		}
	}
}

// expandBits writes n bits of src, starting with bit skip, as n bytes of 0 or 1.
func expandBits(dst []byte, src []byte, skip, n int) {
	for i := range min(n, -skip&7) {
		dst[i] = src[(skip+i)>>3] >> (uint(skip+i) & 7) & 1
	}
	done := min(n, -skip&7)
	dst, src, n = dst[done:n], src[(skip+done)>>3:], n-done
	for ; n >= 8; n -= 8 {
		binary.LittleEndian.PutUint64(dst, spreadBits(src[0]))
		dst, src = dst[8:], src[1:]
	}
	for i := range n {
		dst[i] = src[0] >> uint(i) & 1
	}
}

// spreadBits returns a word whose byte i is bit i of b.
//
// The product puts a copy of b into each byte; the mask keeps bit i in byte i; adding 7f carries
// any remaining bit into bit 7 (without overflow into the next byte: 80 + 7f is ff), and bits 7 are
// moved to bits 0.
func spreadBits(b byte) uint64 {
	w := uint64(b) * 0x0101010101010101 & 0x8040201008040201
	return (w + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101
}

// gatherBits is the inverse of spreadBits: bit i of the result is bit 0 of byte i.
//
// The multiplication moves bit 8i to bit 56+i: 8i + (56 − 7i). No two products have a bit in
// common, so there are no carries.
func gatherBits(w uint64) byte {
	return byte(w & 0x0101010101010101 * 0x0102040810204080 >> 56)
}

// fill repeats cell over dst, whose length is a multiple of cell's.
func fill(dst, cell []byte) {
	if len(dst) == 0 {
		return
	}
	// Each pass doubles the filled part.
	for n := copy(dst, cell); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
