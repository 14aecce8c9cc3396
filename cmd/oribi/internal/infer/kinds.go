package infer

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// kinds is a set of types.
type kinds uint16

const (
	isBool    kinds = 1 << iota
	isInteger       // int64
	isDecimal       // a decimal with exactly these digits
	isWhole         // an integer of at most 128 bits
	isDouble
	isMixed  // a decimal, with more zeros at its end if others have more digits
	isNumber // a double, rounded
	isDate
	isTime

	allKinds = isBool | numbers | isDate | isTime
	numbers  = isInteger | isDecimal | isWhole | isDouble | isMixed | isNumber
)

// shape is the number of digits of a number before the point, not counting a single zero, and after
// it: a decimal column needs as many. 0.25 has 0 and 2.
type shape struct {
	whole, decimals int
	name            bool // it is no number but a name such as nan
}

// fieldKinds returns the kinds, among some, that keep a field of CSV, which is not empty.
func (c *Columns) fieldKinds(text []byte, among kinds) (kinds, shape) {
	switch b := text[0]; {
	case b >= '0' && b <= '9' || b == '-' || b == '+':
	case b|0x20 == 't' || b|0x20 == 'f':
		if among&isBool != 0 && isTruth(text, c.exact) {
			return isBool, shape{}
		}
		return 0, shape{}
	case b|0x20 != 'n' && b|0x20 != 'i':
		return 0, shape{}
	}
	if among&(isDate|isTime) != 0 && len(text) >= len("2006-01-02") && text[4] == '-' {
		return c.timeKinds(text, among), shape{}
	}
	if among&numbers == 0 {
		return 0, shape{}
	}
	if c.exact {
		return c.exactKinds(text, among)
	}
	return c.numberKinds(text, among)
}

// isTruth reports whether a text is true or false, in one of the three usual cases.
func isTruth(text []byte, exact bool) bool {
	switch string(text) {
	case "true", "false":
		return true
	case "True", "False", "TRUE", "FALSE":
		return !exact
	}
	return false
}

// timeKinds is fieldKinds for text that looks like a date or a time.
func (c *Columns) timeKinds(text []byte, among kinds) kinds {
	switch {
	case len(text) == len("2006-01-02"):
		if among&isDate == 0 || !c.reads(schema.Date, text) {
			return 0
		}
		return isDate
	case among&isTime != 0 && inUTC(text, c.exact) && c.reads(schema.Timestamp, text):
		return isTime
	}
	return 0
}

// inUTC reports whether a time has no zone, or UTC.
func inUTC(text []byte, exact bool) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(text) < seconds {
		return false
	}
	zone := bytes.TrimLeft(text[seconds:], ".0123456789")
	if exact && len(zone) > 0 && text[10] != 'T' {
		return false
	}
	switch string(zone) {
	case "", "Z", "+00:00":
		return true
	case "+00", "+0000", " UTC":
		return !exact
	}
	return false
}

// reads reports whether text is a value of a type.
func (c *Columns) reads(t schema.Type, text []byte) bool {
	var err error
	c.cell, err = celltext.FromField(c.cell[:0], &schema.Column{Type: t}, text)
	return err == nil
}

// digits describes a number in plain digits.
type digits struct {
	negative, zero  bool
	whole, decimals int // digits before and after the point
	significant     int // digits from the first to the last that is not 0
	leading         int // zeros after the point and before any other digit, if no other digit is before it
}

// plainDigits describes a number without an exponent; ok is false for other text, and for numbers
// that no type prints: with needless zeros at the start, or without a digit on a side of the point.
func plainDigits(text []byte) (d digits, ok bool) {
	rest := text
	if d.negative = rest[0] == '-'; d.negative {
		rest = rest[1:]
	}
	point, pointBetween := -1, 0
	for i, b := range rest {
		switch {
		case b-'0' <= 9:
		case b == '.' && point < 0:
			point = i
		default:
			return d, false
		}
	}
	first, last := 0, len(rest)-1 // digits that are not 0
	for first <= last && (rest[first] == '0' || first == point) {
		first++
	}
	for last > first && (rest[last] == '0' || last == point) {
		last--
	}
	d.whole = len(rest)
	if point >= 0 {
		d.whole, d.decimals = point, len(rest)-point-1
	}
	if d.whole == 0 || point >= 0 && d.decimals == 0 || d.whole > 1 && rest[0] == '0' {
		return d, false
	}
	if first < point && point < last {
		pointBetween = 1
	}
	if d.zero = first > last; !d.zero {
		d.significant = last - first + 1 - pointBetween
	}
	if point >= 0 && !d.zero && first > point {
		d.leading = first - point - 1
	}
	return d, true
}

// shape returns the shape of the number.
func (d *digits) shape(text []byte) shape {
	s := shape{whole: d.whole, decimals: d.decimals}
	if d.whole == 1 && (text[0] == '0' || d.negative && text[1] == '0') {
		s.whole = 0
	}
	return s
}

