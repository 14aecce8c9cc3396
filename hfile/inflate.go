package hfile

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// inflater unpacks a whole gzip member into memory of the exact size. Scans of GZ files spend nearly
// all their time here. Without a window, a reader below, and results in pieces, it takes three
// quarters of the time of klauspost/compress, which has to serve streams: 349 instead of 259 MB/s
// for blocks of cells without encoding. FuzzGunzip compares it with the standard library.
//
// Source: RFC 1951 and RFC 1952.
type inflater struct {
	src  []byte
	p    int    // next byte of src
	b    uint64 // bits read ahead, from the lowest
	n    uint   // number of bits in b
	fake uint   // how many of them are zeros after the end of src

	literals  [1<<literalBits + maxLiterals<<(maxCodeLen-literalBits)]uint32
	distances [1<<distanceBits + maxDistances<<(maxCodeLen-distanceBits)]uint32
	codeLens  [1 << codeLenBits]uint32
	lens      [maxLiterals + maxDistances]uint8
}

const (
	maxCodeLen   = 15
	literalBits  = 11 // of the index into a table; longer codes continue in a second one
	distanceBits = 9
	codeLenBits  = 7
	maxLiterals  = 288
	maxDistances = 32
	maxMatch     = 258
	symbolBits   = 48 // most bits of a length and a distance, with their extra bits
)

// Entry of a table of codes. 0 is no code.
//
//	bits 0 to 3    length of the code, in a second table without its first bits
//	bits 4 to 7    extra bits of a length or distance; in a link: bits of the index
//	bits 8 to 10   flags
//	bits 16 to 31  literal, or least length or distance; in a link: the start of the second table
const (
	flagLiteral = 1 << 8
	flagEnd     = 1 << 9
	flagLink    = 1 << 10
)

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// errDeflate is the error of malformed data.
func errDeflate(problem string) error { return fault.Corruptf("%v: %s", GZ, problem) }

// gunzip unpacks the gzip member src, which must unpack to exactly len(dst) bytes and be followed by
// nothing: readers of HFiles look for no second member.
func gunzip(dst, src []byte) error {
	body, err := gzipBody(src)
	if err != nil {
		return err
	}
	z := inflaters.Get().(*inflater)
	rest, err := z.inflate(dst, body)
	z.src = nil
	inflaters.Put(z)
	if err != nil {
		return err
	}
	const trailerLen = 8
	switch {
	case len(rest) < trailerLen:
		return errDeflate("no checksum at the end")
	case len(rest) > trailerLen:
		return fault.Corruptf("%v: %d bytes after the member", GZ, len(rest)-trailerLen)
	case binary.LittleEndian.Uint32(rest) != crc32.ChecksumIEEE(dst) || binary.LittleEndian.Uint32(rest[4:]) != uint32(len(dst)):
		return errDeflate("checksum or length is wrong")
	}
	return nil
}

// gzipBody returns what follows the header of a gzip member.
func gzipBody(src []byte) ([]byte, error) {
	const (
		headerLen                             = 10
		hasCRC, hasExtra, hasName, hasComment = 1 << 1, 1 << 2, 1 << 3, 1 << 4
	)
	if len(src) < headerLen || src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return nil, errDeflate("header: not a gzip member")
	}
	flags, rest := src[3], src[headerLen:]
	if flags&hasExtra != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return nil, errDeflate("header: the extra field is cut off")
		}
		rest = rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	for _, flag := range []byte{hasName, hasComment} {
		if flags&flag == 0 {
			continue
		}
		n := 0
		for n < len(rest) && rest[n] != 0 {
			n++
		}
		if n == len(rest) {
			return nil, errDeflate("header: a text is cut off")
		}
		rest = rest[n+1:]
	}
	if flags&hasCRC != 0 {
		header := src[:len(src)-len(rest)]
		if len(rest) < 2 || binary.LittleEndian.Uint16(rest) != uint16(crc32.ChecksumIEEE(header)) {
			return nil, errDeflate("header: its checksum is wrong")
		}
		rest = rest[2:]
	}
	return rest, nil
}

