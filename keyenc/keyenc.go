// Package keyenc encodes primary keys as bytes that sort like the keys, and decodes them.
//
// An encoded key is the concatenation of its columns' encodings, in key order. bytes.Compare orders
// encoded keys as their tuples. A column's encoding is self-delimiting if another column follows,
// so the bytes of adjacent columns cannot be confused:
//
//	type                       encoding of one cell
//	unsigned integer           big-endian
//	signed integer, decimal,   big-endian with the top bit flipped
//	  date, timestamp
//	byte string, last column   its bytes
//	byte string, not last      its bytes with each 00 as 00 01, then 00 00
//
// (INT32 7, STRING "a\0b", STRING "z"): 80 00 00 07 61 00 01 62 00 00 7a
//
// A cell is the bytes of one value: Width bytes little-endian, or the byte string itself. Key cells
// are never NULL. An Encoder is immutable and safe for concurrent use; the caller owns its results.
//
// Source: tablet spec §3. Kudu stores the rows of a MemRowSet next to their encoded keys. Here keys
// can be decoded, so that tools can print a key bound without the row.
package keyenc

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/schema"
)

// Escapes of byte strings that are not the last key column. File format: never change.
const (
	escapeByte     = 0x00
	escapedZero    = 0x01 // after escapeByte: a 00 in the value
	terminatorByte = 0x00 // after escapeByte: the end of the value
)

// AppendKeyCell appends the key encoding of one cell of the keyable type t; last reports whether
// the column is the last one of the key. Source: tablet spec §3.1.
func AppendKeyCell(dst []byte, t schema.Type, cell []byte, last bool) []byte {
	if t.Variable() {
		if last {
			return append(dst, cell...)
		}
		return appendTerminated(dst, cell)
	}
	return appendInteger(dst, cell, signed(t))
}

// AppendComparable appends bytes that sort like the cells of type t, for every type, keyable or
// not. Byte strings are copied, integers are encoded as in a key, bool as 0 or 1. Floating point
// sorts as −Inf, negative, zero, positive, +Inf; −0 and +0 are equal. A NaN sorts beyond the
// infinity of its sign, which callers must handle.
func AppendComparable(dst []byte, t schema.Type, cell []byte) []byte {
	switch t {
	case schema.Float:
		return binary.BigEndian.AppendUint32(dst, comparable32(binary.LittleEndian.Uint32(cell)))
	case schema.Double:
		return binary.BigEndian.AppendUint64(dst, comparable64(binary.LittleEndian.Uint64(cell)))
	case schema.Bool:
		return append(dst, cell[0])
	}
	if t.Variable() {
		return append(dst, cell...)
	}
	return appendInteger(dst, cell, signed(t))
}

// AppendFromComparable appends the cell of type t of which AppendComparable makes b. ok is false if
// b has not the width of the type. Of −0 the cell is +0.
func AppendFromComparable(dst []byte, t schema.Type, b []byte) (_ []byte, ok bool) {
	if t.Variable() {
		return append(dst, b...), true
	}
	if len(b) != t.Width() {
		return dst, false
	}
	switch t {
	case schema.Float:
		return binary.LittleEndian.AppendUint32(dst, floatBits32(binary.BigEndian.Uint32(b))), true
	case schema.Double:
		return binary.LittleEndian.AppendUint64(dst, floatBits64(binary.BigEndian.Uint64(b))), true
	case schema.Bool:
		return append(dst, b[0]), true
	}
	return appendIntegerCell(dst, b, signed(t)), true
}

// floatBits32 is the inverse of comparable32.
func floatBits32(x uint32) uint32 {
	if x&(1<<31) != 0 {
		return x &^ (1 << 31)
	}
	return ^x
}

// floatBits64 is the inverse of comparable64.
func floatBits64(x uint64) uint64 {
	if x&(1<<63) != 0 {
		return x &^ (1 << 63)
	}
	return ^x
}

// comparable32 maps the bits of a float32 to an integer with the same order: positive numbers are
// moved to the upper half, negative ones are mirrored into the lower half.
func comparable32(bits uint32) uint32 {
	const sign = 1 << 31
	switch {
	case bits&^sign == 0:
		return sign // −0 sorts as +0
	case bits&sign != 0:
		return ^bits
	}
	return bits | sign
}

func comparable64(bits uint64) uint64 {
	const sign = 1 << 63
	switch {
	case bits&^sign == 0:
		return sign
	case bits&sign != 0:
		return ^bits
	}
	return bits | sign
}

// Successor returns the smallest key that is greater than key, in new memory.
func Successor(key []byte) []byte {
	next := make([]byte, len(key)+1)
	copy(next, key)
	return next
}

// Head returns the first 8 bytes of a key, or of its part after a common prefix, as a number with
// the same order; shorter keys are padded with zeros. Keys with different heads are in the order of
// their heads. Keys with equal heads must be compared in full.
func Head(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// PrefixEnd returns the smallest key that is greater than every key with the given prefix, in new
// memory: for 61 ff it is 62. It returns nil if prefix is empty or all ff, since then there is no
// such key.
func PrefixEnd(prefix []byte) []byte {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xff {
		n--
	}
	if n == 0 {
		return nil
	}
	end := append([]byte(nil), prefix[:n]...)
	end[n-1]++
	return end
}

// signed reports whether the integer type t is stored in two's complement.
func signed(t schema.Type) bool {
	switch t.Physical() {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return false
	}
	return true
}

// appendInteger converts a little-endian cell of 1, 2, 4, 8 or 16 bytes to big-endian, with the top
// bit flipped if signed.
func appendInteger(dst []byte, cell []byte, signed bool) []byte {
	at := len(dst)
	switch len(cell) {
	case 1:
		dst = append(dst, cell[0])
	case 2:
		dst = append(dst, cell[1], cell[0])
	case 4:
		dst = binary.BigEndian.AppendUint32(dst, binary.LittleEndian.Uint32(cell))
	case 8:
		dst = binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(cell))
	default:
		dst = binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(cell[8:]))
		dst = binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(cell))
	}
	if signed {
		dst[at] ^= 0x80
	}
	return dst
}

// appendTerminated encodes a byte string in a column that is not the last.
func appendTerminated(dst []byte, cell []byte) []byte {
	for {
		i := indexZero(cell)
		if i < 0 {
			dst = append(dst, cell...)
			return append(dst, escapeByte, terminatorByte)
		}
		dst = append(dst, cell[:i]...)
		dst = append(dst, escapeByte, escapedZero)
		cell = cell[i+1:]
	}
}
