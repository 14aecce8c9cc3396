package compress

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// A raw Snappy block: the length of its content (varint), then elements. The lowest two bits of the
// first byte of an element, its tag, are its kind. Integers are little-endian. Source: Snappy's
// format_description.txt.
//
//	kind  element
//	0     literal: length−1 in 6 bits, or, if these are 60 to 63, in 1 to 4 bytes; then the bytes
//	1     copy: length−4 in 3 bits, offset in 3 bits (the highest) and 1 byte
//	2     copy: length−1 in 6 bits, offset in 2 bytes
//	3     copy: length−1 in 6 bits, offset in 4 bytes
//
// "abab": 04 04 61 62 06 02 00
const (
	snappyKind        = 3  // mask of the tag; file format: never change
	snappyLiteral     = 0  // file format: never change
	snappyLongLiteral = 60 // file format: never change
	snappyMostBytes   = 4  // after a tag; file format: never change
)

const (
	snappyNear = 32 // copies from fewer bytes before are not for snappyFast
	snappyMost = 64 // bytes of an element of snappyFast, at most
)

var (
	// snappyElements has the length of each element, and from the 9th bit on the bits of the offset
	// that the tag contains. A literal has the offset snappyNear, a long one 0.
	snappyElements [256]uint32
	// snappySizes has, for each tag, the bytes of its element, without the bytes of a long literal.
	snappySizes   [256]uint8
	snappyOffsets = [...]uint32{0, 1<<8 - 1, 1<<16 - 1, 1<<32 - 1} // masks of the offset after the tag
)

func init() {
	for tag := range snappyElements {
		high := uint32(tag >> 2)
		length, offset, size := high+1, uint32(0), uint8(1)
		switch tag & snappyKind {
		case snappyLiteral:
			if high >= snappyLongLiteral {
				break
			}
			offset, size = snappyNear, uint8(1+length)
		case 1:
			length, offset, size = high&7+4, high>>3<<8, 1+1
		case 2:
			size = 1 + 2
		case 3:
			size = 1 + 4
		}
		snappyElements[tag], snappySizes[tag] = length|offset<<8, size
	}
}

var errSnappy = fault.Corruptf("compress: snappy: malformed")

// UnpackText unpacks a raw Snappy block, in the memory of dst if that is large enough for the
// content and the block. It refuses also the blocks that SnappyRepeats reports.
//
// In compressed text, literals and copies follow each other in no order. The library's decoder
// branches on them, which the CPU cannot predict, and takes 1.5 times as long. Here input and
// output are in one buffer, so that both are copies, from places that are computed without a
// branch. Of numbers and dates, where literals and copies alternate, this takes up to twice as long
// as the library.
func UnpackText(dst, src []byte) ([]byte, error) {
	length, header := binary.Uvarint(src)
	if header <= 0 || header > binary.MaxVarintLen32 || length > uint64(Snappy.MaxRatio()*len(src)) {
		return nil, errSnappy
	}
	n := int(length)
	size := n + len(src) - header
	if size > cap(dst) {
		dst = make([]byte, size)
	}
	b := dst[:size]
	copy(b[n:], src[header:])
	for d, s := 0, n; ; {
		d, s = snappyFast(b, d, n, s)
		if s == size && d == n {
			return b[:n], nil
		}
		var ok bool
		if d, s, ok = snappyNext(b, d, n, s); !ok {
			return nil, errSnappy
		}
	}
}

// snappyFast unpacks elements from b[s:] to b[d:n], and returns new d and s. It ends before an
// element that is a long literal, or a copy from nearby or from before the start, and near the ends
// of input and output.
func snappyFast(b []byte, d, n, s int) (int, int) {
	if d < snappyNear {
		return d, s
	}
	for end, srcEnd := n-snappyMost, len(b)-1-snappyMost; d <= end && s <= srcEnd; {
		// The next element is found with two loads, of the tag and of its size. All else the CPU
		// does meanwhile, if nothing here is a branch that it cannot predict.
		at, tag := s, b[s]
		s += int(snappySizes[tag])
		e := snappyElements[tag]
		offset := int(binary.LittleEndian.Uint32(b[at+1:])&snappyOffsets[tag&snappyKind] + e>>8)
		if uint(offset-snappyNear) > uint(d-snappyNear) {
			return d, at
		}
		literal := (int(tag&snappyKind) - 1) >> 63 // −1 for a literal, else 0
		from := d - offset + literal&(at+1-d+snappyNear)
		to := (*[snappyMost]byte)(b[d : d+snappyMost])
		source := (*[snappyMost]byte)(b[from : from+snappyMost])
		*(*[16]byte)(to[:]) = *(*[16]byte)(source[:])
		*(*[16]byte)(to[16:]) = *(*[16]byte)(source[16:])
		length := int(uint8(e))
		d += length
		if length > snappyNear {
			*(*[16]byte)(to[32:]) = *(*[16]byte)(source[32:])
			*(*[16]byte)(to[48:]) = *(*[16]byte)(source[48:])
		}
	}
	return d, s
}

// snappyNext unpacks any element from b[s:] to b[d:n], and returns new d and s.
func snappyNext(b []byte, d, n, s int) (_, _ int, ok bool) {
	if s == len(b) {
		return d, s, false
	}
	tag := b[s]
	s++
	length, more := int(uint8(snappyElements[tag])), 0 // bytes after the tag
	switch kind := int(tag & snappyKind); {
	case kind != snappyLiteral:
		more = int(snappySizes[tag]) - 1
	case tag>>2 >= snappyLongLiteral:
		more = int(tag>>2) - snappyLongLiteral + 1
	}
	if more > len(b)-s {
		return d, s, false
	}
	var field [snappyMostBytes]byte
	copy(field[:], b[s:s+more])
	number := int(binary.LittleEndian.Uint32(field[:]))
	s += more
	if tag&snappyKind == snappyLiteral {
		if more > 0 {
			length = number + 1
		}
		if length > n-d || length > len(b)-s {
			return d, s, false
		}
		copy(b[d:], b[s:s+length])
		return d + length, s + length, true
	}
	offset := number + int(snappyElements[tag]>>8)
	if offset == 0 || offset > d || length > n-d {
		return d, s, false
	}
	for end := d + length; d < end; d++ {
		b[d] = b[d-offset]
	}
	return d, s, true
}
