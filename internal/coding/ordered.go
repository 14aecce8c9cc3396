package coding

import (
	"encoding/binary"
	"math/bits"
)

// A number as bytes that sort in numeric order, for use in sorted keys. A0 is the first byte, A1
// and A2 are the next ones.
//
//	A0       value                    bytes
//	0–240    A0                       1
//	241–248  240 + 256·(A0−241) + A1  2
//	249      2288 + 256·A1 + A2       3
//	250–255  big-endian, A0−247 long  4–9
//
// 241 is f1 01; 2288 is f9 00 00; 67824 is fa 01 08 f0.
const (
	orderedOne   = 240     // largest value of one byte; file format: never change
	orderedTwo   = 2287    // largest of two; file format: never change
	orderedThree = 67823   // largest of three; file format: never change
	orderedTag2  = 241     // first A0 of two bytes; file format: never change
	orderedTag3  = 249     // A0 of three bytes; file format: never change
	orderedBase  = 250 - 3 // A0 less the width of a big-endian number; file format: never change
)

// AppendOrderedUvarint appends v in its shortest form, 1 to 9 bytes. For u < v the bytes of u sort
// before the bytes of v, and neither is a prefix of the other. Source: tablet spec §3.4.
func AppendOrderedUvarint(dst []byte, v uint64) []byte {
	switch {
	case v <= orderedOne:
		return append(dst, byte(v))
	case v <= orderedTwo:
		v -= orderedOne
		return append(dst, byte(orderedTag2+v>>8), byte(v))
	case v <= orderedThree:
		v -= orderedTwo + 1
		return append(dst, orderedTag3, byte(v>>8), byte(v))
	}
	width := max(3, (bits.Len64(v)+7)/8)
	end := len(dst) + 1 + width
	dst = append(dst, byte(orderedBase+width))
	return binary.BigEndian.AppendUint64(dst, v<<(64-8*width))[:end] // faster than as many bytes as needed
}

// OrderedUvarint reads a number that AppendOrderedUvarint wrote; n is the number of bytes read.
//
// ok is false if b ends within the number, and for a form longer than the shortest, since two forms
// of one number would be two keys. Source: tablet spec §3.4.
func OrderedUvarint(b []byte) (v uint64, n int, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	a0 := b[0]
	switch {
	case a0 <= orderedOne:
		return uint64(a0), 1, true
	case a0 < orderedTag3:
		if len(b) < 2 {
			return 0, 0, false
		}
		v, n = orderedOne+uint64(a0-orderedTag2)<<8+uint64(b[1]), 2
		ok = v > orderedOne
	case a0 == orderedTag3:
		if len(b) < 3 {
			return 0, 0, false
		}
		v, n = orderedTwo+1+uint64(b[1])<<8+uint64(b[2]), 3
		ok = true
	default:
		width := int(a0) - orderedBase
		if len(b) < 1+width {
			return 0, 0, false
		}
		for _, c := range b[1 : 1+width] {
			v = v<<8 | uint64(c)
		}
		n = 1 + width
		ok = v > orderedThree && (width == 3 || b[1] != 0)
	}
	if !ok {
		return 0, 0, false
	}
	return v, n, true
}
