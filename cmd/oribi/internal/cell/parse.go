// Package cell reads cells, the bytes of values as the engine keeps them, from the forms of text
// that the command takes: JSON values, keys, literals of expressions. The table of forms stands in
// package celltext, which writes them.
package cell

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi/cmd/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// FromJSON appends the cell that value, a checked JSON value other than null, is in column c.
// Errors tell what is wrong with the value and do not name the column.
func FromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	switch t := c.Type; {
	case t == schema.String || t == schema.Varchar:
		if value[0] != '"' {
			return dst, want("a string", value)
		}
		from := len(dst)
		dst = jsonin.AppendString(dst, value)
		return dst, checkLength(c, dst[from:])
	case t == schema.Bool:
		if value[0] != 't' && value[0] != 'f' {
			return dst, want("true or false", value)
		}
		return FromBool(dst, value[0] == 't'), nil
	case t == schema.Binary:
		if value[0] != '"' {
			return dst, want(`"0x…"`, value)
		}
		return FromHex(dst, string(jsonin.String(value)))
	case t == schema.Date:
		if value[0] != '"' {
			return dst, want(`a date "year-month-day"`, value)
		}
		return FromDate(dst, string(jsonin.String(value)))
	case t == schema.Float || t == schema.Double:
		return floatFromJSON(dst, t, value)
	case t.Decimal():
		return decimalFromJSON(dst, c, value)
	case t == schema.Array:
		return arrayFromJSON(dst, c, value)
	}
	return integerFromJSON(dst, c, value)
}

func want(what string, value []byte) error {
	return fmt.Errorf("want %s, not %s", what, jsonin.Kind(value))
}

func isNumber(value []byte) bool { return value[0] == '-' || value[0] >= '0' && value[0] <= '9' }

func integerFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	if !isNumber(value) {
		return dst, want("an integer", value)
	}
	for _, b := range value {
		if b == '.' || b == 'e' || b == 'E' {
			return dst, fmt.Errorf("want an integer in plain digits, not %s", excerpt(value))
		}
	}
	if c.Type == schema.Int128 {
		return FromNumber(dst, c, string(value))
	}
	dst, err := appendInteger(dst, c.Type, string(value))
	return dst, numberError(c, string(value), err)
}

func floatFromJSON(dst []byte, t schema.Type, value []byte) ([]byte, error) {
	if value[0] == '"' {
		return FromFloatName(dst, t, string(jsonin.String(value)))
	}
	if !isNumber(value) {
		return dst, want("a number", value)
	}
	return appendFloatCell(dst, t, string(value))
}

func decimalFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	text := value
	if value[0] == '"' {
		text = jsonin.String(value)
	} else if !isNumber(value) {
		return dst, want("a decimal", value)
	}
	return FromDecimal(dst, c, string(text))
}

// FromDecimal appends the cell of a decimal column: digits, and behind the point no more of them
// than the scale.
func FromDecimal(dst []byte, c *schema.Column, text string) ([]byte, error) {
	_, decimals, plain, ok := parseNumber([]byte(text))
	if !ok || !plain {
		return dst, fmt.Errorf("want a decimal in plain digits, not %s", excerpt([]byte(text)))
	}
	if decimals > c.Scale {
		return dst, fmt.Errorf("%s has more than %d decimals", excerpt([]byte(text)), c.Scale)
	}
	return FromNumber(dst, c, text)
}

// FromNumber appends the cell of a column of numbers that is exactly the number written in text, in
// whatever way it is written; of floats the nearest one, which for a number beyond the largest is
// an infinity, as rounding by IEEE 754 has it. (As the value of a cell, in JSON, such a number is
// an error: what is written would not be read back.)
func FromNumber(dst []byte, c *schema.Column, text string) ([]byte, error) {
	if c.Type == schema.Float || c.Type == schema.Double {
		f, err := strconv.ParseFloat(text, 8*c.Type.Width())
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return dst, fmt.Errorf("%s is no number", excerpt([]byte(text)))
		}
		return appendFloatBits(dst, c.Type, f), nil
	}
	n, _, _, ok := parseNumber([]byte(text))
	if !ok {
		return dst, fmt.Errorf("%s is no number", excerpt([]byte(text)))
	}
	m, err := n.scaled(c.Scale)
	if err != nil {
		return dst, numberError(c, text, err)
	}
	v, fits := m.signed(n.negative)
	switch {
	case !fits, c.Type.Decimal() && !m.below(c.Precision):
		return dst, numberError(c, text, errRange)
	case c.Type.Decimal(), c.Type == schema.Int128:
		return appendWide(dst, v, c.Type.Width()), nil
	}
	dst, err = appendInteger(dst, c.Type, v.String())
	return dst, numberError(c, text, err)
}

