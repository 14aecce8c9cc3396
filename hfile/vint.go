package hfile

import "math/bits"

// Hadoop's variable integers (WritableUtils), which differ from protobuf's. Source: hfile spec
// §2.1.
//
//	value            bytes
//	-112 to 127      one byte, two's complement
//	other, ≥ 0       -112-n, then n bytes, big-endian, as few as fit
//	other, < 0       -120-n, then the n bytes of ^value
//
//	127   7f
//	128   8f 80
//	255   8f ff
//	65536 8d 01 00 00
//	-113  87 70

// appendVint appends v.
func appendVint(dst []byte, v int64) []byte {
	if -112 <= v && v <= 127 {
		return append(dst, byte(v))
	}
	first := -112
	if v < 0 {
		v, first = ^v, -120
	}
	n := (bits.Len64(uint64(v)) + 7) / 8
	dst = append(dst, byte(first-n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// vint reads a number from the front of b; n is the number of bytes read, 0 if b ends within it.
// Numbers in more bytes than necessary are accepted.
func vint(b []byte) (v int64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	first := int(int8(b[0]))
	if first >= -112 {
		return int64(first), 1
	}
	negative := first < -120
	if n = -111 - first; negative {
		n = -119 - first
	}
	if n > len(b) {
		return 0, 0
	}
	for _, c := range b[1:n] {
		v = v<<8 | int64(c)
	}
	if negative {
		v = ^v
	}
	return v, n
}
