package encoding

import "math/bits"

// Sums and products of a few selected cells are computed from the cells, which are gathered from
// the planes in groups. A cell is one bit of each plane:
//
//	selection          0 0 1 0 0 0 0 1 1 0 …      cells 2, 7 and 8
//	plane 0            1 0 1 1 1 0 1 0 1 0 …      1 0 1
//	plane 1            0 1 0 0 1 1 1 1 1 0 …      0 1 1
//	cells                                         1 2 3

const (
	// groupCells is the maximum number of selected cells in a group.
	groupCells = 64
	// groupWords is the maximum number of words of a selection that a group comes from.
	groupWords = 16
)

// gatherer makes single cells of at most 8 bytes from the planes of a view.
type gatherer struct {
	base   []byte
	row    int
	refs   []planeRef // the planes, with a repeated sign only once
	ones   uint64
	absent int // bits above the highest one of refs, in two's complement: they equal it
	signed bool
}

// gather returns the cells of v.
func (v *planeView) gather(signed bool) gatherer {
	g := gatherer{base: v.base, row: v.row, refs: v.refs, ones: v.ones.lo, signed: signed}
	if signed {
		g.absent = 64 - 8*v.width
		if run := v.signRun(); run < len(v.refs) {
			g.refs, g.absent = v.refs[:run+1], 63-int(v.refs[run].plane)
		}
	}
	return g
}

// magnitudeBits returns how many bits the greatest magnitude of a cell has, at most.
func (g *gatherer) magnitudeBits() int {
	n := bits.Len64(g.ones)
	if len(g.refs) > 0 {
		n = max(n, int(g.refs[len(g.refs)-1].plane)+1)
	}
	return n
}

// extended returns a gathered cell: with a sign, in two's complement of 64 bits.
func (g *gatherer) extended(x uint64) int64 { return int64(x<<g.absent) >> g.absent }

// magnitude returns a gathered cell without its sign, and whether it is negative.
func (g *gatherer) magnitude(x uint64) (magnitude uint64, negative bool) {
	y := g.extended(x)
	if g.signed && y < 0 {
		return uint64(-y), true
	}
	return uint64(y), false
}

// cellGroup is a group of selected cells: the cells of some words of a selection.
type cellGroup struct {
	from, end int // the bytes of a plane for these words
	count     int
	at, shift [groupCells]uint8 // of each cell: its byte, counted from from, and its bit in there

	// Working memory.
	cells  [2][groupCells]uint64
	octets [8 * groupCells]byte // byte k of cell i at groupCells·k + i
}

// next makes c the group that begins at byte c.end or later, and reports whether there is one.
func (c *cellGroup) next(sel []uint64) bool {
	i := c.end / 8
	for i < len(sel) && sel[i] == 0 {
		i++
	}
	c.from, c.count = 8*i, 0
	n := 0
	for end := min(len(sel), i+groupWords); i < end; i++ {
		w := sel[i]
		if n+bits.OnesCount64(w) > groupCells {
			break
		}
		for ; w != 0; w &= w - 1 {
			k := bits.TrailingZeros64(w)
			c.at[n&63], c.shift[n&63] = uint8(8*i-c.from+k>>3), uint8(k&7)
			n++
		}
	}
	c.end, c.count = 8*i, n
	return n > 0
}

// loadBits is load bit by bit, for every machine.
func (g *gatherer) loadBits(c *cellGroup, dst *[groupCells]uint64) {
	for i := range c.count {
		at, shift, x := c.from+int(c.at[i]), c.shift[i]&7, g.ones
		for _, r := range g.refs {
			x |= uint64(g.base[int(r.at)+at]>>shift&1) << (r.plane & 63)
		}
		dst[i] = x
	}
}

// sum adds the selected cells to total.
func (g *gatherer) sum(total *Sum, c *cellGroup, sel []uint64) {
	for c.end = 0; c.next(sel); {
		g.load(c, &c.cells[0])
		for _, x := range c.cells[0][:c.count] {
			x, negative := g.magnitude(x)
			total.add(uint128{lo: x}, negative)
		}
	}
}

// addProducts adds the products of the selected cells of g and o to total.
func (g *gatherer) addProducts(total *Sum, o *gatherer, c *cellGroup, sel []uint64) {
	small := g.magnitudeBits()+o.magnitudeBits() < 64-bits.Len(groupCells)
	for c.end = 0; c.next(sel); {
		xs, ys := &c.cells[0], &c.cells[1]
		g.load(c, xs)
		o.load(c, ys)
		if small {
			products := int64(0)
			for i, x := range xs[:c.count] {
				products += g.extended(x) * o.extended(ys[i])
			}
			total.add(uint128{lo: uint64(max(products, -products))}, products < 0)
			continue
		}
		for i, x := range xs[:c.count] {
			x, minus := g.magnitude(x)
			y, negative := o.magnitude(ys[i])
			total.add(uint128{lo: x}.times(y), minus != negative)
		}
	}
}
