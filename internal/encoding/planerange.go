package encoding

import "math/bits"

// between clears the bits of sel whose cells are not in [lo, hi]. Both are numbers in unsigned
// order, as in compare.
//
// First, lo and hi become the nearest cells that the constant planes allow, so that only mixed
// planes are visited. From the highest one down, while the bits of lo and hi are equal, other cells
// are dropped. Where they differ, the cells are divided into low ones, which are to be compared
// with lo only, and high ones, which are to be compared with hi:
//
//	bit of lo   low            passed      bit of hi   high           passed
//	1           &= p                       1           &= p           |= high &^ p
//	0           &^= p          |= low & p  0           &^= p
//
// Cells that are left in low and high at the end equal lo and hi.
func (v *planeView) between(lo, hi uint128, signed bool, sel []uint64) {
	ones, mixed := v.ones, v.mixed()
	if signed {
		top := bit128(8*v.width - 1)
		if mixed.and(top) == top { // the planes of a sign that repeats are considered once
			v.compare(greaterEqual, lo, true, sel)
			v.compare(lessEqual, hi, true, sel)
			return
		}
		ones = ones.xor(top)
	}
	lo, some := atLeast(lo, ones, mixed)
	hi, more := atMost(hi, ones, mixed)
	if !some || !more || lo.compare(hi) > 0 {
		clear(sel)
		return
	}
	// Planes below the lowest 1 of lo and the lowest 0 of hi do not matter.
	refs, lowest := v.refs, lo.or(low128(8*v.width).andNot(hi)).and(mixed).lowest()
	for len(refs) > 0 && int(refs[0].plane) < lowest {
		refs = refs[1:]
	}
	v.visited = v.visited || len(refs) > 0
	switch {
	case len(refs) == 0:
	case lo == ones:
		v.comparePlanes(lessEqual, refs, &hi, false, sel)
	case hi == ones.or(mixed):
		v.comparePlanes(greaterEqual, refs, &lo, false, sel)
	default:
		v.betweenPlanes(refs, &lo, &hi, sel)
	}
}

// atLeast returns the least number from x on whose bits outside of mixed equal the bits of ones. ok
// is false if no number from x on has. ones has no bits of mixed.
func atLeast(x, ones, mixed uint128) (least uint128, ok bool) {
	d := x.xor(ones).andNot(mixed).highest()
	if d < 0 {
		return x, true
	}
	if ones.bit(d) == 0 { // x is above: the next number differs in a higher bit
		if d = mixed.andNot(x).andNot(low128(d)).lowest(); d == 128 {
			return x, false
		}
		x = x.or(bit128(d))
	}
	// Bit d of x is 1, or becomes 1 as it is in ones.
	return x.andNot(low128(d + 1)).or(bit128(d)).or(ones.and(low128(d))), true
}

// atMost returns the greatest number up to x whose bits outside of mixed equal the bits of ones. ok
// is false if no number up to x has.
func atMost(x, ones, mixed uint128) (greatest uint128, ok bool) {
	all := uint128{allOnes, allOnes}
	greatest, ok = atLeast(x.xor(all), all.andNot(ones.or(mixed)), mixed)
	return greatest.xor(all), ok
}

// lowest returns the number of the lowest 1 in x, or 128.
func (x uint128) lowest() int {
	if x.lo != 0 {
		return bits.TrailingZeros64(x.lo)
	}
	return 64 + bits.TrailingZeros64(x.hi)
}

// betweenWords is betweenPlanes with 64-bit words, for every machine.
func (v *planeView) betweenWords(refs []planeRef, lo, hi *uint128, sel []uint64) {
	for i, low := range sel {
		k := len(refs) - 1
		high, passed := uint64(0), uint64(0)
		for ; k >= 0; k-- {
			p, plane := v.word(refs[k], 8*i), int(refs[k].plane)
			if lo.bit(plane) != 0 {
				low &= p
				continue
			}
			if hi.bit(plane) != 0 {
				low, high = low&^p, low&p
				break
			}
			low &^= p
		}
		for k--; k >= 0 && low|high != 0; k-- {
			p, plane := v.word(refs[k], 8*i), int(refs[k].plane)
			if lo.bit(plane) != 0 {
				low &= p
			} else {
				passed |= low & p
				low &^= p
			}
			if hi.bit(plane) != 0 {
				passed |= high &^ p
				high &= p
			} else {
				high &^= p
			}
		}
		sel[i] = passed | low | high
	}
}
