package compress

import (
	"encoding/binary"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// inflater unpacks a DEFLATE stream into memory that has the size of the result. Input, output, and
// window are whole buffers, so nothing is read in pieces, nothing is copied twice, and no call
// crosses an interface. That is why it is faster than libraries that serve streams: see
// docs/decisions/0024-own-inflater.md. FuzzInflate compares it with the standard library.
//
// Bits are taken from the low end of a word of 64. While input and output are far from their ends,
// compressedFast refills the word without a branch; compressedSlow does the rest. Source: RFC 1951.
type inflater struct {
	src     []byte
	p       int    // the next byte of src
	b       uint64 // bits taken from src and not used yet, from the lowest
	n       uint   // how many bits of b are valid; those above are 0 or equal src[p:]
	missing uint   // how many of them are zeros after the end of src

	literals  [1<<literalBits + maxLiterals/2<<(maxCodeLen-literalBits)]uint32
	distances [1<<distanceBits + maxDistances/2<<(maxCodeLen-distanceBits)]uint32
	codeLens  [1 << codeLenBits]uint32
	lens      [maxLiterals + maxDistances]uint8
}

const (
	wordBits  = 56      // bits that are valid after a refill, at least
	distBits  = 15 + 13 // most bits of a distance, with its extra bits
	maxMatch  = 258
	chunk     = 16                   // bytes of a match that are copied at a time
	srcMargin = 16                   // input that compressedFast reads in one step, at most
	dstMargin = 2 + maxMatch + chunk // output that it writes in one step, at most
)

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

var (
	errInflateShort    = fault.Corruptf("compress: deflate: the stream is cut off")
	errInflateType     = fault.Corruptf("compress: deflate: unknown type of block")
	errInflateLonger   = fault.Corruptf("compress: deflate: more bytes than expected")
	errInflateStored   = fault.Corruptf("compress: deflate: the length of a stored block is wrong")
	errInflateTables   = fault.Corruptf("compress: deflate: malformed codes")
	errInflateCode     = fault.Corruptf("compress: deflate: unknown code")
	errInflateDistance = fault.Corruptf("compress: deflate: a distance leads before the start")
)

// inflate unpacks the stream at the front of src into dst, which it must fill, and returns the
// bytes after it.
func inflate(dst, src []byte) (rest []byte, err error) {
	z := inflaters.Get().(*inflater)
	rest, err = z.inflate(dst, src)
	z.src = nil
	inflaters.Put(z)
	return rest, err
}

func (z *inflater) inflate(dst, src []byte) (rest []byte, err error) {
	z.src, z.p, z.b, z.n, z.missing = src, 0, 0, 0, 0
	o := 0
	for last := false; !last; {
		z.refill()
		last = z.take(1) == 1
		switch z.take(2) {
		case 0:
			o, err = z.stored(dst, o)
		case 1:
			z.fixed()
			o, err = z.compressed(dst, o)
		case 2:
			if err = z.dynamic(); err == nil {
				o, err = z.compressed(dst, o)
			}
		default:
			err = errInflateType
		}
		if err != nil {
			return nil, err
		}
	}
	if !z.align() {
		return nil, errInflateShort
	}
	if o != len(dst) {
		return nil, fault.Corruptf("compress: deflate: %d bytes, want %d", o, len(dst))
	}
	return src[z.p:], nil
}

// refill makes at least wordBits bits available, zeros after the end of src.
func (z *inflater) refill() {
	if z.p+8 <= len(z.src) {
		z.b |= binary.LittleEndian.Uint64(z.src[z.p:]) << (z.n & 63)
		z.p += int((63 - z.n) >> 3)
		z.n |= wordBits
		return
	}
	for z.n < wordBits {
		if z.p < len(z.src) {
			z.b |= uint64(z.src[z.p]) << (z.n & 63)
			z.p++
		} else {
			z.missing += 8
		}
		z.n += 8
	}
}

// take returns the next n bits, which refill has made available.
func (z *inflater) take(n uint) uint {
	v := uint(z.b) & (1<<n - 1)
	z.b >>= n
	z.n -= n
	return v
}

// overrun reports whether bits after the end of src were used.
func (z *inflater) overrun() bool { return z.n < z.missing }

// align drops the bits up to the next byte of src, and gives back the bytes that were read ahead.
// It returns false if bits after the end of src were used.
func (z *inflater) align() bool {
	if z.overrun() {
		return false
	}
	z.p -= int((z.n - z.missing) / 8)
	z.b, z.n, z.missing = 0, 0, 0
	return true
}

// stored copies a block that is not compressed.
func (z *inflater) stored(dst []byte, o int) (int, error) {
	const lengthLen = 4 // the length and its complement
	if !z.align() || len(z.src)-z.p < lengthLen {
		return o, errInflateShort
	}
	n := int(binary.LittleEndian.Uint16(z.src[z.p:]))
	if uint16(n) != ^binary.LittleEndian.Uint16(z.src[z.p+2:]) {
		return o, errInflateStored
	}
	z.p += lengthLen
	if n > len(z.src)-z.p {
		return o, errInflateShort
	}
	if n > len(dst)-o {
		return o, errInflateLonger
	}
	copy(dst[o:], z.src[z.p:z.p+n])
	z.p += n
	return o + n, nil
}

// compressed unpacks a block of codes to dst, from o on, and returns where it ends.
func (z *inflater) compressed(dst []byte, o int) (int, error) {
	o, done, err := z.compressedFast(dst, o)
	if done || err != nil {
		return o, err
	}
	return z.compressedSlow(dst, o)
}

// compressedFast is compressed as long as input and output are far from their ends. done is true at
// the end of the block.
//
// A refill makes 56 bits available: enough for two literals from the first table, 22 bits, and a
// length, 20 bits; what is left is an index into the table of distances. After a second refill they
// are enough for a distance, 28 bits, and the next index. Each entry is loaded before the refill,
// so that the CPU does both at the same time.
func (z *inflater) compressedFast(dst []byte, o int) (_ int, done bool, err error) {
	src, p, b, n := z.src, z.p, z.b, uint32(z.n)
	srcEnd, dstEnd := len(src)-srcMargin, len(dst)-dstMargin
	if p > srcEnd || o > dstEnd {
		return o, false, nil
	}
	// Only the lowest 8 bits of n are valid in the loop.
	b |= binary.LittleEndian.Uint64(src[p:]) << (n & 63)
	p += 7 - int(n>>3&7)
	n |= wordBits
	for e := z.literals[b&(1<<literalBits-1)]; p <= srcEnd && o <= dstEnd; e = z.literals[b&(1<<literalBits-1)] {
		b |= binary.LittleEndian.Uint64(src[p:]) << (n & 63)
		p += 7 - int(n>>3&7)
		n |= wordBits
		before := b
		b >>= e & 63
		n -= e
		if int32(e) < 0 {
			dst[o] = byte(e >> 16)
			o++
			e = z.literals[b&(1<<literalBits-1)]
			before = b
			b >>= e & 63
			n -= e
			if int32(e) < 0 {
				dst[o] = byte(e >> 16)
				o++
				e = z.literals[b&(1<<literalBits-1)]
				before = b
				b >>= e & 63
				n -= e
				if int32(e) < 0 {
					dst[o] = byte(e >> 16)
					o++
					continue
				}
			}
		}
		if e&entrySpecial != 0 {
			if e&entryLink != 0 {
				e = z.literals[e>>16+uint32(b)&(1<<(e>>8&15)-1)]
				before = b
				b >>= e & 63
				n -= e
			}
			if int32(e) < 0 {
				dst[o] = byte(e >> 16)
				o++
				continue
			}
			if e&entryEnd != 0 {
				done = true
				break
			}
			if e&entrySpecial != 0 {
				return o, false, errInflateCode
			}
		}
		length := int(e>>16) + int(before&(1<<(e&63)-1)>>(e>>8&15))

		d := z.distances[b&(1<<distanceBits-1)]
		b |= binary.LittleEndian.Uint64(src[p:]) << (n & 63)
		p += 7 - int(n>>3&7)
		n |= wordBits
		if d&entrySpecial != 0 {
			b >>= d & 63
			n -= d
			if d&entryLink == 0 {
				return o, false, errInflateCode
			}
			d = z.distances[d>>16+uint32(b)&(1<<(d>>8&15)-1)]
			if d&entrySpecial != 0 {
				return o, false, errInflateCode
			}
		}
		distance := int(d>>16) + int(b&(1<<(d&63)-1)>>(d>>8&15))
		b >>= d & 63
		n -= d
		if distance > o {
			return o, false, errInflateDistance
		}
		from, end := o-distance, o+length
		switch {
		case distance >= chunk:
			for ; o < end; o, from = o+chunk, from+chunk {
				*(*[chunk]byte)(dst[o:]) = *(*[chunk]byte)(dst[from:])
			}
		case distance >= 8:
			for ; o < end; o, from = o+8, from+8 {
				*(*[8]byte)(dst[o:]) = *(*[8]byte)(dst[from:])
			}
		default:
			for ; o < end; o, from = o+1, from+1 {
				dst[o] = dst[from]
			}
		}
		o = end
	}
	z.p, z.b, z.n = p, b, uint(uint8(n))
	return o, done, nil
}

// compressedSlow is compressed up to the ends of input and output.
func (z *inflater) compressedSlow(dst []byte, o int) (int, error) {
	for {
		z.refill()
		e := z.next(z.literals[:], literalBits)
		switch {
		case z.overrun():
			return o, errInflateShort
		case int32(e) < 0:
			if o == len(dst) {
				return o, errInflateLonger
			}
			dst[o] = byte(e >> 16)
			o++
			continue
		case e&entryEnd != 0:
			return o, nil
		case e&entrySpecial != 0:
			return o, errInflateCode
		}
		length := z.value(e)
		d := z.next(z.distances[:], distanceBits)
		if d&entrySpecial != 0 {
			return o, errInflateCode
		}
		distance := z.value(d)
		switch {
		case z.overrun():
			return o, errInflateShort
		case distance > o:
			return o, errInflateDistance
		case length > len(dst)-o:
			return o, errInflateLonger
		}
		for end := o + length; o < end; o++ {
			dst[o] = dst[o-distance]
		}
	}
}

// next returns the entry of the next code, whose bits it uses except for the extra bits.
func (z *inflater) next(table []uint32, index uint) uint32 {
	e := table[uint(z.b)&(1<<index-1)]
	if e&entryLink != 0 {
		z.take(index)
		e = table[e>>16+uint32(z.b)&(1<<(e>>8&15)-1)]
	}
	z.take(uint(e >> 8 & 15))
	return e
}

// value returns the length or distance of an entry that next returned.
func (z *inflater) value(e uint32) int {
	return int(e>>16) + int(z.take(uint(e&63-e>>8&15)))
}
