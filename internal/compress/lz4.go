package compress

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"

	"github.com/oribi-db/oribi/internal/fault"
)

// maxLZ4Input is the longest buffer that the C library packs (LZ4_MAX_INPUT_SIZE).
const maxLZ4Input = 0x7e000000

// An LZ4 block is a series of sequences. All except the last have a match: bytes that are copied
// from the output, offset bytes back. l is the number of literals, m the length of the match.
//
//	offset  width     field    meaning
//	0       1         token    high nibble: min(l, 15); low nibble: min(m − 4, 15), or 0 in the
//	                           last sequence
//	1       0 or more more     only for l ≥ 15: l − 15 as bytes ff and one byte below ff
//	…       l         literals
//	…       2         offset   1 to 65535; may be less than m; absent from the last sequence
//	…       0 or more more     only for m − 4 ≥ 15: m − 19 as bytes ff and one byte below ff
//
// Two bytes 61 62: 20 61 62. 15 bytes begin f0 00. 20 bytes 00 that end with five literals: 1a 00
// 01 00 50 00 00 00 00 00.
//
// Kudu's reader requires that the last 5 bytes of the output are literals, and that a match begins
// at least 12 bytes before the end of the output.
const (
	literalNibble = 4    // shift of the literal length in the token; file format: never change
	longLength    = 15   // nibble that says "more bytes of length follow"; file format: never change
	moreLength    = 0xff // length byte that says the same; file format: never change

	LZ4MinMatch     = 4  // bytes of the shortest match; file format: never change
	LZ4LastLiterals = 5  // file format: never change
	LZ4LastMatch    = 12 // file format: never change
)

var lz4Compressors = sync.Pool{New: func() any { return new(lz4.CompressorCCompat) }}

// LZ4CompressChunk appends src, of at most 0x7e000000 bytes, to dst as one LZ4 block, and returns
// it. The bytes are identical to the C library's. There is always a block, for incompressible bytes
// too: the chunks inside a bitshuffle cblock have no stored form. Source: cfile spec §4.5.
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
		return AppendLZ4Sequence(dst, src, 0, 0)
	}
	return dst[:n+packed]
}

// hcDepth is how many earlier places of the same four bytes LZ4 HC compares.
const hcDepth = 64

var lz4HCs = sync.Pool{New: func() any { return &lz4.CompressorHC{Level: hcDepth} }}

// lz4CompressHard is LZ4CompressChunk with the longest match of each position, which takes more
// time. The bytes may differ from every other compressor's.
func lz4CompressHard(dst, src []byte) []byte {
	bound := lz4.CompressBlockBound(len(src))
	dst = slices.Grow(dst, bound)
	n := len(dst)
	c := lz4HCs.Get().(*lz4.CompressorHC)
	packed, err := c.CompressBlock(src, dst[n:n+bound])
	lz4HCs.Put(c)
	if err != nil || packed == 0 {
		return LZ4CompressChunk(dst, src)
	}
	return dst[:n+packed]
}

// AppendLZ4Sequence appends a sequence to an LZ4 block. match is the length of the match, at least
// LZ4MinMatch; 0 makes it the last sequence. The caller observes the rules for the end of a block.
func AppendLZ4Sequence(dst, literals []byte, offset, match int) []byte {
	n, m := len(literals), max(match-LZ4MinMatch, 0)
	dst = append(dst, byte(min(n, longLength)<<literalNibble|min(m, longLength)))
	dst = appendMoreLength(dst, n)
	dst = append(dst, literals...)
	if match == 0 {
		return dst
	}
	return appendMoreLength(append(dst, byte(offset), byte(offset>>8)), m)
}

// appendMoreLength appends what a nibble does not contain of a length.
func appendMoreLength(dst []byte, n int) []byte {
	if n < longLength {
		return dst
	}
	for n -= longLength; n >= moreLength; n -= moreLength {
		dst = append(dst, moreLength)
	}
	return append(dst, byte(n))
}

// LZ4Sequence is one sequence of an LZ4 block: the literals are bytes [From, To) of the block. The
// last sequence has no match; then Match is 0.
type LZ4Sequence struct{ From, To, Offset, Match, End int }

// ParseLZ4Sequence returns the sequence at byte at of a block, which ends at byte End. It reports
// whether the block contains all of it. It does not check Offset.
func ParseLZ4Sequence(block []byte, at int) (s LZ4Sequence, ok bool) {
	if at >= len(block) {
		return s, false
	}
	token := int(block[at])
	at++
	n := token >> literalNibble
	if n == longLength {
		if n, at = moreLengthAt(block, at); at == 0 {
			return s, false
		}
	}
	if n > len(block)-at {
		return s, false
	}
	s.From, s.To, s.End = at, at+n, at+n
	m := token & longLength
	if s.End == len(block) {
		return s, m == 0
	}
	if len(block)-s.End < 2 {
		return s, false
	}
	s.Offset = int(block[s.End]) | int(block[s.End+1])<<8
	s.End += 2
	if m == longLength {
		if m, s.End = moreLengthAt(block, s.End); s.End == 0 {
			return s, false
		}
	}
	s.Match = m + LZ4MinMatch
	return s, true
}

// moreLengthAt returns a length whose nibble is 15 and the end of its other bytes, or 0 if the
// block ends before. The length is less than 255 times the block's.
func moreLengthAt(block []byte, at int) (n, end int) {
	n = longLength
	for len(block)-at >= 8 && binary.LittleEndian.Uint64(block[at:]) == ^uint64(0) {
		n += 8 * moreLength
		at += 8
	}
	for ; at < len(block); at++ {
		n += int(block[at])
		if block[at] != moreLength {
			return n, at + 1
		}
	}
	return 0, 0
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
