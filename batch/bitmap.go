package batch

import "math/bits"

// Bitmap is a sequence of bits in 64-bit words, bit i in word i/64, lowest bit first.
//
// In a selection, 1 means selected; in the presence bitmap of a vector, not NULL. The owner knows
// the length; higher bits are 0.
type Bitmap []uint64

// MakeBitmap makes a bitmap of n zero bits.
func MakeBitmap(n int) Bitmap { return make(Bitmap, (n+63)/64) }

// Resize returns a bitmap of n zero bits, in b's memory if that is large enough.
func (b Bitmap) Resize(n int) Bitmap {
	words := (n + 63) / 64
	if cap(b) < words {
		return make(Bitmap, words)
	}
	b = b[:words]
	clear(b)
	return b
}

// Get reports whether bit i is 1.
func (b Bitmap) Get(i int) bool { return b[i>>6]>>(uint(i)&63)&1 != 0 }

// Set sets bit i to 1.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear sets bit i to 0.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// SetRange sets bits [from, to) to 1.
func (b Bitmap) SetRange(from, to int) {
	if from >= to {
		return
	}
	fw, tw := from>>6, (to-1)>>6
	first, last := ^uint64(0)<<(uint(from)&63), ^uint64(0)>>(63-uint(to-1)&63)
	if fw == tw {
		b[fw] |= first & last
		return
	}
	b[fw] |= first
	for w := fw + 1; w < tw; w++ {
		b[w] = ^uint64(0)
	}
	b[tw] |= last
}

// ClearRange sets bits [from, to) to 0.
func (b Bitmap) ClearRange(from, to int) {
	if from >= to {
		return
	}
	fw, tw := from>>6, (to-1)>>6
	first, last := ^uint64(0)<<(uint(from)&63), ^uint64(0)>>(63-uint(to-1)&63)
	if fw == tw {
		b[fw] &^= first & last
		return
	}
	b[fw] &^= first
	clear(b[fw+1 : tw])
	b[tw] &^= last
}

// Count returns the number of 1 bits.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountRange returns the number of 1 bits in [from, to).
func (b Bitmap) CountRange(from, to int) int {
	if from >= to {
		return 0
	}
	fw, tw := from>>6, (to-1)>>6
	first, last := ^uint64(0)<<(uint(from)&63), ^uint64(0)>>(63-uint(to-1)&63)
	if fw == tw {
		return bits.OnesCount64(b[fw] & first & last)
	}
	n := bits.OnesCount64(b[fw]&first) + bits.OnesCount64(b[tw]&last)
	for _, w := range b[fw+1 : tw] {
		n += bits.OnesCount64(w)
	}
	return n
}

// Any reports whether any bit is 1.
func (b Bitmap) Any() bool {
	for _, w := range b {
		if w != 0 {
			return true
		}
	}
	return false
}

// AnyRange reports whether a bit in [from, to) is 1.
func (b Bitmap) AnyRange(from, to int) bool {
	if from >= to {
		return false
	}
	i := b[:(to+63)>>6].Next(from)
	return i >= 0 && i < to
}

// Next returns the position of the first 1 bit at or after i, or -1.
func (b Bitmap) Next(i int) int {
	w := i >> 6
	if w >= len(b) {
		return -1
	}
	if x := b[w] >> (uint(i) & 63); x != 0 {
		return i + bits.TrailingZeros64(x)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w<<6 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// Prev returns the position of the last 1 bit at or before i, which may be -1, or -1.
func (b Bitmap) Prev(i int) int {
	if i < 0 {
		return -1
	}
	w := i >> 6
	if x := b[w] << (63 - uint(i)&63); x != 0 {
		return i - bits.LeadingZeros64(x)
	}
	for w--; w >= 0; w-- {
		if b[w] != 0 {
			return w<<6 + 63 - bits.LeadingZeros64(b[w])
		}
	}
	return -1
}

// And clears the bits of b that are 0 in o, which is as long.
func (b Bitmap) And(o Bitmap) {
	for i := range b {
		b[i] &= o[i]
	}
}

// AndNot clears the bits of b that are set in o. o has at least b's length.
func (b Bitmap) AndNot(o Bitmap) {
	for i := range b {
		b[i] &^= o[i]
	}
}