// refill makes at least 56 bits available, zeros after the end of src.
func (z *inflater) refill() {
	if z.p+8 <= len(z.src) {
		z.b |= binary.LittleEndian.Uint64(z.src[z.p:]) << z.n
		z.p += int((63 - z.n) >> 3)
		z.n |= 56
		return
	}
	for z.n <= 56 {
		if z.p < len(z.src) {
			z.b |= uint64(z.src[z.p]) << z.n
			z.p++
		} else {
			z.fake += 8
		}
		z.n += 8
	}
}

// take returns the next bits, which refill has made available.
func (z *inflater) take(n uint) uint {
	v := uint(z.b) & (1<<n - 1)
	z.b >>= n
	z.n -= n
	return v
}

// align drops the bits up to the next byte of src, and gives back the bytes that were read ahead. It
// returns false if bits after the end of src were used.
func (z *inflater) align() bool {
	if z.n < z.fake {
		return false
	}
	z.p -= int((z.n - z.fake) / 8)
	z.b, z.n, z.fake = 0, 0, 0
	return true
}

// inflate unpacks src into dst, which it must fill, and returns the bytes after the last block.
func (z *inflater) inflate(dst, src []byte) (rest []byte, err error) {
	z.src, z.p, z.b, z.n, z.fake = src, 0, 0, 0, 0
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
			err = errDeflate("unknown type of block")
		}
		if err != nil {
			return nil, err
		}
		if z.n < z.fake {
			return nil, errDeflate("cut off")
		}
	}
	if !z.align() {
		return nil, errDeflate("cut off")
	}
	if o != len(dst) {
		return nil, fault.Corruptf("%v: %d bytes, want %d", GZ, o, len(dst))
	}
	return src[z.p:], nil
}

// stored copies a block that is not compressed.
func (z *inflater) stored(dst []byte, o int) (int, error) {
	if !z.align() || len(z.src)-z.p < 4 {
		return 0, errDeflate("cut off")
	}
	n := int(binary.LittleEndian.Uint16(z.src[z.p:]))
	if uint16(n) != ^binary.LittleEndian.Uint16(z.src[z.p+2:]) {
		return 0, errDeflate("the length of a stored block is wrong")
	}
	z.p += 4
	if n > len(z.src)-z.p || n > len(dst)-o {
		return 0, errDeflate("a stored block is longer than its input or output")
	}
	copy(dst[o:], z.src[z.p:z.p+n])
	z.p += n
	return o + n, nil
}

// fixed makes the tables of fixed codes.
func (z *inflater) fixed() {
	lens := z.lens[:maxLiterals+maxDistances]
	for i := range lens {
		switch {
		case i < 144:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		case i < 280:
			lens[i] = 7
		case i < maxLiterals:
			lens[i] = 8
		default:
			lens[i] = 5
		}
	}
	buildTable(z.literals[:], lens[:maxLiterals], literalBits, literalEntry)
	buildTable(z.distances[:], lens[maxLiterals:], distanceBits, distanceEntry)
}

