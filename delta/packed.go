package delta

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// packed is a list of integers, stored as their differences to a straight line, each in the same
// number of bits. Integers that ascend evenly, such as the positions of lists of equal length, take
// no bit; timestamps take as many bits as the greatest difference between two.
//
// Integer i is base + i × slope / 65536 + difference i.
type packed struct {
	base, slope uint64 // base wraps around
	width, mask uint64 // bits of a difference; the highest number that they can contain
	offset      int    // of the differences in the memory that they share with other lists
	data        []byte // from there to the end of the memory, at least 8 bytes after the last difference
}

// packedPad is the number of bytes that must follow the last list in memory.
const packedPad = 8

func (p *packed) at(i int) uint64 {
	bit := uint64(i) * p.width
	return p.base + uint64(i)*p.slope>>16 + binary.LittleEndian.Uint64(p.data[bit>>3:])>>(bit&7)&p.mask
}

// read returns integers [i, i+n), which must be below 1<<32, in the memory of dst if that is large
// enough.
func (p *packed) read(dst []uint32, i, n int) []uint32 {
	dst = slices.Grow(dst[:0], n)[:n]
	line, bit := uint64(i)*p.slope, uint64(i)*p.width
	if p.width == 0 {
		for k := range dst {
			dst[k] = uint32(p.base + line>>16)
			line += p.slope
		}
		return dst
	}
	base, slope, width, mask, data := p.base, p.slope, p.width, p.mask, p.data
	k := 0
	for ; k < n && (bit&7 != 0 || n-k < 8 || width > 8); k++ {
		dst[k] = uint32(base + line>>16 + binary.LittleEndian.Uint64(data[bit>>3:])>>(bit&7)&mask)
		line, bit = line+slope, bit+width
	}
	for ; n-k >= 8; k += 8 { // eight differences of width bits are in width bytes
		word := binary.LittleEndian.Uint64(data[bit>>3:])
		for j, eight := 0, dst[k:k+8]; j < len(eight); j++ {
			eight[j] = uint32(base + line>>16 + word&mask)
			line, word = line+slope, word>>width
		}
		bit += 8 * width
	}
	for ; k < n; k++ {
		dst[k] = uint32(base + line>>16 + binary.LittleEndian.Uint64(data[bit>>3:])>>(bit&7)&mask)
		line, bit = line+slope, bit+width
	}
	return dst
}

// gather returns integers at[k]+more for all k, which must be below 1<<32, in the memory of dst if
// that is large enough.
func (p *packed) gather(dst, at []uint32, more int) []uint32 {
	dst = slices.Grow(dst[:0], len(at))[:len(at)]
	base, slope, width, mask, data := p.base, p.slope, p.width, p.mask, p.data
	for k, i := range at {
		i := uint64(i) + uint64(more)
		bit := i * width
		dst[k] = uint32(base + i*slope>>16 + binary.LittleEndian.Uint64(data[bit>>3:])>>(bit&7)&mask)
	}
	return dst
}

// attach sets the memory to which pack appended the differences.
func (p *packed) attach(memory []byte) { p.data = memory[p.offset:] }

// pack appends the differences of values to a line of the given slope.
func pack[T uint32 | uint64](memory []byte, values []T, slope uint64) (packed, []byte) {
	p := packed{slope: slope, offset: len(memory)}
	if len(values) == 0 {
		return p, memory
	}
	// The differences are signed, and base is the least of them.
	least, most := int64(values[0]), int64(values[0])
	if slope == 0 {
		low, high := values[0], values[0] // unsigned: they may exceed an int64
		for _, v := range values {
			low, high = min(low, v), max(high, v)
		}
		least, most = int64(low), int64(high)
	} else {
		for i, v := range values {
			d := int64(uint64(v) - uint64(i)*slope>>16)
			least, most = min(least, d), max(most, d)
		}
	}
	p.base = uint64(least)
	p.width = uint64(bits.Len64(uint64(most) - uint64(least)))
	if p.width > 57 {
		p.width = 64 // at reads 8 bytes, of which up to 7 bits belong to the previous integer
	}
	p.mask = 1<<p.width - 1 // all ones for 64, since a shift by 64 gives 0
	memory = growBytes(memory, (len(values)*int(p.width)+7)/8+packedPad)
	if place := memory[p.offset:]; p.width > 0 {
		rest, n := uint64(0), uint64(0) // n < 8 bits that do not fill a byte
		for i, v := range values {
			rest |= (uint64(v) - uint64(i)*slope>>16 - p.base) << n
			n += p.width
			binary.LittleEndian.PutUint64(place, rest)
			place, rest, n = place[n>>3:], rest>>(n&^7), n&7
		}
	}
	return p, memory[:len(memory)-packedPad]
}

// slopeOf returns the slope of a line through the first and the last of ascending values.
func slopeOf(values []uint32) uint64 {
	n := len(values)
	if n < 2 {
		return 0
	}
	return uint64(values[n-1]-values[0]) << 16 / uint64(n-1)
}

// growBytes appends n zeros.
func growBytes(b []byte, n int) []byte {
	size := len(b) + n
	if size <= cap(b) {
		clear(b[len(b):size])
		return b[:size]
	}
	return append(b, make([]byte, n)...)
}
