package coding

import (
	"encoding/binary"
	"math/bits"
)

// A group: one selector byte, then four 32-bit numbers a, b, c, d, each in as many little-endian
// bytes as it needs, 1 to 4 (0 takes 1).
//
//	offset  width  field     meaning
//	0       1      selector  bits 7-6: width of a − 1; 5-4: of b; 3-2: of c; 1-0: of d
//	1       1–4    a         little-endian
//	…       1–4    b, c, d   likewise, back to back
//
// 1, 2000, 3, 200000: 12 01 d0 07 03 40 0d 03
const (
	groupLen    = 4  // numbers in a group; file format: never change
	maxGroupLen = 17 // bytes of the longest group
)

// groupMask keeps the low 1 to 4 bytes of a word, by width − 1.
var groupMask = [4]uint32{0xff, 0xffff, 0xffffff, 0xffffffff}

// AppendGroupVarint appends one group, 5 to 17 bytes. Source: cfile spec §4.2.
func AppendGroupVarint(dst []byte, a, b, c, d uint32) []byte {
	la, lb, lc, ld := widthLess1(a), widthLess1(b), widthLess1(c), widthLess1(d)
	dst = append(dst, byte(la<<6|lb<<4|lc<<2|ld))
	dst = appendLow(dst, a, la)
	dst = appendLow(dst, b, lb)
	dst = appendLow(dst, c, lc)
	return appendLow(dst, d, ld)
}

// AppendGroupVarintSeq appends vals as ⌈len(vals)/4⌉ groups, the last one padded with zeros. It
// does not write the count, so no values give no bytes. Source: cfile spec §4.2.
func AppendGroupVarintSeq(dst []byte, vals []uint32) []byte {
	for len(vals) >= groupLen {
		dst = AppendGroupVarint(dst, vals[0], vals[1], vals[2], vals[3])
		vals = vals[groupLen:]
	}
	if len(vals) == 0 {
		return dst
	}
	var last [groupLen]uint32
	copy(last[:], vals)
	return AppendGroupVarint(dst, last[0], last[1], last[2], last[3])
}

// GroupVarint reads one group; n is the number of bytes read. ok is false if b ends within the
// group. Numbers wider than necessary are accepted. Source: cfile spec §4.2.
func GroupVarint(b []byte) (v [4]uint32, n int, ok bool) {
	if len(b) >= maxGroupLen {
		v, n = groupVarint((*[maxGroupLen]byte)(b))
		return v, n, true
	}
	// Near the end of the input the group is read from a copy, which keeps loads of four bytes for
	// a shorter number in bounds.
	if len(b) == 0 {
		return v, 0, false
	}
	var padded [maxGroupLen]byte
	copy(padded[:], b)
	v, n = groupVarint(&padded)
	if n > len(b) {
		return [4]uint32{}, 0, false
	}
	return v, n, true
}

// groupVarint reads a group whose longest form is within b. It computes all offsets from the
// selector before it loads any number, so that the four loads do not depend on each other.
func groupVarint(b *[maxGroupLen]byte) (v [4]uint32, n int) {
	s := b[0]
	wa, wb, wc, wd := s>>6, s>>4&3, s>>2&3, s&3
	ib := 2 + uint(wa)
	ic := ib + uint(wb) + 1
	id := ic + uint(wc) + 1
	v[0] = binary.LittleEndian.Uint32(b[1:]) & groupMask[wa]
	v[1] = binary.LittleEndian.Uint32(b[ib:]) & groupMask[wb]
	v[2] = binary.LittleEndian.Uint32(b[ic:]) & groupMask[wc]
	v[3] = binary.LittleEndian.Uint32(b[id:]) & groupMask[wd]
	return v, int(id) + int(wd) + 1
}

// widthLess1 returns the number of bytes that v needs, minus 1.
func widthLess1(v uint32) int { return (bits.Len32(v|1) - 1) / 8 }

func appendLow(dst []byte, v uint32, widthLess1 int) []byte {
	dst = append(dst, byte(v))
	for ; widthLess1 > 0; widthLess1-- {
		v >>= 8
		dst = append(dst, byte(v))
	}
	return dst
}
