// Package coding encodes and decodes integers in the forms that the file formats share, and
// computes their checksum.
//
// Each form has an Append function, which appends to dst and returns the result, and a function
// with the name of the form, which reads from the front of b:
//
//	Uvarint32, Uvarint64   base 128, low groups first; short numbers take one byte
//	GroupVarint            four 32-bit numbers after one byte with their widths
//	OrderedUvarint         bytes that sort in numeric order
//
// Readers return the number of bytes read, and ok = false for truncated or malformed input; they
// never panic and never read past len(b). All functions are pure and safe for concurrent use.
// Unlike Kudu's readers, which drop bits above the width of the number, they return ok = false for
// such input.
package coding

// Base 128, low groups first; bit 7 of each byte is set if another byte follows.
//
//	bytes  values
//	1      0 … 127
//	2      … 16383
//	5      all of 32 bits; the fifth byte is at most 0f
//	10     all of 64 bits; the tenth byte is at most 01
//
// 300 is ac 02.
const (
	maxUvarint32Len = 5  // file format: never change
	maxUvarint64Len = 10 // file format: never change
)

// AppendUvarint32 appends v in base 128, 1 to 5 bytes, the shortest form.
// Source: cfile spec §4.1.
func AppendUvarint32(dst []byte, v uint32) []byte { return AppendUvarint64(dst, uint64(v)) }

// AppendUvarint64 appends v in base 128, 1 to 10 bytes, the shortest form.
// Source: cfile spec §4.1.
func AppendUvarint64(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// Uvarint32 reads a base-128 number of at most 32 bits; n is the number of bytes read.
//
// Forms longer than needed are accepted, as in Kudu. ok is false, and v and n are 0, if b ends
// within the number, or if the number has more than 5 bytes or 32 bits. Source: cfile spec §4.1.
func Uvarint32(b []byte) (v uint32, n int, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint32(b[0]), 1, true
	}
	w, n, ok := uvarint(b, maxUvarint32Len, 0x0f)
	return uint32(w), n, ok
}

// Uvarint64 reads a base-128 number of at most 64 bits; n is the number of bytes read. ok is false
// as in Uvarint32, with limits of 10 bytes and 64 bits. Source: cfile spec §4.1.
func Uvarint64(b []byte) (v uint64, n int, ok bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1, true
	}
	return uvarint(b, maxUvarint64Len, 0x01)
}

// uvarint reads at most maxLen bytes; byte maxLen−1 must be at most maxLast.
func uvarint(b []byte, maxLen int, maxLast byte) (v uint64, n int, ok bool) {
	for n < len(b) && n < maxLen {
		c := b[n]
		if n == maxLen-1 && c > maxLast {
			return 0, 0, false
		}
		v |= uint64(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			return v, n, true
		}
	}
	return 0, 0, false
}
