// Package celltext formats cells as text, for every column type, and parses that text.
//
// A cell is the bytes of one value as the engine stores them: nil for NULL, little-endian for fixed
// widths, the bytes themselves for strings. The text has two forms:
//
//	type             JSON                        CSV
//	integers         digits                      the same
//	bool             true, false                 the same
//	float, double    shortest that reads back    the same
//	                 "NaN" "+Inf" "-Inf"         without quotes
//	decimal(p,s)     "1.50", s decimals          without quotes
//	date             "2026-11-21"                without quotes
//	timestamp        microseconds since 1970     RFC 3339 in UTC, fraction digits where they
//	                                             are not zero; beyond the years 1 to 9999 as
//	                                             in JSON
//	binary           "0x…", lower case           without quotes
//	string, varchar  escaped only where needed   unchanged
//	array            [a,b,…] of these, null for  the JSON
//	                 a NULL element
//
// All functions append to a byte slice. They make no other allocations, except for a list of an
// array's elements.
package celltext

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// AppendJSON appends the JSON form of a cell of column c; nil is null.
func AppendJSON(dst []byte, c *schema.Column, cell []byte) []byte {
	switch {
	case cell == nil:
		return append(dst, "null"...)
	case c.Type == schema.String || c.Type == schema.Varchar:
		return AppendQuoted(dst, cell)
	case c.Type == schema.Array:
		return appendArray(dst, c, cell)
	case c.Type == schema.Timestamp:
		return strconv.AppendInt(dst, signed(cell), 10)
	case quoted(c.Type, cell):
		return append(AppendText(append(dst, '"'), c, cell), '"')
	}
	return AppendText(dst, c, cell)
}

// quoted reports whether the JSON form of a cell that is not a string has quotes.
func quoted(t schema.Type, cell []byte) bool {
	switch t {
	case schema.Float, schema.Double:
		f := floatOf(t, cell)
		return math.IsNaN(f) || math.IsInf(f, 0)
	case schema.Date, schema.Binary:
		return true
	}
	return t.Decimal()
}

// AppendObject appends an object with the cells of columns, as AppendJSON prints them.
func AppendObject(dst []byte, columns []schema.Column, cells [][]byte) []byte {
	dst = append(dst, '{')
	for i := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendQuoted(dst, []byte(columns[i].Name)), ':')
		dst = AppendJSON(dst, &columns[i], cells[i])
	}
	return append(dst, '}')
}

// AppendText appends the plain form of a cell of column c, nothing for NULL.
func AppendText(dst []byte, c *schema.Column, cell []byte) []byte {
	if cell == nil {
		return dst
	}
	switch c.Type {
	case schema.String, schema.Varchar:
		return append(dst, cell...)
	case schema.Array:
		return appendArray(dst, c, cell)
	case schema.Binary:
		return hex.AppendEncode(append(dst, "0x"...), cell)
	case schema.Bool:
		return strconv.AppendBool(dst, cell[0] != 0)
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		return strconv.AppendUint(dst, uint64(signed(cell))&(math.MaxUint64>>(64-8*len(cell))), 10)
	case schema.Float, schema.Double:
		return appendFloat(dst, floatOf(c.Type, cell), 8*len(cell))
	case schema.Date:
		return appendDate(dst, signed(cell))
	case schema.Timestamp:
		return appendTime(dst, signed(cell))
	case schema.Int128, schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return batch.Decimal{Unscaled: wideOf(cell), Scale: c.Scale}.Append(dst)
	}
	return strconv.AppendInt(dst, signed(cell), 10)
}

// appendArray appends the JSON form of an array cell, which the caller has checked.
func appendArray(dst []byte, c *schema.Column, cell []byte) []byte {
	element := c.Elements()
	elements, _ := schema.ArrayElements(nil, c.Element, cell)
	dst = append(dst, '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, &element, e)
	}
	return append(dst, ']')
}

