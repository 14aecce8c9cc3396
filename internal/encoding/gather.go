package encoding

import "math/bits"

// maxGathered is the number of selected cells of a chunk up to which gathering their bits from the
// planes takes less time than counting the bits of each plane. One bit of a cell takes about as long
// as an eighth of a plane.
const maxGathered = 8

// gatherer makes single cells of at most 8 bytes from the planes of a view.
type gatherer struct {
	base   []byte
	refs   []planeRef // those of a sign that repeats only once
	ones   uint64
	absent int // bits above the highest one of refs, in two's complement: they equal it
	signed bool
}

// gather returns the cells of v.
func (v *planeView) gather(signed bool) gatherer {
	g := gatherer{base: v.base, refs: v.refs, ones: v.ones.lo, signed: signed}
	if signed {
		g.absent = 64 - 8*v.width
		if run := v.signRun(); run < len(v.refs) {
			g.refs, g.absent = v.refs[:run+1], 63-int(v.refs[run].plane)
		}
	}
	return g
}

// magnitude returns cell i without its sign, and whether it is negative.
func (g *gatherer) magnitude(i int) (x uint64, negative bool) {
	x, base := g.ones, g.base
	for _, r := range g.refs {
		x |= uint64(base[int(r.at)+i>>3]>>(i&7)&1) << (r.plane & 63)
	}
	if !g.signed {
		return x, false
	}
	y := int64(x<<g.absent) >> g.absent
	if y < 0 {
		return uint64(-y), true
	}
	return uint64(y), false
}

// sum adds the selected cells to total.
func (g *gatherer) sum(total *Sum, sel []uint64) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			x, negative := g.magnitude(64*i + bits.TrailingZeros64(w))
			total.add(uint128{lo: x}, negative)
		}
	}
}

// addProducts adds the products of the selected cells of g and o to total.
func (g *gatherer) addProducts(total *Sum, o *gatherer, sel []uint64) {
	for i, w := range sel {
		for ; w != 0; w &= w - 1 {
			k := 64*i + bits.TrailingZeros64(w)
			x, minus := g.magnitude(k)
			y, negative := o.magnitude(k)
			total.add(uint128{lo: x}.times(y), minus != negative)
		}
	}
}
