package celltext

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi/schema"
)

// FromDecimal appends the cell of a decimal column. text is plain digits, with at most as many
// after the decimal point as the column's scale.
func FromDecimal(dst []byte, c *schema.Column, text string) ([]byte, error) {
	_, decimals, plain, ok := parseNumber([]byte(text))
	if !ok || !plain {
		return dst, fmt.Errorf("want a decimal in plain digits, not %s", Excerpt([]byte(text)))
	}
	if decimals > c.Scale {
		return dst, fmt.Errorf("%s has more than %d decimals", Excerpt([]byte(text)), c.Scale)
	}
	return FromNumber(dst, c, text)
}

// FromNumber appends the cell of a numeric column whose value is exactly the number in text, in any
// notation; for floats the nearest value.
func FromNumber(dst []byte, c *schema.Column, text string) ([]byte, error) {
	if c.Type == schema.Float || c.Type == schema.Double {
		return FromFloat(dst, c.Type, text)
	}
	n, _, _, ok := parseNumber([]byte(text))
	if !ok {
		return dst, fmt.Errorf("%s is not a number", Excerpt([]byte(text)))
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
	return fmt.Errorf("%s %w for %s", Excerpt([]byte(text)), err, c.TypeName())
}

// FromInteger appends the cell of an integer column for text in plain digits.
func FromInteger(dst []byte, c *schema.Column, text []byte) ([]byte, error) {
	for _, b := range text {
		if b == '.' || b == 'e' || b == 'E' {
			return dst, fmt.Errorf("want an integer in plain digits, not %s", Excerpt(text))
		}
	}
	if c.Type == schema.Int128 {
		return FromNumber(dst, c, string(text))
	}
	dst, err := appendInteger(dst, c.Type, string(text))
	return dst, numberError(c, string(text), err)
}

// FromFloat appends the float of type t nearest to a number.
func FromFloat(dst []byte, t schema.Type, text string) ([]byte, error) {
	width := 8 * t.Width()
	f, err := strconv.ParseFloat(text, width)
	if err != nil {
		return dst, fmt.Errorf("%s %w for a float of %d bits", Excerpt([]byte(text)), errRange, width)
	}
	return appendFloatBits(dst, t, f), nil
}

func appendFloatBits(dst []byte, t schema.Type, f float64) []byte {
	if t == schema.Float {
		return appendLittle(dst, uint64(math.Float32bits(float32(f))), 4)
	}
	return appendLittle(dst, math.Float64bits(f), 8)
}

// quietNaN has the bits of NaN in Kudu's files. math.NaN has others: 7ff8000000000001.
var quietNaN = math.Float64frombits(0x7ff8000000000000)

// FromFloatName appends the cell of a float with a name: NaN, +Inf, -Inf.
func FromFloatName(dst []byte, t schema.Type, name string) ([]byte, error) {
	switch name {
	case "NaN":
		return appendFloatBits(dst, t, quietNaN), nil
	case "+Inf":
		return appendFloatBits(dst, t, math.Inf(1)), nil
	case "-Inf":
		return appendFloatBits(dst, t, math.Inf(-1)), nil
	}
	return dst, fmt.Errorf(`want a number, "NaN", "+Inf" or "-Inf", not %s`, Excerpt([]byte(name)))
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
	return append(dst, text...), CheckText(c, []byte(text))
}

// CheckText returns an error if text is not UTF-8, or longer than a varchar column allows.
func CheckText(c *schema.Column, text []byte) error {
	if !utf8.Valid(text) {
		return ErrNotUTF8
	}
	return CheckLength(c, text)
}

// CheckLength returns an error if text is longer than a varchar column allows.
func CheckLength(c *schema.Column, text []byte) error {
	if c.Type != schema.Varchar || len(text) <= c.Length {
		return nil
	}
	if n := utf8.RuneCount(text); n > c.Length {
		return fmt.Errorf("has %d characters, %s has at most %d", n, c.TypeName(), c.Length)
	}
	return nil
}

// FromHex appends the bytes of text, which is 0x followed by hex digits.
func FromHex(dst []byte, text string) ([]byte, error) {
	if len(text) < 2 || text[:2] != "0x" {
		return dst, fmt.Errorf(`want "0x…", not %s`, Excerpt([]byte(text)))
	}
	out, err := hex.AppendDecode(dst, []byte(text[2:]))
	if err != nil {
		return dst, fmt.Errorf("%s is not hex with two digits per byte", Excerpt([]byte(text)))
	}
	return out, nil
}

// FromDate appends the cell of a date written year-month-day.
func FromDate(dst []byte, text string) ([]byte, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || len(text) != len(time.DateOnly) {
		return dst, fmt.Errorf("%s is not a date (year-month-day)", Excerpt([]byte(text)))
	}
	days := day.Unix() / secondsPerDay
	if days < schema.MinDate || days > schema.MaxDate {
		return dst, fmt.Errorf("%s %w: dates are 0001-01-01 to 9999-12-31", Excerpt([]byte(text)), errRange)
	}
	return appendLittle(dst, uint64(days), 4), nil
}

// timeLayouts are the forms of a time besides RFC 3339.
var timeLayouts = []string{
	"2006-01-02T15:04:05", time.DateTime,
	"2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700",
	"2006-01-02T15:04:05Z07", "2006-01-02 15:04:05Z07",
}

// ParseTime parses RFC 3339, or a date and a time of day in UTC: 2006-01-02T15:04:05[.ffffff], also
// with a space for the T, a zone of two or four digits (+00, +0000), and " UTC".
func ParseTime(text string) (time.Time, error) {
	var t time.Time
	err := t.UnmarshalText([]byte(text))
	if err == nil || strings.Contains(text, ",") {
		return t, err
	}
	if utc, ok := strings.CutSuffix(text, " UTC"); ok {
		return time.Parse(time.DateTime, utc)
	}
	for _, layout := range timeLayouts {
		if t, also := time.Parse(layout, text); also == nil {
			return t, nil
		}
	}
	return t, err
}

// FromTime appends the cell of a timestamp, parsed as by ParseTime.
func FromTime(dst []byte, text string) ([]byte, error) {
	t, err := ParseTime(text)
	if err != nil {
		return dst, fmt.Errorf("%s is not a time (RFC 3339, for example 2026-01-01T00:00:00Z)", Excerpt([]byte(text)))
	}
	if t.Nanosecond()%1000 != 0 {
		return dst, fmt.Errorf("%s %w: timestamps count microseconds", Excerpt([]byte(text)), errInexact)
	}
	return appendLittle(dst, uint64(t.UnixMicro()), 8), nil
}

// Excerpt quotes text for a message and shortens long text.
func Excerpt(text []byte) string {
	const most = 60
	if len(text) <= most {
		return strconv.Quote(string(text))
	}
	return strconv.Quote(string(text[:most])) + "…"
}
