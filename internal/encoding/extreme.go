package encoding

import "math/bits"

// stripWords is the number of words of a selection in which extremes are found at once.
const stripWords = 16

// extreme returns the least or the greatest of the selected cells in unsigned order: if the cells
// are in two's complement, its top bit is inverted. ok is false if no cell is selected.
//
// Of the cells that are left, from the highest plane down, those with the better bit are kept if
// there are any. The cells that are left at the end are equal.
func (v *planeView) extreme(greatest, signed bool, sel []uint64) (x uint128, ok bool) {
	refs, inverted := v.refs, uint64(0)
	if signed {
		if run := v.signRun(); run < len(refs) {
			refs, inverted = refs[:run+1], allOnes
		}
	}
	if !greatest {
		inverted = ^inverted
	}
	var left [stripWords]uint64
	for begin := 0; begin < len(sel); begin += stripWords {
		strip := left[:min(stripWords, len(sel)-begin)]
		if copy(strip, sel[begin:]); firstBit(strip) < 0 {
			continue
		}
		if len(refs) > 0 {
			v.keepBest(strip, refs, begin, greatest, inverted)
		}
		c := v.cell(64*begin + firstBit(strip))
		if signed {
			c = c.xor(bit128(8*v.width - 1))
		}
		if order := c.compare(x); !ok || order != 0 && order > 0 == greatest {
			x, ok = c, true
		}
	}
	return x, ok
}

// firstBit returns the position of the first 1, or -1.
func firstBit(words []uint64) int {
	for i, w := range words {
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// keepBestWords is keepBest with 64-bit words, for every machine.
func (v *planeView) keepBestWords(left []uint64, refs []planeRef, begin int, greatest bool, inverted uint64) {
	var better [stripWords]uint64
	for k := len(refs) - 1; k >= 0; k-- {
		some := uint64(0)
		for i, w := range left {
			better[i] = w & (v.word(refs[k], 8*(begin+i)) ^ inverted)
			some |= better[i]
		}
		if some != 0 {
			copy(left, better[:])
		}
		if inverted = 0; !greatest {
			inverted = allOnes
		}
	}
}
