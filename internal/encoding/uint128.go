package encoding

import (
	"cmp"
	"encoding/binary"
	"math/bits"
)

// uint128 is an unsigned number of 128 bits, or a set of bit numbers.
type uint128 struct{ lo, hi uint64 }

// bit128 returns 2^i, i in 0 … 127.
func bit128(i int) uint128 {
	if i >= 64 {
		return uint128{hi: 1 << (i - 64)}
	}
	return uint128{lo: 1 << i}
}

// shift128 returns x·2^n, n in 0 … 127.
func shift128(x uint64, n int) uint128 {
	if n >= 64 {
		return uint128{hi: x << (n & 63)}
	}
	return uint128{x << n, x >> 1 >> (63 - n)}
}

// low128 returns 2^n − 1, n in 0 … 128.
func low128(n int) uint128 {
	if n > 64 {
		return uint128{allOnes, lowBits(n - 64)}
	}
	return uint128{lo: lowBits(n)}
}

func (x uint128) and(y uint128) uint128    { return uint128{x.lo & y.lo, x.hi & y.hi} }
func (x uint128) andNot(y uint128) uint128 { return uint128{x.lo &^ y.lo, x.hi &^ y.hi} }
func (x uint128) or(y uint128) uint128     { return uint128{x.lo | y.lo, x.hi | y.hi} }
func (x uint128) xor(y uint128) uint128    { return uint128{x.lo ^ y.lo, x.hi ^ y.hi} }

// word returns the word that has bit i, which is its bit i mod 64.
func (x uint128) word(i int) uint64 {
	if i >= 64 {
		return x.hi
	}
	return x.lo
}

// bit returns bit i as 0 or 1.
func (x uint128) bit(i int) uint64 { return x.word(i) >> (i & 63) & 1 }

// highest returns the number of the highest 1 in x, or -1.
func (x uint128) highest() int {
	if x.hi != 0 {
		return 64 + bits.Len64(x.hi) - 1
	}
	return bits.Len64(x.lo) - 1
}

func (x uint128) inc() uint128 {
	lo, carry := bits.Add64(x.lo, 1, 0)
	return uint128{lo, x.hi + carry}
}

func (x uint128) dec() uint128 {
	lo, borrow := bits.Sub64(x.lo, 1, 0)
	return uint128{lo, x.hi - borrow}
}

// times returns the low 128 bits of x·n.
func (x uint128) times(n uint64) uint128 {
	hi, lo := bits.Mul64(x.lo, n)
	return uint128{lo, hi + x.hi*n}
}

// put writes x to the bytes of a cell.
func (x uint128) put(cell *[maxWidth]byte) {
	binary.LittleEndian.PutUint64(cell[:], x.lo)
	binary.LittleEndian.PutUint64(cell[8:], x.hi)
}

func (x uint128) compare(y uint128) int {
	if c := cmp.Compare(x.hi, y.hi); c != 0 {
		return c
	}
	return cmp.Compare(x.lo, y.lo)
}
