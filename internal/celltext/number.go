package celltext

import (
	"errors"
	"math"
	"math/bits"
	"strconv"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// magnitude is the absolute value of an integer of up to 128 bits.
type magnitude struct{ hi, lo uint64 }

// push multiplies m by ten and adds a digit. It returns false if the result exceeds 128 bits.
func (m *magnitude) push(digit byte) bool {
	carry, lo := bits.Mul64(m.lo, 10)
	over, hi := bits.Mul64(m.hi, 10)
	lo, c := bits.Add64(lo, uint64(digit), 0)
	hi, c2 := bits.Add64(hi, carry, c)
	m.hi, m.lo = hi, lo
	return over == 0 && c2 == 0
}

// below reports whether m < 10^n.
func (m magnitude) below(n int) bool {
	bound := magnitude{lo: 1}
	for range n {
		if !bound.push(0) {
			return true
		}
	}
	return m.hi < bound.hi || m.hi == bound.hi && m.lo < bound.lo
}

// signed returns m or −m; ok is false if that is not a signed 128-bit integer.
func (m magnitude) signed(negative bool) (v batch.Int128, ok bool) {
	if !negative {
		return batch.Int128{Lo: m.lo, Hi: int64(m.hi)}, m.hi < 1<<63
	}
	m = m.negated()
	return batch.Int128{Lo: m.lo, Hi: int64(m.hi)}, m.hi >= 1<<63 || m == magnitude{}
}

// negated returns the two's complement of m.
func (m magnitude) negated() magnitude {
	lo, borrow := bits.Sub64(0, m.lo, 0)
	hi, _ := bits.Sub64(0, m.hi, borrow)
	return magnitude{hi: hi, lo: lo}
}

var (
	errRange   = errors.New("is out of range")
	errInexact = errors.New("cannot be represented exactly")
)

// number is a parsed decimal number: digits × 10^exponent, without zeros at either end of digits.
type number struct {
	negative bool
	digits   []byte
	exponent int
}

// parseNumber parses [-]digits[.digits][e[+|-]digits]; ok is false for any other text. decimals is
// the number of digits written after the decimal point; plain reports whether there is no exponent.
func parseNumber(text []byte) (n number, decimals int, plain, ok bool) {
	rest := text
	if len(rest) > 0 && rest[0] == '-' {
		n.negative, rest = true, rest[1:]
	}
	whole := countDigits(rest)
	if whole == 0 {
		return n, 0, false, false
	}
	n.digits = append(n.digits, rest[:whole]...)
	rest = rest[whole:]
	if len(rest) > 0 && rest[0] == '.' {
		if decimals = countDigits(rest[1:]); decimals == 0 {
			return n, 0, false, false
		}
		n.digits = append(n.digits, rest[1:1+decimals]...)
		rest = rest[1+decimals:]
	}
	n.exponent, plain = -decimals, len(rest) == 0
	if !plain {
		e, good := parseExponent(rest)
		if !good {
			return n, 0, false, false
		}
		n.exponent += e
	}
	n.trim()
	return n, decimals, plain, true
}

// trim removes leading and trailing zeros from the digits.
func (n *number) trim() {
	for len(n.digits) > 0 && n.digits[0] == '0' {
		n.digits = n.digits[1:]
	}
	for len(n.digits) > 0 && n.digits[len(n.digits)-1] == '0' {
		n.digits, n.exponent = n.digits[:len(n.digits)-1], n.exponent+1
	}
	if len(n.digits) == 0 {
		n.exponent = 0
	}
}

func countDigits(text []byte) int {
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return i
}

// parseExponent parses e[+|-]digits. Exponents far outside the range of every type are clamped to
// ±1,000,000, which is still far outside.
func parseExponent(text []byte) (int, bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := false
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		negative, text = text[0] == '-', text[1:]
	}
	if len(text) == 0 || countDigits(text) != len(text) {
		return 0, false
	}
	const far = 1_000_000
	e := 0
	for _, d := range text {
		if e = e*10 + int(d-'0'); e > far {
			e = far
		}
	}
	if negative {
		e = -e
	}
	return e, true
}

