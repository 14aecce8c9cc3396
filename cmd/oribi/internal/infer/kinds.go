package infer

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// kinds is a set of types.
type kinds uint8

const (
	isBool kinds = 1 << iota
	isInteger
	isDecimal
	isDouble
	isDate
	isTime

	allKinds = isBool | isInteger | isDecimal | isDouble | isDate | isTime
	numbers  = isInteger | isDecimal | isDouble
)

// shape is what a decimal column needs for a number: the digits before the point, not counting a
// single zero, and those after it.
type shape struct{ whole, decimals int }

// fieldKinds returns the kinds, among some, that print a field of CSV unchanged.
func (c *Columns) fieldKinds(text []byte, among kinds) (kinds, shape) {
	if len(text) == 0 {
		return 0, shape{}
	}
	switch b := text[0]; {
	case b == 't' || b == 'f':
		if s := string(text); s == "true" || s == "false" {
			return among & isBool, shape{}
		}
		return 0, shape{}
	case b != '-' && b != '+' && b != 'N' && (b < '0' || b > '9'):
		return 0, shape{}
	}
	if among&(isDate|isTime) != 0 && len(text) >= len("2006-01-02") && text[4] == '-' {
		return c.timeKinds(text, among), shape{}
	}
	if among&numbers == 0 {
		return 0, shape{}
	}
	return c.numberKinds(text, among)
}

// timeKinds is fieldKinds for text that looks like a date or a time.
func (c *Columns) timeKinds(text []byte, among kinds) kinds {
	switch {
	case len(text) == len("2006-01-02"):
		if among&isDate == 0 || !c.reads(schema.Date, text) {
			return 0
		}
		return isDate
	case among&isTime != 0 && inUTC(text) && c.reads(schema.Timestamp, text):
		return isTime
	}
	return 0
}

// inUTC reports whether a time has no zone, or UTC.
func inUTC(text []byte) bool {
	if bytes.HasSuffix(text, []byte("Z")) || bytes.HasSuffix(text, []byte("+00:00")) {
		return true
	}
	// A zone ends the text: +01:00.
	n := len(text)
	return text[n-3] != ':' || text[n-6] != '+' && text[n-6] != '-'
}

// reads reports whether text is a value of a type.
func (c *Columns) reads(t schema.Type, text []byte) bool {
	var err error
	c.cell, err = celltext.FromField(c.cell[:0], &schema.Column{Type: t}, text)
	return err == nil
}

// numberKinds is fieldKinds for text that may be a number.
func (c *Columns) numberKinds(text []byte, among kinds) (k kinds, s shape) {
	digits := text
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	point, zero := -1, true
	for i, d := range digits {
		switch {
		case d == '.' && point < 0:
			point = i
			continue
		case d < '0' || d > '9':
			return among & c.odd(text, among), s
		}
		zero = zero && d == '0'
	}
	whole := len(digits)
	if point >= 0 {
		whole = point
		s.decimals = len(digits) - point - 1
	}
	if whole == 0 || point >= 0 && s.decimals == 0 || whole > 1 && digits[0] == '0' {
		return 0, s
	}
	s.whole = whole
	if digits[0] == '0' {
		s.whole = 0
	}
	if point >= 0 {
		if !(negative && zero) {
			k |= isDecimal
		}
	} else if !(negative && zero) && (whole <= mostPlainDigits || c.reads(schema.Int64, text)) {
		k |= isInteger
	}
	if k &= among; among&isDouble != 0 && c.isDouble(text, digits, s) {
		k |= isDouble
	}
	return k, s
}

// mostPlainDigits is the number of digits that always fit an int64.
const mostPlainDigits = 18

// exactDigits is the number of significant digits that a double always preserves.
const exactDigits = 15

// isDouble reports whether a double prints text, a number without an exponent, unchanged.
func (c *Columns) isDouble(text, digits []byte, s shape) bool {
	if s.decimals > 0 && digits[len(digits)-1] == '0' {
		return false
	}
	if s.whole+s.decimals <= exactDigits && s.decimals <= 5 {
		return true // no two such numbers have the same double, and it is printed without an exponent
	}
	return c.odd(text, isDouble) != 0
}

// odd returns the double for an unusual text if it prints unchanged.
func (c *Columns) odd(text []byte, among kinds) kinds {
	if among&isDouble == 0 || !c.reads(schema.Double, text) {
		return 0
	}
	c.text = celltext.AppendText(c.text[:0], &schema.Column{Type: schema.Double}, c.cell)
	if !bytes.Equal(c.text, text) {
		return 0
	}
	return isDouble
}

// jsonKinds returns the kinds, among some, that print a JSON value unchanged.
func (c *Columns) jsonKinds(value []byte, among kinds) (kinds, shape) {
	switch value[0] {
	case '{', '[':
		return 0, shape{}
	case '"':
		if bytes.IndexByte(value, '\\') >= 0 {
			return 0, shape{}
		}
		text := jsonin.String(value)
		k, s := c.fieldKinds(text, among)
		if len(text) > 0 && k&isDouble != 0 && text[len(text)-1]|0x20 >= 'a' {
			return k, s // NaN, +Inf, -Inf
		}
		return k & (isDecimal | isDate | isTime), s
	}
	k, s := c.fieldKinds(value, among)
	if k&isInteger == 0 && k&isDouble != 0 {
		var err error
		as := schema.Column{Type: schema.Double}
		if c.cell, err = cell.FromJSON(c.cell[:0], &as, value); err != nil {
			return 0, s
		}
	}
	return k & (isBool | isInteger | isDouble), s
}
