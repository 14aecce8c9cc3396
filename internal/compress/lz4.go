package compress

import (
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"

	"github.com/oribi-db/oribi/internal/fault"
)

// maxLZ4Input is the longest buffer that the C library packs (LZ4_MAX_INPUT_SIZE).
const maxLZ4Input = 0x7e000000

// A block of literals alone: what an LZ4 stream is when no match was found. n is the length.
//
//	offset  width     field    meaning
//	0       1         token    high nibble: n, or 15 for 15 and more; low nibble 0
//	1       0 or more more     only for n ≥ 15: n − 15 as bytes ff and one byte below ff
//	…       n         literals
//
// Two bytes 61 62: 20 61 62. 15 bytes begin f0 00.
const (
	literalNibble = 4    // shift of the literal length in the token; file format: never change
	longLength    = 15   // nibble that says "more bytes of length follow"; file format: never change
	moreLength    = 0xff // length byte that says the same; file format: never change
)

var lz4Compressors = sync.Pool{New: func() any { return new(lz4.CompressorCCompat) }}

// LZ4CompressChunk appends src, of at most 0x7e000000 bytes, to dst as one LZ4 block, and returns
// it. The bytes are those of the C library. There is always a block, for incompressible bytes too:
// the chunks inside a bitshuffle cblock have no stored form. Source: cfile spec §4.5.
func LZ4CompressChunk(dst, src []byte) []byte {
	bound := lz4.CompressBlockBound(len(src))
	dst = slices.Grow(dst, bound)
	n := len(dst)
	c := lz4Compressors.Get().(*lz4.CompressorCCompat)
	packed, err := c.CompressBlock(src, dst[n:n+bound])
	lz4Compressors.Put(c)
	if err != nil || packed == 0 {
		// The library says that this cannot happen with a dst of this length. Should it, a
		// longer block is better than a flush that cannot end.
		return appendLiteralBlock(dst, src)
	}
	return dst[:n+packed]
}

// appendLiteralBlock appends src as an LZ4 block that holds no match.
func appendLiteralBlock(dst, src []byte) []byte {
	n := len(src)
	dst = append(dst, byte(min(n, longLength)<<literalNibble))
	if n >= longLength {
		for n -= longLength; n >= moreLength; n -= moreLength {
			dst = append(dst, moreLength)
		}
		dst = append(dst, byte(n))
	}
	return append(dst, src...)
}

// LZ4DecompressExact unpacks the LZ4 block src into dst, which must have the exact length of the
// result. After an error, fault.ErrCorrupt, the content of dst is undefined.
func LZ4DecompressExact(dst, src []byte) error {
	if len(dst) == 0 {
		// The library's assembly writes to address 0 if dst is nil and src begins with literals.
		// The only block of no bytes is a token without literals.
		if len(src) != 1 || src[0] != 0 {
			return fault.Corruptf("compress: lz4: %d bytes do not unpack to an empty block", len(src))
		}
		return nil
	}
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return fault.Corruptf("compress: lz4: %v", err)
	}
	if n != len(dst) || len(src) == 0 {
		return fault.Corruptf("compress: lz4: %d bytes in %d, want %d", n, len(src), len(dst))
	}
	return nil
}