// scaled returns n × 10^scale as a magnitude. It returns errInexact if digits are lost, errRange if
// the result exceeds 128 bits.
func (n number) scaled(scale int) (magnitude, error) {
	var m magnitude
	zeros := n.exponent + scale
	if len(n.digits) == 0 {
		return m, nil
	}
	if zeros < 0 {
		return m, errInexact
	}
	if len(n.digits)+zeros > 39 {
		return m, errRange
	}
	for _, d := range n.digits {
		if !m.push(d - '0') {
			return m, errRange
		}
	}
	for range zeros {
		if !m.push(0) {
			return m, errRange
		}
	}
	return m, nil
}

// intBits returns the width of an integer type, negative for signed types.
func intBits(t schema.Type) int {
	switch t {
	case schema.Int8:
		return -8
	case schema.Int16:
		return -16
	case schema.Int32:
		return -32
	case schema.Int64, schema.Timestamp:
		return -64
	case schema.Uint8:
		return 8
	case schema.Uint16:
		return 16
	case schema.Uint32:
		return 32
	case schema.Uint64:
		return 64
	}
	return 0
}

// appendInteger parses an integer and appends the cell of an integer type of up to 64 bits.
func appendInteger(dst []byte, t schema.Type, digits string) ([]byte, error) {
	width := intBits(t)
	var u uint64
	var err error
	if width < 0 {
		var i int64
		i, err = strconv.ParseInt(digits, 10, -width)
		u = uint64(i)
	} else {
		if digits == "-0" {
			digits = "0"
		}
		u, err = strconv.ParseUint(digits, 10, width)
	}
	if err != nil {
		return dst, errRange
	}
	return appendLittle(dst, u, t.Width()), nil
}

// appendLittle appends the low width bytes of u, little-endian.
func appendLittle(dst []byte, u uint64, width int) []byte {
	for range width {
		dst, u = append(dst, byte(u)), u>>8
	}
	return dst
}

// appendWide appends the cell of a 128-bit integer or of a decimal of any width.
func appendWide(dst []byte, v batch.Int128, width int) []byte {
	dst = appendLittle(dst, v.Lo, min(width, 8))
	if width == 16 {
		dst = appendLittle(dst, uint64(v.Hi), 8)
	}
	return dst
}

// SameDigits reports whether a double has all significant digits of text, a number that was parsed
// to this cell: the shortest text that parses to the double is the same number.
func SameDigits(cell, text []byte) bool {
	var array [32]byte // sign, 17 digits, point, and e+308
	f := math.Abs(floatOf(schema.Double, cell))
	if text[0] == '-' {
		text = text[1:]
	}
	// Most numbers are written like that, as long as this takes few digits.
	if f >= 1e-5 && f < 1e15 && string(text) == string(strconv.AppendFloat(array[:0], f, 'f', -1, 64)) {
		return true
	}
	shortest := strconv.AppendFloat(array[:0], f, 'e', -1, 64)
	d, e := significant(shortest)
	d2, e2 := significant(text)
	for d != nil || d2 != nil {
		// Both yield their digits in turn, without the point.
		if len(d) == 0 || len(d2) == 0 {
			return len(d) == len(d2) && e == e2
		}
		if d[0] == '.' {
			d = d[1:]
			continue
		}
		if d2[0] == '.' {
			d2 = d2[1:]
			continue
		}
		if d[0] != d2[0] {
			return false
		}
		d, d2 = d[1:], d2[1:]
	}
	return true // both are zero
}

// significant returns the digits of a number without sign, from the first to the last that is not
// zero, perhaps with the point between them, and the exponent of the first; nil for zero.
func significant(text []byte) (digits []byte, exponent int) {
	point, first, last, end := -1, -1, -1, len(text)
	for i := 0; i < end; i++ {
		switch b := text[i]; {
		case b >= '1' && b <= '9':
			if last = i; first < 0 {
				first = i
			}
		case b == '.':
			point = i
		case b|0x20 == 'e':
			exponent, _ = parseExponent(text[i:])
			end = i
		}
	}
	if first < 0 {
		return nil, 0
	}
	if point < 0 {
		point = end
	}
	if first < point {
		exponent += point - first - 1
	} else {
		exponent -= first - point
	}
	return text[first : last+1], exponent
}
