// Package cell parses cells, the bytes of values as the engine stores them, from JSON values, keys,
// and fields of CSV. Package celltext has the table of forms, prints them, and parses plain text.
package cell

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// FromJSON appends the cell for value, a checked JSON value other than null, in column c. Errors
// describe the value and do not name the column.
func FromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	switch t := c.Type; {
	case t == schema.String || t == schema.Varchar:
		if value[0] != '"' {
			return dst, want("a string", value)
		}
		from := len(dst)
		dst = jsonin.AppendString(dst, value)
		return dst, celltext.CheckLength(c, dst[from:])
	case t == schema.Bool:
		if value[0] != 't' && value[0] != 'f' {
			return dst, want("true or false", value)
		}
		return celltext.FromBool(dst, value[0] == 't'), nil
	case t == schema.Binary:
		if value[0] != '"' {
			return dst, want(`"0x…"`, value)
		}
		return celltext.FromHex(dst, string(jsonin.String(value)))
	case t == schema.Date:
		if value[0] != '"' {
			return dst, want(`a date "year-month-day"`, value)
		}
		return celltext.FromDate(dst, string(jsonin.String(value)))
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
	if c.Type == schema.Timestamp && value[0] == '"' {
		return celltext.FromTime(dst, string(jsonin.String(value)))
	}
	if !isNumber(value) {
		return dst, want("an integer", value)
	}
	return celltext.FromInteger(dst, c, value)
}

func floatFromJSON(dst []byte, t schema.Type, value []byte) ([]byte, error) {
	if value[0] == '"' {
		return celltext.FromFloatName(dst, t, string(jsonin.String(value)))
	}
	if !isNumber(value) {
		return dst, want("a number", value)
	}
	return celltext.FromFloat(dst, t, string(value))
}

func decimalFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	text := value
	if value[0] == '"' {
		text = jsonin.String(value)
	} else if !isNumber(value) {
		return dst, want("a decimal", value)
	}
	return celltext.FromDecimal(dst, c, string(text))
}
