package batch

import (
	"math/bits"
	"slices"
	"unsafe"
)

// Reverse reverses the order of the cells, in place: cell i becomes cell Len−1−i. Byte strings are
// moved, not copied.
func (v *Vector) Reverse() {
	if v.Present != nil {
		v.Present.Reverse(v.Len)
	}
	switch {
	case v.Elements != nil:
		v.reverseArrays()
	case v.Dict != nil:
		codes := v.Codes
		reverseCells(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(codes))), 4*len(codes)), 4)
	case v.Type.Variable():
		reverseStrings(v.Bytes)
	default:
		width := v.Type.Width()
		reverseCells(v.Data[:v.Len*width], width)
	}
}

// reverseCells reverses the order of cells of the given width, a power of two up to 16.
func reverseCells(data []byte, width int) {
	data = reverseEnds(data, width)
	switch n := len(data) / width; width {
	case 1:
		reverseFours(data)
	case 2:
		reverseFours(cellSlice[uint16](data, n))
	case 4:
		reverseFours(cellSlice[uint32](data, n))
	case 8:
		reverseFours(cellSlice[uint64](data, n))
	case 16:
		slices.Reverse(cellSlice[[2]uint64](data, n))
	}
}

// reverseFours is like slices.Reverse but swaps four cells from each end at a time, which takes
// half the time.
func reverseFours[T uint8 | uint16 | uint32 | uint64](s []T) {
	for len(s) >= 8 {
		a, b := (*[4]T)(s), (*[4]T)(s[len(s)-4:])
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		a[0], a[1], a[2], a[3] = b[3], b[2], b[1], b[0]
		b[0], b[1], b[2], b[3] = a3, a2, a1, a0
		s = s[4 : len(s)-4]
	}
	slices.Reverse(s)
}

// cellSlice returns n cells of data, which is aligned for them, as Vector.Data is.
func cellSlice[T any](data []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), n)
}

// reverseStrings is like slices.Reverse but swaps two strings from each end at a time.
func reverseStrings(s [][]byte) {
	for len(s) >= 4 {
		a, b := (*[2][]byte)(s), (*[2][]byte)(s[len(s)-2:])
		a0, a1 := a[0], a[1]
		a[0], a[1] = b[1], b[0]
		b[0], b[1] = a1, a0
		s = s[2 : len(s)-2]
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

// Reverse reverses the order of the first n bits of b, which has no others set.
func (b Bitmap) Reverse(n int) {
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
