package encoding

import "math/bits"

// Sum is the exact sum of integers or of products of two integers. The zero Sum is 0. It is added
// to by any number of calls and read at the end. Not safe for concurrent use.
//
// A call adds, for each plane, how many selected cells have its bit. These counts are multiplied by
// their powers of two when the sum is read: once, not once for each chunk.
type Sum struct {
	whole       [3]uint64 // two's complement, lowest word first
	plus, minus *tallies  // nil: all 0
	top         int       // all tallies from here on are 0
	n           int64
}

// Reset makes s 0. It keeps memory for later calls.
func (s *Sum) Reset() {
	for _, side := range [2]*tallies{s.plus, s.minus} {
		if side != nil {
			clear(side[:s.top])
		}
	}
	s.whole, s.top, s.n = [3]uint64{}, 0, 0
}

// Count returns how many values were added.
func (s *Sum) Count() int64 { return s.n }

// tallies are the numbers of bits that weigh 2^0, 2^1 and so on. Each is in four parts, so that
// code that counts in wide registers need not add them.
type tallies [maxPlanes][4]uint64

// side returns the tallies of positive or negative weights, to change those up to 2^most.
func (s *Sum) side(negative bool, most int) *tallies {
	s.top = max(s.top, most+1)
	side := &s.plus
	if negative {
		side = &s.minus
	}
	if *side == nil {
		*side = new(tallies)
	}
	return *side
}

// Words returns the sum as an integer of 192 bits in two's complement, lowest word first. It cannot
// overflow: the product of two integers has at most 128 bits, and there are at most 2^32 rows in a
// file.
func (s *Sum) Words() [3]uint64 {
	for k, side := range [2]*tallies{s.plus, s.minus} {
		if side == nil {
			continue
		}
		small := uint64(0) // the sum of multiples below 2^57, at most 58 of them
		for p := range s.top {
			t := &side[p]
			if n := t[0] + t[1] + t[2] + t[3]; p+bits.Len64(n) <= 57 {
				small += n << p
			} else if n != 0 {
				s.addMultiple(uint128{lo: n}, p, k == 1)
			}
		}
		s.addMultiple(uint128{lo: small}, 0, k == 1)
		clear(side[:s.top])
	}
	s.top = 0
	return s.whole
}

// add adds x, or subtracts it.
func (s *Sum) add(x uint128, subtract bool) {
	flip := uint64(0)
	if subtract {
		flip = allOnes
	}
	w, carry := &s.whole, flip&1
	w[0], carry = bits.Add64(w[0], x.lo^flip, carry)
	w[1], carry = bits.Add64(w[1], x.hi^flip, carry)
	w[2], _ = bits.Add64(w[2], flip, carry)
}

// addMultiple adds x·2^shift, or subtracts it.
func (s *Sum) addMultiple(x uint128, shift int, subtract bool) {
	w := [4]uint64{x.lo, x.hi}
	for ; shift >= 64; shift -= 64 {
		w = [4]uint64{0, w[0], w[1], w[2]}
	}
	flip := uint64(0)
	if subtract {
		flip = allOnes
	}
	carry, low := flip&1, uint64(0)
	for i := range s.whole {
		part := w[i]<<shift | low>>1>>(63-shift)
		low = w[i]
		s.whole[i], carry = bits.Add64(s.whole[i], part^flip, carry)
	}
}

// sum adds ±2^shift times the selected cells to total, but only those with a 1 in with, a plane of
// as many cells, unless that is nil. Signed cells are in two's complement: their top bit has a
// negative weight, and a run of equal bits up to the top counts once, with the negative weight of
// its lowest bit: in 1110, the run 111 counts as −2. count is the number of the selected cells.
func (v *planeView) sum(total *Sum, signed bool, sel []uint64, count int, with []byte, shift int, negative bool) {
	refs := v.refs
	if signed {
		run := v.signRun()
		if refs = v.refs[:run]; run < len(v.refs) {
			v.tally(total.side(!negative, shift+int(v.refs[run].plane)), v.refs[run:run+1], sel, with, shift)
		}
	}
	if len(refs) > 0 {
		v.tally(total.side(negative, shift+int(refs[len(refs)-1].plane)), refs, sel, with, shift)
	}
	if v.ones == (uint128{}) {
		return
	}
	n := uint64(count)
	if with != nil {
		n = 0
		for i, w := range sel {
			n += uint64(bits.OnesCount64(w & load64(with[8*i:])))
		}
	}
	total.addMultiple(uint128{lo: v.ones.lo}.times(n), shift, negative)
	total.addMultiple(uint128{lo: v.ones.hi}.times(n), shift+64, negative)
	if signed && v.ones.bit(8*v.width-1) != 0 {
		total.addMultiple(uint128{lo: n}, shift+8*v.width, !negative)
	}
}

// planeWord returns word i of a plane. A nil plane is all ones.
func planeWord(plane []byte, i int) uint64 {
	if plane == nil {
		return allOnes
	}
	return load64(plane[8*i:])
}

// tallyWords is tally with 64-bit words, for every machine. It begins with a word of sel.
func (v *planeView) tallyWords(t *tallies, refs []planeRef, sel []uint64, with []byte, shift, begin int) {
	for i := begin; i < len(sel); i++ {
		w := sel[i] & planeWord(with, i)
		if w == 0 {
			continue
		}
		for _, r := range refs {
			t[int(r.plane)+shift][0] += uint64(bits.OnesCount64(v.word(r, 8*i) & w))
		}
	}
}

// addProducts adds the products of the selected cells of a and b, count of them. The views have the
// same number of cells, of at most 8 bytes each. c is working memory.
func addProducts(total *Sum, a, b *planeView, signedA, signedB bool, sel []uint64, count int, c *cellGroup) {
	x, y := a.gather(signedA), b.gather(signedB)
	if gathers(count, len(x.refs), len(y.refs)) {
		x.addProducts(total, &y, c, sel)
		return
	}
	addPlaneProducts(total, a, b, signedA, signedB, sel, count)
}

// addPlaneProducts is addProducts without single cells: for each bit j of b, it adds 2^j times the
// sum of those cells of a that have it in b.
func addPlaneProducts(total *Sum, a, b *planeView, signedA, signedB bool, sel []uint64, count int) {
	if len(a.refs) < len(b.refs) {
		a, b, signedA, signedB = b, a, signedB, signedA
	}
	refs, ones := b.refs, b.ones.lo
	if signedB {
		if run := b.signRun(); run < len(refs) {
			a.sum(total, signedA, sel, count, b.base[refs[run].at:], int(refs[run].plane), true)
			refs = refs[:run]
		} else if absent := 64 - 8*b.width; ones<<absent>>63 != 0 {
			k := 64 - absent - bits.LeadingZeros64(^(ones << absent)) // the lowest of the ones up to the top
			a.sum(total, signedA, sel, count, nil, k, true)
			ones &= lowBits(k)
		}
	}
	for ; ones != 0; ones &= ones - 1 {
		a.sum(total, signedA, sel, count, nil, bits.TrailingZeros64(ones), false)
	}
	for _, r := range refs {
		a.sum(total, signedA, sel, count, b.base[r.at:], int(r.plane), false)
	}
}
