package encoding

import (
	"math/bits"

	"github.com/oribi-db/oribi/schema"
)

// stripWords is the number of words of a selection in which extremes are found at once.
const stripWords = 16

// extreme returns the least or the greatest of the selected cells in unsigned order: if the cells
// are in two's complement, its top bit is inverted. ok is false if no cell is selected.
//
// Of the cells that are left, from the highest plane down, the cells with the better bit are kept,
// or all if no cell has it. The cells that are left at the end are equal.
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

// Extreme is the least of the numbers added so far, or the greatest if Greatest is set. All numbers
// are of one type. Of floats, −0 is below +0, and NaN counts only if there is no number. The zero
// Extreme is empty. Not safe for concurrent use.
type Extreme struct {
	Greatest bool

	typ   schema.Type
	x     uint128 // in unsigned order; of a negative float, all bits are inverted
	ok    bool    // there is a number
	nan   uint128
	isNaN bool // there is a NaN
}

// add adds the selected cells of v.
func (e *Extreme) add(v *planeView, sel []uint64, s *selections) {
	if float(e.typ) {
		e.addFloats(v, sel, s)
	} else if x, ok := v.extreme(e.Greatest, signed(e.typ), sel); ok {
		e.put(x)
	}
}

// put adds a number in unsigned order.
func (e *Extreme) put(x uint128) {
	if order := x.compare(e.x); !e.ok || order != 0 && order > 0 == e.Greatest {
		e.x, e.ok = x, true
	}
}

func (e *Extreme) addFloats(v *planeView, sel []uint64, s *selections) {
	top := bit128(8*v.width - 1)
	magnitude, positive, negative := v.split(sel, s)
	infinity := infinityOf(v.width)
	magnitude.compare(lessEqual, infinity, false, positive)
	magnitude.compare(lessEqual, infinity, false, negative)
	better, worse, isNegative := positive, negative, false
	if !e.Greatest {
		better, worse, isNegative = negative, positive, true
	}
	// The extreme of the better sign has the greatest magnitude, the extreme of the other sign the
	// least: the maximum of −3, −1, 2, 5 is 5, of −3, −1 it is −1.
	x, ok := magnitude.extreme(true, false, better)
	if !ok {
		x, ok = magnitude.extreme(false, false, worse)
		isNegative = !isNegative
	}
	i := firstBit(sel)
	switch {
	case ok && isNegative:
		e.put(top.dec().andNot(x))
	case ok:
		e.put(x.or(top))
	case i >= 0:
		e.nan, e.isNaN = v.cell(i), true
	}
}

// Add adds a cell that is not NULL.
func (e *Extreme) Add(typ schema.Type, cell []byte) {
	e.typ = typ
	x, top := number128(cell), bit128(8*typ.Width()-1)
	if !float(typ) {
		if signed(typ) {
			x = x.xor(top)
		}
		e.put(x)
		return
	}
	magnitude := x.andNot(top)
	switch infinity := infinityOf(typ.Width()); {
	case magnitude.compare(infinity) > 0:
		e.nan, e.isNaN = x, true
	case x.and(top) == uint128{}:
		e.put(x.or(top))
	default:
		e.put(low128(8 * typ.Width()).andNot(x))
	}
}

// Cell returns the number as a cell, or nil if no number was added.
func (e *Extreme) Cell() []byte {
	if !e.ok && !e.isNaN {
		return nil
	}
	width := e.typ.Width()
	x, top := e.x, bit128(8*width-1)
	switch {
	case !e.ok:
		x = e.nan
	case float(e.typ) && x.and(top) == uint128{}:
		x = low128(8 * width).andNot(x)
	case float(e.typ) || signed(e.typ):
		x = x.xor(top)
	}
	var cell [maxWidth]byte
	x.put(&cell)
	return cell[:width]
}
