package encoding

// Comparing cells with a value needs no cells. One word of each plane, from the highest down, shows
// for 64 cells at once which are below the value and which are still equal to it:
//
//	bit of the value   below          equal
//	1                  |= equal &^ p  &= p
//	0                                 &^= p
//
// Constant planes are not visited. The highest constant plane that differs from the value's bit
// decides for all cells that are equal down to it, so the planes below it do not matter. Often it
// decides for a whole chunk.
//
// Values are compared as unsigned numbers. In two's complement the top plane and the value's top
// bit are inverted first, after which they are in the order of unsigned numbers.
//
// A selection has one bit for each cell of a view, in words, the first cell in the lowest bit of
// the first word. Bits after the last cell are 0: the planes have arbitrary bits there.

// comparison defines a result in terms of the cells below and equal to a value: (below&c | equal&a)
// ^ x. Each field is all zeros or all ones.
type comparison struct{ c, a, x uint64 }

const allOnes = ^uint64(0)

var (
	lessEqual    = comparison{allOnes, allOnes, 0}
	greaterEqual = comparison{allOnes, 0, allOnes}
	equalTo      = comparison{0, allOnes, 0}
)

// not returns the opposite comparison.
func (op comparison) not() comparison { return comparison{op.c, op.a, ^op.x} }

// all returns the result if all cells are below the value, equal to it or above it.
func (op comparison) all(order int) bool {
	switch {
	case order < 0:
		return op.c != op.x
	case order == 0:
		return op.a != op.x
	}
	return op.x != 0
}

// compare clears the bits of sel whose cells do not pass. x is a number in unsigned order: if the
// cells are in two's complement, its top bit is inverted.
func (v *planeView) compare(op comparison, x uint128, signed bool, sel []uint64) {
	refs, ones, flip := v.refs, v.ones, false
	if signed {
		top := bit128(8*v.width - 1)
		run := v.signRun()
		if run == len(refs) {
			ones = ones.xor(top)
		} else {
			// Planes k to the top all equal the sign, so plane k is the sign of a shorter number.
			// That number cannot represent values that have different bits there.
			k := int(refs[run].plane)
			refs, flip = refs[:run+1], true
			high := low128(8 * v.width).andNot(low128(k))
			x = x.xor(top)
			negative := x.and(top) == top
			switch x.and(high) {
			case uint128{}, high:
			default:
				order := -1
				if negative {
					order = 1
				}
				keepAll(sel, op.all(order))
				return
			}
			if x = x.andNot(high); !negative {
				x = x.or(bit128(k))
			}
		}
	}
	if d := ones.xor(x).andNot(v.mixed()).highest(); d >= 0 {
		op.a = 0 // equal cells are above the value
		if x.bit(d) != 0 {
			op.a = op.c
		}
		first := len(refs)
		for first > 0 && int(refs[first-1].plane) > d {
			first--
		}
		refs = refs[first:]
	}
	if len(refs) == 0 {
		keepAll(sel, op.all(0))
		return
	}
	v.visited = true
	v.comparePlanes(op, refs, &x, flip, sel)
}

// keepAll clears sel unless keep is true.
func keepAll(sel []uint64, keep bool) {
	if !keep {
		clear(sel)
	}
}

// compareWords is comparePlanes with 64-bit words, for every machine.
func (v *planeView) compareWords(op comparison, refs []planeRef, x *uint128, flip bool, sel []uint64) {
	last := len(refs) - 1
	for i, s := range sel {
		below, equal := uint64(0), s
		for k := last; k >= 0 && equal != 0; k-- {
			r := refs[k]
			p := v.word(r, 8*i)
			if flip && k == last {
				p = ^p
			}
			if x.bit(int(r.plane)) != 0 {
				below |= equal &^ p
				equal &= p
			} else {
				equal &^= p
			}
		}
		sel[i] = s & ((below&op.c | equal&op.a) ^ op.x)
	}
}
