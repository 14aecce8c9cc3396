package batch

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/oribi-db/oribi/schema"
)

// Int128Of converts an int64.
func Int128Of(v int64) Int128 { return Int128{Lo: uint64(v), Hi: v >> 63} }

// Int128OfCell returns the value of a cell of type t: an integer of up to 128 bits, a date, a
// timestamp, or the unscaled integer of a decimal.
func Int128OfCell(t schema.Type, cell []byte) Int128 {
	little := binary.LittleEndian
	switch t.Physical() {
	case schema.Uint8:
		return Int128{Lo: uint64(cell[0])}
	case schema.Int8:
		return Int128Of(int64(int8(cell[0])))
	case schema.Uint16:
		return Int128{Lo: uint64(little.Uint16(cell))}
	case schema.Int16:
		return Int128Of(int64(int16(little.Uint16(cell))))
	case schema.Uint32:
		return Int128{Lo: uint64(little.Uint32(cell))}
	case schema.Int32:
		return Int128Of(int64(int32(little.Uint32(cell))))
	case schema.Uint64:
		return Int128{Lo: little.Uint64(cell)}
	case schema.Int64:
		return Int128Of(int64(little.Uint64(cell)))
	}
	return Int128{Lo: little.Uint64(cell), Hi: int64(little.Uint64(cell[8:]))}
}

// Pow10 returns 10^n for n from 0 to 38.
func Pow10(n int) Int128 {
	v := Int128{Lo: 1}
	for range n {
		v, _ = v.Mul10()
	}
	return v
}

// Negative reports whether v is below 0.
func (v Int128) Negative() bool { return v.Hi < 0 }

// Neg returns −v. The smallest value has no negation and is returned unchanged.
func (v Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, v.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(v.Hi), borrow)
	return Int128{Lo: lo, Hi: int64(hi)}
}

// Cmp returns −1 if v < o, 0 if v = o, and 1 if v > o.
func (v Int128) Cmp(o Int128) int {
	switch {
	case v.Hi != o.Hi:
		if v.Hi < o.Hi {
			return -1
		}
		return 1
	case v.Lo != o.Lo:
		if v.Lo < o.Lo {
			return -1
		}
		return 1
	}
	return 0
}

// Add returns v + o, or false if that is out of range.
func (v Int128) Add(o Int128) (Int128, bool) {
	lo, carry := bits.Add64(v.Lo, o.Lo, 0)
	hi, _ := bits.Add64(uint64(v.Hi), uint64(o.Hi), carry)
	sum := Int128{Lo: lo, Hi: int64(hi)}
	return sum, v.Negative() != o.Negative() || sum.Negative() == v.Negative()
}

// Mul returns v × o, or false if that is out of range.
func (v Int128) Mul(o Int128) (Int128, bool) {
	a, b := v.magnitude(), o.magnitude()
	if a.Hi != 0 && b.Hi != 0 {
		return Int128{}, false
	}
	hi, lo := bits.Mul64(a.Lo, b.Lo)
	over1, cross1 := bits.Mul64(uint64(a.Hi), b.Lo)
	over2, cross2 := bits.Mul64(a.Lo, uint64(b.Hi))
	hi, carry1 := bits.Add64(hi, cross1, 0)
	hi, carry2 := bits.Add64(hi, cross2, 0)
	if over1|over2|carry1|carry2 != 0 {
		return Int128{}, false
	}
	product := Int128{Lo: lo, Hi: int64(hi)}
	if v.Negative() != o.Negative() {
		negated := product.Neg()
		return negated, negated.Negative() || negated == Int128{}
	}
	return product, !product.Negative()
}

// magnitude returns the bits of |v|, to be read as unsigned.
func (v Int128) magnitude() Int128 {
	if v.Negative() {
		return v.Neg()
	}
	return v
}

// Float64 returns the float64 that is nearest to v.
func (v Int128) Float64() float64 {
	m := v.magnitude()
	hi, lo := uint64(m.Hi), m.Lo
	shift := bits.Len64(hi)
	if shift > 0 {
		// 64 bits round correctly if the lowest one reports whether any below it were 1.
		rest := lo << (64 - shift)
		lo = hi<<(64-shift) | lo>>shift
		if rest != 0 {
			lo |= 1
		}
	}
	f := math.Ldexp(float64(lo), shift)
	if v.Negative() {
		f = -f
	}
	return f
}

// Mul10 returns 10 v, or false if that is out of range.
func (v Int128) Mul10() (Int128, bool) {
	m := v
	if v.Negative() {
		m = v.Neg()
	}
	carry, lo := bits.Mul64(m.Lo, 10)
	over, hi := bits.Mul64(uint64(m.Hi), 10)
	hi, c := bits.Add64(hi, carry, 0)
	if over != 0 || c != 0 || hi>>63 != 0 {
		return Int128{}, false
	}
	out := Int128{Lo: lo, Hi: int64(hi)}
	if v.Negative() {
		out = out.Neg()
	}
	return out, true
}

// Div10 returns the quotient of v and 10, truncated towards zero, and the remainder.
func (v Int128) Div10() (q Int128, rest int64) {
	m := v
	if v.Negative() {
		m = v.Neg()
	}
	hi, r := uint64(m.Hi)/10, uint64(m.Hi)%10
	lo, r := bits.Div64(r, m.Lo, 10)
	q, rest = Int128{Lo: lo, Hi: int64(hi)}, int64(r)
	if v.Negative() {
		return q.Neg(), -rest
	}
	return q, rest
}

// FitsDigits reports whether v has at most n decimal digits.
func (v Int128) FitsDigits(n int) bool {
	limit := pow10[n]
	return v.Cmp(limit) < 0 && v.Cmp(limit.Neg()) > 0
}

// pow10 contains 10^0 to 10^38.
var pow10 = func() (t [39]Int128) {
	for i := range t {
		t[i] = Pow10(i)
	}
	return
}()

// AppendDigits appends the decimal digits of v without its sign, padded with zeros to at least
// least digits.
func (v Int128) AppendDigits(dst []byte, least int) []byte {
	if v.Negative() {
		v = v.Neg() // also correct for the smallest value, whose bits read as unsigned are its magnitude
	}
	hi, lo := uint64(v.Hi), v.Lo
	if hi == 0 {
		return appendPadded(dst, lo, least)
	}
	var buf [48]byte
	at := len(buf)
	for (hi != 0 || lo != 0 || len(buf)-at < least) && at > 0 {
		var rest uint64
		hi, rest = hi/10, hi%10
		lo, rest = bits.Div64(rest, lo, 10)
		at--
		buf[at] = byte('0' + rest)
	}
	return append(dst, buf[at:]...)
}

// appendPadded appends n with at least least digits.
func appendPadded(dst []byte, n uint64, least int) []byte {
	from := len(dst)
	dst = strconv.AppendUint(dst, n, 10)
	if missing := least - (len(dst) - from); missing > 0 {
		for range missing {
			dst = append(dst, '0')
		}
		copy(dst[from+missing:], dst[from:])
		for i := range missing {
			dst[from+i] = '0'
		}
	}
	return dst
}

// String returns v in decimal.
func (v Int128) String() string {
	var buf [48]byte
	dst := buf[:0]
	if v.Negative() {
		dst = append(dst, '-')
	}
	return string(v.AppendDigits(dst, 1))
}
