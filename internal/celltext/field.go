package celltext

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// ErrNotUTF8 is returned for a text that is not valid UTF-8.
var ErrNotUTF8 = errors.New("is not valid UTF-8")

// FromField appends the cell of column c for text, a field of a CSV file without its quotes: a JSON
// value without quotes, or another form that programs write:
//
//	bool            True, TRUE, t, T, 1, and the same for false
//	float, double   nan, inf, infinity in any case, with a sign or without
//
// The column must not be an array. Errors do not name the column.
func FromField(dst []byte, c *schema.Column, text []byte) ([]byte, error) {
	switch t := c.Type; {
	case t == schema.String || t == schema.Varchar:
		if !utf8.Valid(text) {
			return dst, ErrNotUTF8
		}
		return append(dst, text...), CheckLength(c, text)
	case t == schema.Bool:
		return boolFromField(dst, text)
	case t == schema.Binary:
		return FromHex(dst, string(text))
	case t == schema.Date:
		if days, ok := plainDate(text); ok {
			return appendLittle(dst, uint64(days), 4), nil
		}
		return FromDate(dst, string(text))
	case t == schema.Float || t == schema.Double:
		if bits, ok := plainDouble(text); ok && t == schema.Double {
			return appendLittle(dst, uint64(bits), 8), nil
		}
		if jsonNumber(text) {
			return FromFloat(dst, t, string(text))
		}
		return floatNameFromField(dst, t, text)
	case t.Decimal():
		if v, ok := plainDecimal(text, c); ok {
			return appendWide(dst, batch.Int128Of(v), t.Width()), nil
		}
		return FromDecimal(dst, c, string(text))
	}
	return integerFromField(dst, c, text)
}

// PlainParser returns a parser of the usual form of the fields of column c. It returns the number
// whose low bytes, little-endian, are the cell; ok is false for other text, which FromField may
// accept. It is nil for types of variable width, and others that have no such form.
func PlainParser(c *schema.Column) func(text []byte) (v int64, ok bool) {
	switch t := c.Type; {
	case t == schema.Int64:
		return plainInteger
	case t == schema.Timestamp:
		return func(text []byte) (int64, bool) {
			if len(text) > len("2006-01-02") && text[4] == '-' {
				return plainTime(text)
			}
			return plainInteger(text)
		}
	case t.Integer() && t != schema.Int128:
		low, high := int64(0), int64(math.MaxInt64)
		if width := intBits(t); width < 0 {
			low, high = -1<<(-width-1), 1<<(-width-1)-1
		} else if width < 64 {
			high = 1<<width - 1
		}
		return func(text []byte) (int64, bool) {
			v, ok := plainInteger(text)
			return v, ok && low <= v && v <= high
		}
	case t == schema.Date:
		return func(text []byte) (int64, bool) {
			days, ok := plainDate(text)
			return int64(days), ok
		}
	case t.Decimal() && t.Width() <= 8:
		return func(text []byte) (int64, bool) { return plainDecimal(text, c) }
	case t == schema.Double:
		return plainDouble
	}
	return nil
}

func boolFromField(dst, text []byte) ([]byte, error) {
	switch string(text) {
	case "true", "True", "TRUE", "t", "T", "1":
		return FromBool(dst, true), nil
	case "false", "False", "FALSE", "f", "F", "0":
		return FromBool(dst, false), nil
	}
	return dst, fmt.Errorf("want true or false, not %s", Excerpt(text))
}

// floatNameFromField is FromFloatName for the names that other programs write.
func floatNameFromField(dst []byte, t schema.Type, text []byte) ([]byte, error) {
	name := text
	sign := "+"
	if len(name) > 0 && (name[0] == '-' || name[0] == '+') {
		sign, name = string(name[:1]), name[1:]
	}
	switch {
	case bytes.EqualFold(name, []byte("inf")), bytes.EqualFold(name, []byte("infinity")):
		return FromFloatName(dst, t, sign+"Inf")
	case bytes.EqualFold(name, []byte("nan")):
		return FromFloatName(dst, t, "NaN")
	}
	return FromFloatName(dst, t, string(text))
}

func integerFromField(dst []byte, c *schema.Column, text []byte) ([]byte, error) {
	if v, ok := plainInteger(text); ok {
		switch t := c.Type; {
		case t == schema.Int64 || t == schema.Timestamp:
			return appendLittle(dst, uint64(v), 8), nil
		case t == schema.Int32 && v == int64(int32(v)):
			return appendLittle(dst, uint64(v), 4), nil
		}
	} else if c.Type == schema.Timestamp && len(text) > len("2006-01-02") && text[4] == '-' {
		return timeFromField(dst, text)
	} else if !jsonNumber(text) {
		return dst, fmt.Errorf("want %s, not %s", integerOrTime(c.Type), Excerpt(text))
	}
	return FromInteger(dst, c, text)
}

func integerOrTime(t schema.Type) string {
	if t == schema.Timestamp {
		return "a time (RFC 3339) or microseconds since 1970"
	}
	return "an integer in plain digits"
}