const (
	// mostPlainDigits is the number of digits that always fit an int64.
	mostPlainDigits = 18
	// exactDigits is the number of significant digits that a double always preserves.
	exactDigits = 15
	// doubleDigits is the number of significant digits that a double has at most.
	doubleDigits = 17
	// A double is printed without an exponent if it has at most so many digits before the point, or
	// zeros after it.
	mostWhole, mostLeading = 21, 5
)

// numberKinds is fieldKinds for text that may be a number, unless c.exact is set.
func (c *Columns) numberKinds(text []byte, among kinds) (kinds, shape) {
	d, ok := plainDigits(text)
	if !ok {
		return c.odd(text, among)
	}
	s := d.shape(text)
	k := kinds(0)
	if signed := d.negative && d.zero; !signed { // integers and decimals have no -0
		switch {
		case d.decimals > 0:
			k |= isDecimal
		case d.whole <= mostPlainDigits || among&isInteger != 0 && c.reads(schema.Int64, text):
			k |= isInteger | isWhole
		case d.whole <= schema.MaxPrecision || among&isWhole != 0 && c.reads(schema.Int128, text):
			k |= isWhole
		}
		k |= isMixed
	}
	if k &= among; among&isDouble != 0 && d.whole <= mostWhole && d.leading <= mostLeading &&
		c.keeps(text, d.significant) {
		k |= isDouble
	}
	return k, s
}

// keeps reports whether a double has all significant digits of a number.
func (c *Columns) keeps(text []byte, significant int) bool {
	switch {
	case significant <= exactDigits:
		return true
	case significant > doubleDigits || !c.reads(schema.Double, text):
		return false
	}
	return celltext.SameDigits(c.cell, text)
}

// odd is numberKinds for text that is not a number in plain digits: one with an exponent, or a name
// such as inf.
func (c *Columns) odd(text []byte, among kinds) (kinds, shape) {
	if among&isDouble == 0 || !c.reads(schema.Double, text) {
		return 0, shape{}
	}
	if b := text[len(text)-1]; b < '0' || b > '9' { // a name; those that we print need no numbers next to them
		s := string(text)
		return isDouble, shape{name: s != "NaN" && s != "+Inf" && s != "-Inf"}
	}
	if !scientific(text) || !celltext.SameDigits(c.cell, text) {
		return 0, shape{}
	}
	return isDouble, shape{}
}

// scientific reports whether a number with an exponent has the form in which programs write
// doubles: one digit before the point, and a sign in the exponent unless it is large. A code such
// as 12E5 has not.
func scientific(text []byte) bool {
	if text[0] == '-' {
		text = text[1:]
	}
	e := bytes.IndexAny(text, "eE")
	if e < 0 || e > 1 && text[1] != '.' || e == 0 {
		return false
	}
	exponent := text[e+1:]
	if exponent[0] == '+' || exponent[0] == '-' {
		return true
	}
	return len(exponent) > 1 || exponent[0] >= '7' // Java writes 1.0E7
}

// exactKinds is numberKinds if c.exact is set: each kind prints the text unchanged.
func (c *Columns) exactKinds(text []byte, among kinds) (k kinds, s shape) {
	d, ok := plainDigits(text)
	if ok {
		s = d.shape(text)
		if signed := d.negative && d.zero; !signed && d.decimals > 0 {
			k |= isDecimal
		} else if !signed && (d.whole <= mostPlainDigits || c.reads(schema.Int64, text)) {
			k |= isInteger
		}
	}
	if k &= among; among&isDouble != 0 && c.reads(schema.Double, text) {
		c.text = celltext.AppendText(c.text[:0], &schema.Column{Type: schema.Double}, c.cell)
		if bytes.Equal(c.text, text) {
			k |= isDouble
		}
	}
	return k, s
}

// jsonKinds returns the kinds, among some, that keep a JSON value other than null and "".
func (c *Columns) jsonKinds(value []byte, among kinds) (kinds, shape) {
	switch value[0] {
	case '{', '[':
		return 0, shape{}
	case '"':
		if bytes.IndexByte(value, '\\') >= 0 {
			return 0, shape{}
		}
		text := jsonin.String(value)
		k, s := c.fieldKinds(text, among&^isBool)
		if k&isDouble != 0 && text[len(text)-1]|0x20 >= 'a' && !s.name {
			return isDouble, s // NaN, +Inf, -Inf
		}
		return k & (isDecimal | isDate | isTime), s
	case 't', 'f':
		return among & isBool, shape{}
	}
	if c.exact {
		k, s := c.exactKinds(value, among)
		return k & (isInteger | isDouble), s
	}
	return c.jsonNumberKinds(value, among)
}

// jsonNumberKinds is jsonKinds for a number, which is a value and has no text to keep.
func (c *Columns) jsonNumberKinds(value []byte, among kinds) (kinds, shape) {
	k, s := kinds(0), shape{}
	if d, ok := plainDigits(value); ok {
		k, s = c.numberKinds(value, among&^isDecimal)
		if k&isDouble == 0 && among&isDouble != 0 && c.keeps(value, d.significant) {
			k |= isDouble
		}
	} else if among&isDouble != 0 && c.reads(schema.Double, value) && celltext.SameDigits(c.cell, value) {
		k = isDouble
	}
	return k | among&isNumber, s
}