func numberError(c *schema.Column, text string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w for %s", excerpt([]byte(text)), err, c.TypeName())
}

func appendFloatCell(dst []byte, t schema.Type, text string) ([]byte, error) {
	width := 8 * t.Width()
	f, err := strconv.ParseFloat(text, width)
	if err != nil {
		return dst, fmt.Errorf("%s %w for a float of %d bits", excerpt([]byte(text)), errRange, width)
	}
	return appendFloatBits(dst, t, f), nil
}

func appendFloatBits(dst []byte, t schema.Type, f float64) []byte {
	if t == schema.Float {
		return appendLittle(dst, uint64(math.Float32bits(float32(f))), 4)
	}
	return appendLittle(dst, math.Float64bits(f), 8)
}

// The bits of NaN that Kudu's files hold; those of math.NaN differ.
var quietNaN = math.Float64frombits(0x7ff8000000000000)

// FromFloatName appends the cell of a float that has a name: NaN, +Inf, -Inf.
func FromFloatName(dst []byte, t schema.Type, name string) ([]byte, error) {
	switch name {
	case "NaN":
		return appendFloatBits(dst, t, quietNaN), nil
	case "+Inf":
		return appendFloatBits(dst, t, math.Inf(1)), nil
	case "-Inf":
		return appendFloatBits(dst, t, math.Inf(-1)), nil
	}
	return dst, fmt.Errorf(`want a number, "NaN", "+Inf" or "-Inf", not %s`, excerpt([]byte(name)))
}

// FromBool appends the cell of a bool.
func FromBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// FromText appends the cell of a string or varchar column.
func FromText(dst []byte, c *schema.Column, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return dst, errors.New("is not valid UTF-8")
	}
	return append(dst, text...), checkLength(c, []byte(text))
}

func checkLength(c *schema.Column, text []byte) error {
	if c.Type != schema.Varchar || len(text) <= c.Length {
		return nil
	}
	if n := utf8.RuneCount(text); n > c.Length {
		return fmt.Errorf("has %d characters, %s holds %d", n, c.TypeName(), c.Length)
	}
	return nil
}

// FromHex appends the bytes that text names in hex behind 0x.
func FromHex(dst []byte, text string) ([]byte, error) {
	if len(text) < 2 || text[:2] != "0x" {
		return dst, fmt.Errorf(`want "0x…", not %s`, excerpt([]byte(text)))
	}
	out, err := hex.AppendDecode(dst, []byte(text[2:]))
	if err != nil {
		return dst, fmt.Errorf("%s is not hex, two digits a byte", excerpt([]byte(text)))
	}
	return out, nil
}

const secondsPerDay = 24 * 60 * 60

// FromDate appends the cell of a date written year-month-day.
func FromDate(dst []byte, text string) ([]byte, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return dst, fmt.Errorf("%s is no date (year-month-day)", excerpt([]byte(text)))
	}
	days := day.Unix() / secondsPerDay
	if days < schema.MinDate || days > schema.MaxDate {
		return dst, fmt.Errorf("%s %w: dates are 0001-01-01 to 9999-12-31", excerpt([]byte(text)), errRange)
	}
	return appendLittle(dst, uint64(days), 4), nil
}

// FromTime appends the cell of a timestamp written as RFC 3339.
func FromTime(dst []byte, text string) ([]byte, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return dst, fmt.Errorf("%s is no time (RFC 3339, as 2026-01-01T00:00:00Z)", excerpt([]byte(text)))
	}
	if t.Nanosecond()%1000 != 0 {
		return dst, fmt.Errorf("%s %w: timestamps count microseconds", excerpt([]byte(text)), errInexact)
	}
	return appendLittle(dst, uint64(t.UnixMicro()), 8), nil
}

// excerpt quotes text for a message, cut where it is long.
func excerpt(text []byte) string {
	const most = 60
	if len(text) <= most {
		return strconv.Quote(string(text))
	}
	return strconv.Quote(string(text[:most])) + "…"
}