// dynamic reads the lengths of codes and makes their tables.
func (z *inflater) dynamic() error {
	order := [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
	z.refill()
	literals, distances, n := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if literals > 286 || distances > 30 {
		return errDeflate("too many codes")
	}
	var codeLens [19]uint8
	for _, symbol := range order[:n] {
		z.refill()
		codeLens[symbol] = uint8(z.take(3))
	}
	if !buildTable(z.codeLens[:], codeLens[:], codeLenBits, func(symbol int) uint32 { return uint32(symbol)<<16 | flagLiteral }) {
		return errDeflate("malformed lengths of codes")
	}
	lens := z.lens[:literals+distances]
	for i := 0; i < len(lens); {
		z.refill()
		e := z.codeLens[z.b&(1<<codeLenBits-1)]
		if e == 0 || z.n < z.fake {
			return errDeflate("malformed lengths of codes")
		}
		z.take(uint(e & 15))
		symbol := uint8(e >> 16)
		if symbol < 16 {
			lens[i] = symbol
			i++
			continue
		}
		value, count := uint8(0), 0
		switch symbol {
		case 16:
			if i == 0 {
				return errDeflate("malformed lengths of codes")
			}
			value, count = lens[i-1], 3+int(z.take(2))
		case 17:
			count = 3 + int(z.take(3))
		default:
			count = 11 + int(z.take(7))
		}
		if count > len(lens)-i {
			return errDeflate("malformed lengths of codes")
		}
		for range count {
			lens[i] = value
			i++
		}
	}
	if lens[256] == 0 || !buildTable(z.literals[:], lens[:literals], literalBits, literalEntry) ||
		!buildTable(z.distances[:], lens[literals:], distanceBits, distanceEntry) {
		return errDeflate("malformed codes")
	}
	return nil
}

// literalEntry returns the entry of a literal or length, without the length of its code, 0 if there
// is no such symbol.
func literalEntry(symbol int) uint32 {
	switch {
	case symbol < 256:
		return uint32(symbol)<<16 | flagLiteral
	case symbol == 256:
		return flagEnd
	case symbol < 265:
		return uint32(symbol-257+3) << 16
	case symbol < 285:
		extra := uint32(symbol-261) / 4
		return (uint32(symbol-265)%4+4)<<extra<<16 + 3<<16 | extra<<4
	case symbol == 285:
		return maxMatch << 16
	}
	return 0
}

// distanceEntry is literalEntry for a distance.
func distanceEntry(symbol int) uint32 {
	switch {
	case symbol < 4:
		return uint32(symbol+1) << 16
	case symbol < 30:
		extra := uint32(symbol-2) / 2
		return (uint32(symbol)%2+2)<<extra<<16 + 1<<16 | extra<<4
	}
	return 0
}

// buildTable makes the table of the codes with the given lengths. The first index bits of a code are
// an index; longer codes continue in a second table. It returns false if the codes are not exactly
// those of a tree, or a single code of one bit; a table without any code is possible.
func buildTable(table []uint32, lens []uint8, index uint, entry func(symbol int) uint32) bool {
	var count [maxCodeLen + 1]int
	for _, l := range lens {
		count[l]++
	}
	count[0] = 0
	clear(table[:1<<index])
	var next [maxCodeLen + 2]int
	code, longest := 0, uint(0)
	for l := uint(1); l <= maxCodeLen; l++ {
		code = (code + count[l-1]) << 1
		next[l] = code
		if count[l] > 0 {
			longest = l
		}
	}
	if longest == 0 {
		return true
	}
	used := next[longest] + count[longest]
	if used != 1<<longest && !(longest == 1 && used == 1) {
		return false
	}
	for l := uint(1); l <= longest; l++ { // a length with more codes than fit shows in none of the sums above
		if next[l]+count[l] > 1<<l {
			return false
		}
	}
	second := 1 << index // start of the next second table
	rest := uint(0)
	if longest > index {
		rest = longest - index
	}
	for symbol, l := range lens {
		if l == 0 {
			continue
		}
		l := uint(l)
		code := uint(bits.Reverse16(uint16(next[l])) >> (16 - l))
		next[l]++
		e := entry(symbol)
		if e == 0 {
			continue // a symbol that must not occur
		}
		if l <= index {
			for i := code; i < 1<<index; i += 1 << l {
				table[i] = e | uint32(l)
			}
			continue
		}
		prefix := code & (1<<index - 1)
		if table[prefix] == 0 {
			table[prefix] = uint32(second)<<16 | flagLink | uint32(rest)<<4 | uint32(index)
			clear(table[second : second+1<<rest])
			second += 1 << rest
		}
		start := table[prefix] >> 16
		for i := code >> index; i < 1<<rest; i += 1 << (l - index) {
			table[start+uint32(i)] = e | uint32(l-index)
		}
	}
	return true
}

// compressed unpacks a block of codes to dst, from o on, and returns the new o.
func (z *inflater) compressed(dst []byte, o int) (int, error) {
	o, done, err := z.compressedFast(dst, o)
	if done || err != nil {
		return o, err
	}
	for {
		z.refill()
		if z.n < z.fake {
			return 0, errDeflate("cut off")
		}
		// One refill is enough for a match, and for a literal or two before it.
		for z.n >= symbolBits {
			e := z.literals[z.b&(1<<literalBits-1)]
			if e&flagLink != 0 {
				z.b >>= literalBits
				z.n -= literalBits
				e = z.literals[e>>16+uint32(z.b)&(1<<(e>>4&15)-1)]
			}
			if e == 0 {
				return 0, errDeflate("unknown code")
			}
			z.b >>= e & 15
			z.n -= uint(e & 15)
			if e&flagLiteral != 0 {
				if o == len(dst) {
					return 0, fault.Corruptf("%v: more than %d bytes", GZ, len(dst))
				}
				dst[o] = byte(e >> 16)
				o++
				continue
			}
			if e&flagEnd != 0 {
				return o, nil
			}
			length := int(e>>16) + int(z.take(uint(e>>4&15)))
			e = z.distances[z.b&(1<<distanceBits-1)]
			if e&flagLink != 0 {
				z.b >>= distanceBits
				z.n -= distanceBits
				e = z.distances[e>>16+uint32(z.b)&(1<<(e>>4&15)-1)]
			}
			if e == 0 {
				return 0, errDeflate("unknown code")
			}
			z.b >>= e & 15
			z.n -= uint(e & 15)
			distance := int(e>>16) + int(z.take(uint(e>>4&15)))
			if distance > o {
				return 0, errDeflate("a distance leads before the start")
			}
			if length > len(dst)-o {
				return 0, fault.Corruptf("%v: more than %d bytes", GZ, len(dst))
			}
			copyMatch(dst, o, distance, length)
			o += length
			break
		}
	}
}

// compressedFast is compressed as long as input and output are far from their ends. done is true at
// the end of the block.
func (z *inflater) compressedFast(dst []byte, o int) (_ int, done bool, err error) {
	src, p, b, n := z.src, z.p, z.b, z.n
	for p+8 <= len(src) && len(dst)-o >= maxMatch+2*64 {
		b |= binary.LittleEndian.Uint64(src[p:]) << (n & 63)
		p += int((63 - n) >> 3)
		n |= 56
		e := z.literals[b&(1<<literalBits-1)]
		for e&flagLiteral != 0 && n >= literalBits {
			b >>= e & 15
			n -= uint(e & 15)
			dst[o] = byte(e >> 16)
			o++
			e = z.literals[b&(1<<literalBits-1)]
		}
		if n < symbolBits {
			continue
		}
		if e&flagLink != 0 {
			b >>= literalBits
			n -= literalBits
			e = z.literals[e>>16+uint32(b)&(1<<(e>>4&15)-1)]
		}
		b >>= e & 15
		n -= uint(e & 15)
		if e&flagLiteral != 0 {
			dst[o] = byte(e >> 16)
			o++
			continue
		}
		if e&flagEnd != 0 {
			done = true
			break
		}
		extra := e >> 4 & 15
		length := int(e>>16) + int(b&(1<<extra-1))
		b >>= extra
		n -= uint(extra)
		d := z.distances[b&(1<<distanceBits-1)]
		if d&flagLink != 0 {
			b >>= distanceBits
			n -= distanceBits
			d = z.distances[d>>16+uint32(b)&(1<<(d>>4&15)-1)]
		}
		if e == 0 || d == 0 {
			return 0, false, errDeflate("unknown code")
		}
		b >>= d & 15
		n -= uint(d & 15)
		extra = d >> 4 & 15
		distance := int(d>>16) + int(b&(1<<extra-1))
		b >>= extra
		n -= uint(extra)
		if distance > o {
			return 0, false, errDeflate("a distance leads before the start")
		}
		copyMatch(dst, o, distance, length)
		o += length
	}
	z.p, z.b, z.n = p, b, n
	return o, done, nil
}

// copyMatch copies length bytes, which begin distance bytes before o, to o. They may overlap.
func copyMatch(dst []byte, o, distance, length int) {
	if distance >= 8 && len(dst)-o >= length+8 {
		// Whole words: what is written too much is overwritten by what follows.
		from, to := dst[o-distance:], dst[o:]
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
		}
		return
	}
	if distance >= length {
		copy(dst[o:o+length], dst[o-distance:])
		return
	}
	for i := o; i < o+length; i++ {
		dst[i] = dst[i-distance]
	}
}
