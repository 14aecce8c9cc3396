package aggregate

import (
	"math/big"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
)

// IntSum is the exact sum of integers of up to 128 bits, and how many were added. It has 192 bits,
// so only the final result can be out of range, whatever the order of the values. The zero IntSum
// is empty.
type IntSum struct {
	lo, mid uint64
	hi      int64
	n       int64
}

// Add adds v, the sum of n values.
func (s *IntSum) Add(v batch.Int128, n int64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, v.Lo, 0)
	s.mid, carry = bits.Add64(s.mid, uint64(v.Hi), carry)
	s.hi += v.Hi>>63 + int64(carry)
	s.n += n
}

// Count returns how many values were added.
func (s *IntSum) Count() int64 { return s.n }

// Negative reports whether the sum is below 0.
func (s *IntSum) Negative() bool { return s.hi < 0 }

// Int128 returns the sum, or false if it does not fit.
func (s *IntSum) Int128() (batch.Int128, bool) {
	v := batch.Int128{Lo: s.lo, Hi: int64(s.mid)}
	return v, s.hi == v.Hi>>63
}

// Big returns the sum.
func (s *IntSum) Big() *big.Int {
	v := new(big.Int).Lsh(big.NewInt(s.hi), 64)
	v.Or(v, new(big.Int).SetUint64(s.mid)) // the low 64 bits of v are 0, also of a negative v
	v.Lsh(v, 64)
	return v.Or(v, new(big.Int).SetUint64(s.lo))
}

// sumInts returns the sum of values, of which there are less than 2^31.
//
// The sum of the values' high halves, v >> 32, cannot overflow. It determines the sum up to the sum
// of their low halves, which is between 0 and 2^63. The rest follows from the sum modulo 2^64.
func sumInts(values []int64) batch.Int128 {
	var low0, low1, high0, high1 int64
	for ; len(values) >= 8; values = values[8:] {
		v := (*[8]int64)(values)
		low0 += v[0] + v[2] + v[4] + v[6]
		low1 += v[1] + v[3] + v[5] + v[7]
		high0 += v[0]>>32 + v[2]>>32 + v[4]>>32 + v[6]>>32
		high1 += v[1]>>32 + v[3]>>32 + v[5]>>32 + v[7]>>32
	}
	for _, v := range values {
		low0, high0 = low0+v, high0+v>>32
	}
	high := high0 + high1
	lo, carry := bits.Add64(uint64(high)<<32, uint64(low0+low1)-uint64(high)<<32, 0)
	return batch.Int128{Lo: lo, Hi: high>>32 + int64(carry)}
}

// sumSmall returns the sum of values whose partial sums all fit.
func sumSmall(values []int64) int64 {
	var s0, s1, s2, s3 int64
	for ; len(values) >= 4; values = values[4:] {
		s0, s1, s2, s3 = s0+values[0], s1+values[1], s2+values[2], s3+values[3]
	}
	for _, v := range values {
		s0 += v
	}
	return s0 + s1 + s2 + s3
}

// mostOf returns a power of 2 that no magnitude among values is above.
func mostOf(values []int64) uint64 {
	var all int64 // the bits that differ from the sign
	for ; len(values) >= 4; values = values[4:] {
		v := (*[4]int64)(values)
		all |= (v[0] ^ v[0]>>63) | (v[1] ^ v[1]>>63) | (v[2] ^ v[2]>>63) | (v[3] ^ v[3]>>63)
	}
	for _, v := range values {
		all |= v ^ v>>63
	}
	return 1 << bits.Len64(uint64(all))
}

// merge adds the values of o.
func (s *IntSum) merge(o *IntSum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.mid, carry = bits.Add64(s.mid, o.mid, carry)
	s.hi += o.hi + int64(carry)
	s.n += o.n
}
