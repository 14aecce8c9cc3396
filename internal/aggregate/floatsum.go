package aggregate

import (
	"math"
	"math/big"
)

// FloatSum is the exact sum of floats, and how many were added. It is rounded once, when it is
// read, so that it does not depend on the order in which the values were added. The zero FloatSum
// is empty.
//
// A finite float64 is a 53-bit integer times 2^(b−1074), b from 0 to 2045. The sum is kept in
// digits of 32 bits in words of 64: digit i counts multiples of 2^(32 (low+i) − 1074). A value
// changes three digits by less than 2^32 each, so that carries are due only after 2^30 values. The
// digits reach from the lowest to the highest one in use: for values of similar size, a few.
type FloatSum struct {
	digits []int64
	low    int32 // position of digits[0]
	dirty  int32 // values since the last carry
	n      int64
	nans   bool
	infs   [2]bool // +Inf, −Inf
}

const (
	digitBits  = 32
	leastShift = 1074 // the lowest bit of the lowest digit is 2^−1074
	carryEvery = 1 << 30
)

// Count returns how many values were added.
func (s *FloatSum) Count() int64 { return s.n }

// Add adds v.
func (s *FloatSum) Add(v float64) {
	s.n++
	b := math.Float64bits(v)
	e, m := int32(b>>52)&0x7ff, b&(1<<52-1)
	switch {
	case e == 0x7ff:
		s.special(v)
		return
	case e != 0:
		m |= 1 << 52
		e--
	}
	at, shift := e/digitBits, uint(e)%digitBits
	i := int(at - s.low)
	if i < 0 || i+3 > len(s.digits) {
		i = s.reach(at)
	}
	d := s.digits[i : i+3 : i+3]
	sign := int64(b) >> 63 // 0 or −1: (x ^ sign) − sign is x or −x
	lo, hi := m<<shift, m>>(64-shift)
	d[0] += int64(lo&(1<<digitBits-1)) ^ sign - sign
	d[1] += int64(lo>>digitBits) ^ sign - sign
	d[2] += int64(hi) ^ sign - sign
	if s.dirty++; s.dirty == carryEvery {
		s.carry()
	}
}

func (s *FloatSum) special(v float64) {
	s.nans = s.nans || v != v
	s.infs[0] = s.infs[0] || v > 0
	s.infs[1] = s.infs[1] || v < 0
}

// reach makes room for the digits from position at to at+2 and returns the index of the first.
func (s *FloatSum) reach(at int32) int {
	if len(s.digits) == 0 {
		s.low = at
	}
	if at < s.low {
		s.digits = append(make([]int64, s.low-at, int(s.low-at)+len(s.digits)), s.digits...)
		s.low = at
	}
	i := int(at - s.low)
	for len(s.digits) < i+3 {
		s.digits = append(s.digits, 0)
	}
	return i
}

// carry brings all digits but the last below 2^32.
func (s *FloatSum) carry() {
	s.dirty = 0
	for i := 0; i < len(s.digits); i++ {
		c := s.digits[i] >> digitBits
		if i == len(s.digits)-1 {
			if c != 0 && c != -1 {
				s.digits = append(s.digits, 0)
			} else {
				break // the sign stays in the last digit
			}
		}
		s.digits[i] -= c << digitBits
		s.digits[i+1] += c
	}
}

// big returns the finite sum as an integer times 2^exponent.
func (s *FloatSum) big() (v *big.Int, exponent int) {
	v = new(big.Int)
	for i := len(s.digits) - 1; i >= 0; i-- {
		v.Add(v.Lsh(v, digitBits), big.NewInt(s.digits[i]))
	}
	return v, digitBits*int(s.low) - leastShift
}

// notFinite returns NaN, +Inf or −Inf if the sum is that, whatever the finite values.
func (s *FloatSum) notFinite() (v float64, ok bool) {
	switch {
	case s.nans || s.infs[0] && s.infs[1]:
		return math.NaN(), true
	case s.infs[0]:
		return math.Inf(1), true
	case s.infs[1]:
		return math.Inf(-1), true
	}
	return 0, false
}

// Float64 returns the float64 that is nearest to the sum: an infinity if that is out of range, NaN
// if a value was NaN or there were infinities of both signs. A sum of 0 is +0.
func (s *FloatSum) Float64() float64 { return s.over(1) }

// Mean returns the float64 that is nearest to the sum divided by the number of values, which must
// not be 0.
func (s *FloatSum) Mean() float64 { return s.over(s.n) }

func (s *FloatSum) over(n int64) float64 {
	if v, ok := s.notFinite(); ok {
		return v
	}
	v, exponent := s.big()
	by := big.NewInt(n)
	if exponent >= 0 {
		v.Lsh(v, uint(exponent))
	} else {
		by.Lsh(by, uint(-exponent))
	}
	f, _ := new(big.Rat).SetFrac(v, by).Float64()
	return f
}

// merge adds the values of o.
func (s *FloatSum) merge(o *FloatSum) {
	s.n += o.n
	s.nans = s.nans || o.nans
	s.infs[0], s.infs[1] = s.infs[0] || o.infs[0], s.infs[1] || o.infs[1]
	if len(o.digits) == 0 {
		return
	}
	s.carry()
	o.carry() // each digit is then below the digits of a value
	s.reach(o.low)
	i := s.reach(o.low + int32(len(o.digits)) - 3)
	i -= len(o.digits) - 3
	for k, d := range o.digits {
		s.digits[i+k] += d
	}
	s.dirty++
}
