package batch

import (
	"math/bits"
	"slices"
)

// Reverse reverses the order of the rows, in place: row i becomes row Len−1−i and stays selected or
// not. Byte strings are moved, not copied.
func (b *RecordBatch) Reverse() {
	for i, v := range b.Columns {
		if !slices.Contains(b.Columns[:i], v) {
			v.reverse()
		}
	}
	b.Selection.reverse(b.Len)
}

func (v *Vector) reverse() {
	if v.Present != nil {
		v.Present.reverse(v.Len)
	}
	switch {
	case v.Elements != nil:
		v.reverseArrays()
	case v.Dict != nil:
		reverseCells(v.Codes)
	case v.Type.Variable():
		slices.Reverse(v.Bytes)
	default:
		v.reverseFixed()
	}
}

func (v *Vector) reverseFixed() {
	switch v.Type.Width() {
	case 1:
		reverseCells(Raw[uint8](v))
	case 2:
		reverseCells(Raw[uint16](v))
	case 4:
		reverseCells(Raw[uint32](v))
	case 8:
		reverseCells(Raw[uint64](v))
	case 16:
		reverseCells(Raw[Int128](v))
	}
}

// reverseCells is like slices.Reverse but swaps four cells from each end at a time, which takes
// half the time for cells of up to 8 bytes.
func reverseCells[T Fixed](s []T) {
	for len(s) >= 8 {
		a, b := (*[4]T)(s), (*[4]T)(s[len(s)-4:])
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		a[0], a[1], a[2], a[3] = b[3], b[2], b[1], b[0]
		b[0], b[1], b[2], b[3] = a3, a2, a1, a0
		s = s[4 : len(s)-4]
	}
	slices.Reverse(s)
}

// reverseArrays reverses the order of the arrays. The elements within each array keep their order.
func (v *Vector) reverseArrays() {
	offsets := make([]uint32, 1, len(v.Offsets))
	elements := &Vector{Type: v.Elements.Type}
	for i := v.Len - 1; i >= 0; i-- {
		from, to := v.Array(i)
		elements.AppendRun(v.Elements, from, to)
		offsets = append(offsets, uint32(elements.Len))
	}
	v.Offsets, v.Elements, v.elementsBuf = offsets, elements, elements
}

// reverse reverses the order of the n bits of b.
func (b Bitmap) reverse(n int) {
	if b.Count() == n {
		return // the common case: all bits are ones
	}
	b = b[:(n+63)/64]
	slices.Reverse(b)
	for i, w := range b {
		b[i] = bits.Reverse64(w)
	}
	pad := uint(64*len(b) - n) // zeros that were above bit n and are now below the others
	for i := range b {
		b[i] >>= pad
		if i+1 < len(b) {
			b[i] |= b[i+1] << (64 - pad)
		}
	}
}
