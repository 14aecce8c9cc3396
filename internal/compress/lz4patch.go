package compress

// maxLZ4Offset is the greatest distance of a match. File format: never change.
const maxLZ4Offset = 1<<16 - 1

// LZ4Patch replaces bytes [at, at+len(b)) of the output of an LZ4 block by b, without unpacking the
// block. It returns false, and changes nothing, unless these bytes are literals of the first
// sequence and no match copies them.
func LZ4Patch(block []byte, at int, b []byte) bool {
	first, ok := ParseLZ4Sequence(block, 0)
	to := at + len(b)
	if !ok || to > first.To-first.From || !lz4Free(block, at, to) {
		return false
	}
	copy(block[first.From+at:], b)
	return true
}

// lz4Free reports whether no match of a block copies bytes [from, to) of the output, which are
// before the first match. It reports false for a malformed block.
func lz4Free(block []byte, from, to int) bool {
	at, n := 0, 0 // bytes of the block, and of the output, before the sequence
	for n <= maxLZ4Offset+to {
		if at >= len(block) {
			return false
		}
		token := int(block[at])
		literals, match := token>>literalNibble, token&longLength
		at++
		if literals == longLength {
			if literals, at = moreLengthAt(block, at); at == 0 {
				return false
			}
		}
		at, n = at+literals, n+literals
		if at+2 > len(block) {
			return at == len(block) && match == 0
		}
		offset := int(block[at]) | int(block[at+1])<<8
		at += 2
		if match == longLength {
			if match, at = moreLengthAt(block, at); at == 0 {
				return false
			}
		}
		match += LZ4MinMatch
		if source := n - offset; source < to && source+min(match, offset) > from {
			return false
		}
		n += match
	}
	return true
}
