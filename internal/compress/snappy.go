package compress

import "encoding/binary"

// SnappyRepeats reports whether a raw Snappy block contains a copy from offset 0. The fast decoder,
// which must have accepted the block, reads that as S2 does, as a copy from the offset before.
// Snappy has no such copies, and a damaged block can. Source: Snappy's format_description.txt.
func SnappyRepeats(src []byte) bool {
	const (
		literal, copy1, copy2 = 0, 1, 2
		longLiteral           = 60 // from here on the length is in the bytes that follow, one or more
	)
	_, at := binary.Uvarint(src)
	for at >= 0 && at < len(src) {
		tag := src[at]
		at++
		switch n := int(tag >> 2); tag & 3 {
		case literal:
			var length [8]byte
			if n >= longLiteral {
				extra := n - longLiteral + 1
				at += copy(length[:extra], src[at:])
				n = int(binary.LittleEndian.Uint64(length[:]))
			}
			at += n + 1
		case copy1:
			if at < len(src) && src[at] == 0 && tag>>5 == 0 {
				return true
			}
			at++
		case copy2:
			at += 2
		default:
			at += 4
		}
	}
	return false
}
