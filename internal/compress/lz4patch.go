package compress

// maxLZ4Offset is the greatest distance of a match. File format: never change.
const maxLZ4Offset = 1<<16 - 1

// LZ4Patch replaces bytes [at, at+len(b)) of the output of an LZ4 block by b, without unpacking the
// block. It returns false, and changes nothing, unless these bytes are literals of the first
// sequence and no match copies them.
func LZ4Patch(block []byte, at int, b []byte) bool {
	first, ok := ParseLZ4Sequence(block, 0)
	to := at + len(b)
	if !ok || to > first.To-first.From {
		return false
	}
	n := 0 // bytes of the output before the sequence
	for s := first; ; {
		n += s.To - s.From
		if from := n - s.Offset; s.Match > 0 && from < to && from+min(s.Match, s.Offset) > at {
			return false
		}
		n += s.Match
		if s.Match == 0 || n-maxLZ4Offset >= to {
			break
		}
		if s, ok = ParseLZ4Sequence(block, s.End); !ok {
			return false
		}
	}
	copy(block[first.From+at:], b)
	return true
}
