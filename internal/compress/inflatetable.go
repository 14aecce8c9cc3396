package compress

import "math/bits"

// Entry of a table of codes, which the next bits of the input select. A code that is shorter than
// the index of its table has several entries.
//
//	bits 0 to 7    bits of the code and the extra bits after it; after a link: without its first bits
//	bits 8 to 11   bits of the code alone; in a link: bits of the index into the second table
//	bits 12 to 14  flags
//	bits 16 to 30  literal, or least length or distance; in a link: start of the second table
//	bit 31         the code is a literal
//
// entrySpecial without another flag is no code.
const (
	entryLiteral = 1 << 31
	entrySpecial = 1 << 12 // neither a literal nor a length nor a distance
	entryEnd     = 1 << 13 // of the block
	entryLink    = 1 << 14 // to a second table; the code is longer than the index
	entryCodeLen = 1<<8 | 1
)

const (
	maxCodeLen   = 15
	maxLiterals  = 288
	maxDistances = 32
	endOfBlock   = 256
	literalBits  = 11 // of the index of a table; longer codes continue in a second one
	distanceBits = 9
	codeLenBits  = 7
)

// The entries of all symbols, without the lengths of their codes.
var (
	literalEntries  = makeLiteralEntries()
	distanceEntries = makeDistanceEntries()
	codeLenEntries  = makeCodeLenEntries()
)

func makeLiteralEntries() (entries [maxLiterals]uint32) {
	for symbol := range uint32(maxLiterals) {
		e := uint32(entrySpecial)
		switch {
		case symbol < endOfBlock:
			e = symbol<<16 | entryLiteral
		case symbol == endOfBlock:
			e |= entryEnd
		case symbol < 265:
			e = (symbol - 257 + 3) << 16
		case symbol < 285:
			extra := (symbol - 261) / 4
			e = ((symbol-265)%4+4)<<extra<<16 + 3<<16 | extra
		case symbol == 285:
			e = maxMatch << 16
		}
		entries[symbol] = e
	}
	return entries
}

func makeDistanceEntries() (entries [maxDistances]uint32) {
	for symbol := range uint32(maxDistances) {
		e := uint32(entrySpecial)
		switch {
		case symbol < 4:
			e = (symbol + 1) << 16
		case symbol < 30:
			extra := (symbol - 2) / 2
			e = (symbol%2+2)<<extra<<16 + 1<<16 | extra
		}
		entries[symbol] = e
	}
	return entries
}

func makeCodeLenEntries() (entries [19]uint32) {
	for symbol := range entries {
		entries[symbol] = uint32(symbol) << 16
	}
	return entries
}

// makeTable makes the table of the codes with the given lengths, one for each symbol, 0 for none.
// The first index bits of a code select its entry, and longer codes continue in second tables, of
// which there are at most half as many as symbols. It returns false unless the lengths describe a
// complete tree, or no code, or one code of one bit.
func makeTable(table []uint32, index uint, lens []uint8, entries []uint32) bool {
	var count, next [maxCodeLen + 1]uint16
	for _, l := range lens {
		count[l&15]++
	}
	codes := len(lens) - int(count[0])
	free, sum, longest := 1, uint16(0), uint(0)
	for l := uint(1); l <= maxCodeLen; l++ {
		next[l] = sum
		sum += count[l]
		if free = free<<1 - int(count[l]); free < 0 {
			return false
		}
		if count[l] > 0 {
			longest = l
		}
	}
	if free > 0 && codes > 0 && (codes > 1 || longest > 1) {
		return false
	}
	var sorted [maxLiterals]uint16 // by length
	for symbol, l := range lens {
		if l > 0 {
			sorted[next[l&15]] = uint16(symbol)
			next[l&15]++
		}
	}
	if free > 0 {
		for i := range table[:1<<index] {
			table[i] = entrySpecial
			if codes > 0 && i%2 == 0 {
				table[i] = entries[sorted[0]] + entryCodeLen
			}
		}
		return true
	}

	// Codes are read from their first bit, which is the lowest one of an index. With each further
	// bit the table doubles, since the codes so far do not depend on it.
	code, symbols := uint(0), sorted[:codes]
	for l := uint(1); l <= index; l++ {
		half := uint(1) << (l - 1)
		copy(table[half:2*half], table[:half])
		for range count[l] {
			table[code] = entries[symbols[0]] + uint32(l)*entryCodeLen
			code, symbols = nextCode(code, l), symbols[1:]
		}
	}
	if longest <= index {
		return true
	}
	rest := longest - index
	start, end, link := uint(0), uint(1)<<index, ^uint(0)
	for l := index + 1; l <= longest; l++ {
		for range count[l] {
			if first := code & (1<<index - 1); first != link {
				link, start = first, end
				end += 1 << rest
				table[link] = uint32(start)<<16 | entrySpecial | entryLink | uint32(rest)<<8 | uint32(index)
			}
			e := entries[symbols[0]] + uint32(l-index)*entryCodeLen
			for i := code >> index; i < 1<<rest; i += 1 << (l - index) {
				table[start+i] = e
			}
			code, symbols = nextCode(code, l), symbols[1:]
		}
	}
	return true
}

// nextCode returns the code of l bits after the given one, both with their first bit lowest. After
// the last code it returns the same.
func nextCode(code, l uint) uint {
	zeros := ^code & (1<<l - 1)
	if zeros == 0 {
		return code
	}
	bit := uint(1) << (bits.Len(zeros) - 1)
	return code&(bit-1) | bit
}

// fixed makes the tables of the fixed codes. Source: RFC 1951 §3.2.6.
func (z *inflater) fixed() {
	lens := z.lens[:]
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
	makeTable(z.literals[:], literalBits, lens[:maxLiterals], literalEntries[:])
	makeTable(z.distances[:], distanceBits, lens[maxLiterals:], distanceEntries[:])
}

// codeLenOrder is the order in which the lengths of the codes for lengths are stored.
var codeLenOrder = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the lengths of codes and makes their tables. Source: RFC 1951 §3.2.7.
func (z *inflater) dynamic() error {
	z.refill()
	literals, distances, n := int(z.take(5))+257, int(z.take(5))+1, int(z.take(4))+4
	if literals > 286 || distances > 30 {
		return errInflateTables
	}
	var codeLens [len(codeLenOrder)]uint8
	for _, symbol := range codeLenOrder[:n] {
		z.refill()
		codeLens[symbol] = uint8(z.take(3))
	}
	if !makeTable(z.codeLens[:], codeLenBits, codeLens[:], codeLenEntries[:]) {
		return errInflateTables
	}
	lens := z.lens[:literals+distances]
	for i := 0; i < len(lens); {
		z.refill()
		e := z.next(z.codeLens[:], codeLenBits)
		if e&entrySpecial != 0 {
			return errInflateTables
		}
		value, count := uint8(e>>16), 1
		switch value {
		case 16:
			if i == 0 {
				return errInflateTables
			}
			value, count = lens[i-1], 3+int(z.take(2))
		case 17:
			value, count = 0, 3+int(z.take(3))
		case 18:
			value, count = 0, 11+int(z.take(7))
		}
		if z.overrun() {
			return errInflateShort
		}
		if count > len(lens)-i {
			return errInflateTables
		}
		for range count {
			lens[i] = value
			i++
		}
	}
	if lens[endOfBlock] == 0 ||
		!makeTable(z.literals[:], literalBits, lens[:literals], literalEntries[:]) ||
		!makeTable(z.distances[:], distanceBits, lens[literals:], distanceEntries[:]) {
		return errInflateTables
	}
	return nil
}
