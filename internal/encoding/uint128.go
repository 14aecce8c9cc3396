package encoding

import (
	"cmp"
	"math/bits"
)

// uint128 is an unsigned number of 128 bits, or a set of bit numbers: the low word first.
type uint128 [2]uint64

// bit128 returns 2^i, i in 0 … 127.
func bit128(i int) (x uint128) {
	x[i>>6] = 1 << (i & 63)
	return x
}

// low128 returns 2^n − 1, n in 0 … 128.
func low128(n int) uint128 {
	if n <= 64 {
		return uint128{lowBits(n), 0}
	}
	return uint128{^uint64(0), lowBits(n - 64)}
}

func (x uint128) and(y uint128) uint128    { return uint128{x[0] & y[0], x[1] & y[1]} }
func (x uint128) andNot(y uint128) uint128 { return uint128{x[0] &^ y[0], x[1] &^ y[1]} }
func (x uint128) or(y uint128) uint128     { return uint128{x[0] | y[0], x[1] | y[1]} }
func (x uint128) xor(y uint128) uint128    { return uint128{x[0] ^ y[0], x[1] ^ y[1]} }

// bit returns bit i as 0 or 1.
func (x uint128) bit(i int) uint64 { return x[i>>6] >> (i & 63) & 1 }

// highest returns the number of the highest 1 in x, or -1.
func (x uint128) highest() int {
	if x[1] != 0 {
		return 64 + bits.Len64(x[1]) - 1
	}
	return bits.Len64(x[0]) - 1
}

func (x uint128) inc() uint128 {
	lo, carry := bits.Add64(x[0], 1, 0)
	return uint128{lo, x[1] + carry}
}

func (x uint128) dec() uint128 {
	lo, borrow := bits.Sub64(x[0], 1, 0)
	return uint128{lo, x[1] - borrow}
}

// times returns the low 128 bits of x·n.
func (x uint128) times(n uint64) uint128 {
	hi, lo := bits.Mul64(x[0], n)
	return uint128{lo, hi + x[1]*n}
}

func (x uint128) compare(y uint128) int {
	if c := cmp.Compare(x[1], y[1]); c != 0 {
		return c
	}
	return cmp.Compare(x[0], y[0])
}