// signed returns the signed integer of a cell of 1, 2, 4 or 8 bytes.
func signed(cell []byte) int64 {
	switch len(cell) {
	case 1:
		return int64(int8(cell[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(cell)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(cell)))
	}
	return int64(binary.LittleEndian.Uint64(cell))
}

func wideOf(cell []byte) batch.Int128 {
	if len(cell) == 16 {
		return batch.Int128{Lo: binary.LittleEndian.Uint64(cell), Hi: int64(binary.LittleEndian.Uint64(cell[8:]))}
	}
	n := signed(cell)
	return batch.Int128{Lo: uint64(n), Hi: n >> 63}
}

func floatOf(t schema.Type, cell []byte) float64 {
	if t == schema.Float {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(cell))
}

// appendFloat appends the shortest text that parses to f in the given width, in the format of
// encoding/json.
func appendFloat(dst []byte, f float64, width int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "+Inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-Inf"...)
	}
	format := byte('f')
	if size := math.Abs(f); size != 0 {
		small, large := 1e-6, 1e21
		if width == 32 {
			small, large = float64(float32(small)), float64(float32(large))
		}
		if size < small || size >= large {
			format = 'e'
		}
	}
	dst = strconv.AppendFloat(dst, f, format, -1, width)
	if n := len(dst); format == 'e' && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1]) // e-09 becomes e-9
	}
	return dst
}

const secondsPerDay = 24 * 60 * 60

// appendDate appends a date as year-month-day. It formats years of four digits itself, since
// package time takes more than three times as long (BenchmarkDate).
func appendDate(dst []byte, days int64) []byte {
	if days < minPlainDate || days > maxPlainDate {
		return time.Unix(days*secondsPerDay, 0).UTC().AppendFormat(dst, time.DateOnly)
	}
	// Count days from 0000-03-01: the leap day is then the last day of a year, and one formula
	// gives the lengths of the months.
	d := uint64(days + daysTo1970)
	era, d := d/daysOf400Years, d%daysOf400Years
	ofEra := (d - d/1460 + d/36524 - d/146096) / 365
	d -= 365*ofEra + ofEra/4 - ofEra/100
	month := (5*d + 2) / 153 // 0 is March
	day := d - (153*month+2)/5 + 1
	year := 400*era + ofEra
	if month += 3; month > 12 {
		month -= 12
		year++
	}
	return append(dst, byte('0'+year/1000), byte('0'+year/100%10), byte('0'+year/10%10), byte('0'+year%10), '-',
		byte('0'+month/10), byte('0'+month%10), '-', byte('0'+day/10), byte('0'+day%10))
}

// appendTime appends a time in UTC as RFC 3339.
func appendTime(dst []byte, micros int64) []byte {
	const microsPerDay = secondsPerDay * 1_000_000
	days, rest := micros/microsPerDay, micros%microsPerDay
	if rest < 0 {
		days, rest = days-1, rest+microsPerDay
	}
	if days < schema.MinDate || days > schema.MaxDate {
		return strconv.AppendInt(dst, micros, 10)
	}
	dst = append(appendDate(dst, days), 'T')
	seconds, fraction := uint64(rest/1_000_000), uint64(rest%1_000_000)
	hour, minute, second := byte(seconds/3600), byte(seconds/60%60), byte(seconds%60)
	dst = append(dst, '0'+hour/10, '0'+hour%10, ':', '0'+minute/10, '0'+minute%10, ':', '0'+second/10, '0'+second%10)
	if fraction != 0 {
		dst = batch.Int128{Lo: fraction}.AppendDigits(append(dst, '.'), 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

const (
	daysOf400Years = 146_097
	daysTo1970     = 719_468 // from 0000-03-01
	minPlainDate   = -719_468
	maxPlainDate   = 2_932_896 // 9999-12-31
)

const hexDigits = "0123456789abcdef"

// AppendQuoted appends text as a JSON string. It escapes only quotes, backslashes and characters
// below U+0020.
func AppendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, b := range text {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}
