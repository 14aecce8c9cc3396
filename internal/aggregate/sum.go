package aggregate

import (
	"math/big"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
)

// IntSum is the exact sum of integers of up to 128 bits, and how many were added. It has 192 bits, so
// only the final result can be out of range, whatever the order of the values. The zero IntSum is
// empty.
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

// joined returns high × 2^32 + low.
func joined(high int64, low uint64) batch.Int128 {
	lo, carry := bits.Add64(uint64(high)<<32, low, 0)
	return batch.Int128{Lo: lo, Hi: high>>32 + int64(carry)}
}

// sumInts returns the sum of values, of which there are less than 2^31.
func sumInts(values []int64) batch.Int128 {
	// The halves of the values are added separately, which cannot overflow. Two chains of each
	// keep the adders busy.
	var low0, low1 uint64
	var high0, high1 int64
	for ; len(values) >= 2; values = values[2:] {
		a, b := values[0], values[1]
		low0, high0 = low0+uint64(uint32(a)), high0+a>>32
		low1, high1 = low1+uint64(uint32(b)), high1+b>>32
	}
	for _, a := range values {
		low0, high0 = low0+uint64(uint32(a)), high0+a>>32
	}
	return joined(high0+high1, low0+low1)
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

// mostOf returns the largest magnitude among values.
func mostOf(values []int64) uint64 {
	var low, high int64
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return max(uint64(high), -uint64(low))
}