// timeFromField parses a time. Most have the form 2006-01-02T15:04:05.000000Z, which package time
// takes several times as long to parse.
func timeFromField(dst, text []byte) ([]byte, error) {
	if v, ok := plainTime(text); ok {
		return appendLittle(dst, uint64(v), 8), nil
	}
	return FromTime(dst, string(text))
}

// plainTime parses a time in UTC, or without a zone, as microseconds since 1970.
func plainTime(text []byte) (micros int64, ok bool) {
	const seconds = len("2006-01-02T15:04:05")
	if len(text) < seconds || text[10] != 'T' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return 0, false
	}
	days, ok := plainDate(text[:10])
	hour, minute, second := digitsOf(text[11:13]), digitsOf(text[14:16]), digitsOf(text[17:19])
	if !ok || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, false
	}
	micros = (int64(days)*secondsPerDay + int64(hour*3600+minute*60+second)) * 1_000_000
	rest := text[seconds:]
	fraction := 0
	if len(rest) > 0 && rest[0] == '.' {
		n := countDigits(rest[1:])
		decimals := rest[1 : 1+n]
		for len(decimals) > 6 && decimals[len(decimals)-1] == '0' {
			decimals = decimals[:len(decimals)-1]
		}
		if n == 0 || len(decimals) > 6 {
			return 0, false
		}
		fraction = digitsOf(decimals)
		for range 6 - len(decimals) {
			fraction *= 10
		}
		rest = rest[1+n:]
	}
	switch string(rest) {
	case "", "Z", "+00:00", "+00", "+0000", " UTC":
		return micros + int64(fraction), true
	}
	return 0, false
}

// mostPlainDigits is the number of digits that always fit an int64.
const mostPlainDigits = 18

// powers are the powers of ten.
var powers = func() (p [mostPlainDigits]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// plainInteger parses the usual form of integers: few digits, no leading zero. Other text may be an
// integer too.
func plainInteger(text []byte) (v int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > mostPlainDigits || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d -= '0'; d > 9 {
			return 0, false
		}
		v = 10*v + int64(d)
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

// plainDecimal parses the usual form of decimals, unscaled: few digits and at most one decimal
// point.
func plainDecimal(text []byte, c *schema.Column) (v int64, ok bool) {
	if len(text)+c.Scale > mostPlainDigits {
		return 0, false
	}
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	v, decimals, ok := plainDigits(digits)
	if !ok || decimals > c.Scale {
		return 0, false
	}
	for range c.Scale - decimals {
		v *= 10
	}
	if c.Precision < mostPlainDigits && v >= powers[c.Precision] {
		return 0, false
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

// plainDigits parses digits, of which decimals are after a point. The caller bounds their number.
func plainDigits(text []byte) (v int64, decimals int, ok bool) {
	point := len(text)
	for i, d := range text {
		if d == '.' && point == len(text) {
			point = i
			continue
		}
		if d -= '0'; d > 9 {
			return 0, 0, false
		}
		v = 10*v + int64(d)
	}
	return v, max(len(text)-point-1, 0), point > 0 && point != len(text)-1
}

// plainDouble parses numbers of few digits without exponent, as the bits of the nearest double. Up
// to 2^53 digits and power of ten are exact doubles, and their quotient is rounded once.
func plainDouble(text []byte) (bits int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 16 || digits[0] == '0' && len(digits) > 1 && digits[1] != '.' {
		return 0, false
	}
	v, decimals, ok := plainDigits(digits)
	if !ok || v > 1<<53 {
		return 0, false
	}
	f := float64(v)
	if decimals > 0 {
		f /= float64(powers[decimals])
	}
	if len(digits) < len(text) {
		f = -f
	}
	return int64(math.Float64bits(f)), true
}

// plainDate parses a date of the years 1 to 9999 as days since 1970.
func plainDate(text []byte) (days int, ok bool) {
	if len(text) != len("2006-01-02") || text[4] != '-' || text[7] != '-' {
		return 0, false
	}
	year, month, day := digitsOf(text[:4]), digitsOf(text[5:7]), digitsOf(text[8:])
	if year < 1 || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) {
		return 0, false
	}
	// Count days from March 1 of year 0: the leap day is then the last day of a year, and (153 m +
	// 2) / 5 is the number of days before month m, where March is 0.
	if month < 3 {
		year, month = year-1, month+12
	}
	const marchOfYear0 = 719468 // days before 1970-01-01
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - marchOfYear0, true
}

// digitsOf returns the value of a few digits, −1 for any other text.
func digitsOf(text []byte) int {
	n := 0
	for _, d := range text {
		if d -= '0'; d > 9 {
			return -1
		}
		n = 10*n + int(d)
	}
	return n
}

func monthDays(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// jsonNumber reports whether text is a JSON number.
func jsonNumber(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	whole := countDigits(text)
	if whole == 0 || whole > 1 && text[0] == '0' {
		return false
	}
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		decimals := countDigits(text[1:])
		if decimals == 0 {
			return false
		}
		text = text[1+decimals:]
	}
	if len(text) == 0 {
		return true
	}
	_, ok := parseExponent(text)
	return ok
}
