package carbondata

import (
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
)

// checkText refuses bytes that CarbonData reads as another value.
func checkText(c *Column, v []byte) error {
	switch {
	case c.Type == Binary && len(v) == 0:
		return fmt.Errorf("no bytes: CarbonData reads them as NULL")
	case c.Type == Binary:
		return nil
	case string(v) == nullText:
		return fmt.Errorf("%q: CarbonData reads it as NULL", nullText)
	case !utf8.Valid(v):
		return fmt.Errorf("text that is not UTF-8")
	case c.Type == String && len(v) > maxTextChars:
		return checkLength(v)
	}
	return nil
}

func checkLength(v []byte) error {
	chars := 0
	for _, r := range string(v) {
		chars += utf16.RuneLen(r)
	}
	if chars > maxTextChars || len(v) > maxTextBytes {
		return fmt.Errorf("text of %d characters in %d bytes, at most %d in %d are possible in a STRING", chars,
			len(v), maxTextChars, maxTextBytes)
	}
	return nil
}

func checkDecimal(c *Column, v batch.Int128) error {
	if !v.FitsDigits(c.Precision) {
		return fmt.Errorf("%v is out of the range of %s", v, c.TypeName())
	}
	return nil
}

// check refuses a value of another type than the column's, and a value that CarbonData reads as
// another value, for example the text "@NU#LL$!", which is read as NULL. It adds to n the values of
// nested columns.
func (c *columnWriter) check(v any, n *rowSize) error {
	if c.nested {
		n.values++
		if err := n.check(); err != nil {
			return err
		}
	}
	if v == nil {
		return c.checkNull()
	}
	switch c.Type {
	case String, Varchar, Binary:
		b, ok := textBytes(c.Type, v)
		if !ok {
			return wrongType(&c.Column, v)
		}
		n.bytes += len(b)
		if err := n.check(); err != nil {
			return err
		}
		return checkText(&c.Column, b)
	case Float:
		if _, ok := v.(float32); !ok {
			return wrongType(&c.Column, v)
		}
	case Double:
		if _, ok := v.(float64); !ok {
			return wrongType(&c.Column, v)
		}
	case Decimal:
		d, ok := v.(batch.Int128)
		if !ok {
			return wrongType(&c.Column, v)
		}
		return checkDecimal(&c.Column, d)
	case Array, Struct, Map:
		return c.checkNested(v, n)
	default:
		i, ok := number(c.Type, v)
		if !ok {
			return wrongType(&c.Column, v)
		}
		_, err := storedInt(c.Type, i)
		return err
	}
	return nil
}

// rowSize is the size of a row: the values of nested columns, and the bytes of all text.
type rowSize struct{ values, bytes int }

func (n *rowSize) check() error {
	if n.values > maxRowValues || n.bytes > maxRowBytes {
		return fmt.Errorf("more than %d nested values, or %d bytes of text, in a row", maxRowValues, maxRowBytes)
	}
	return nil
}

// errOneNull is why an ARRAY or a MAP is refused.
func errOneNull(t Type) error {
	return fmt.Errorf("%v of exactly one NULL: CarbonData reads it as NULL", t)
}

// checkNull refuses NULL if CarbonData reads it as another value.
func (c *columnWriter) checkNull() error {
	if c.Type == Varchar && !c.nested {
		return fmt.Errorf("NULL: CarbonData reads it as an empty VARCHAR")
	}
	return nil
}

func (c *columnWriter) checkNested(v any, n *rowSize) error {
	list, ok := v.([]any)
	switch {
	case !ok, c.Type == Struct && len(list) != len(c.children):
		return wrongType(&c.Column, v)
	case c.Type == Struct && !slices.ContainsFunc(list, func(v any) bool { return v != nil }):
		return fmt.Errorf("a STRUCT of only NULLs: CarbonData reads it as NULL")
	case c.Type != Struct && len(list) == 1 && list[0] == nil:
		return errOneNull(c.Type)
	}
	for i, element := range list {
		child := c.children[0]
		if c.Type == Struct {
			child = c.children[i]
		}
		err := child.check(element, n)
		if c.Type == Map && element == nil {
			err = fmt.Errorf("NULL instead of a pair")
		}
		if err != nil {
			if c.Type == Struct {
				return fmt.Errorf("%s: %w", child.Name, err)
			}
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func textBytes(t Type, v any) ([]byte, bool) {
	if t == Binary {
		b, ok := v.([]byte)
		return b, ok
	}
	s, ok := v.(string)
	return []byte(s), ok
}

// add adds a value that check accepts.
func (c *columnWriter) add(v any) {
	if v == nil {
		c.addNull()
		return
	}
	switch c.Type {
	case String, Varchar, Binary:
		b, _ := textBytes(c.Type, v)
		c.addBytes(b)
	case Float:
		c.addFloat(float64(v.(float32)))
	case Double:
		c.addFloat(v.(float64))
	case Decimal:
		c.addDecimal(v.(batch.Int128))
	case Array, Map:
		list := v.([]any)
		c.addElements(len(list))
		for _, element := range list {
			c.children[0].add(element)
		}
	case Struct:
		c.rows++
		for i, field := range v.([]any) {
			c.children[i].add(field)
		}
	default:
		n, _ := number(c.Type, v)
		n, _ = storedInt(c.Type, n)
		c.addInt(n)
	}
}

// storedInt returns an integer of a column as addInt takes it.
func storedInt(t Type, n int64) (int64, error) {
	switch t {
	case Date:
		return checkDate(n)
	case Timestamp:
		return checkTimestamp(n)
	}
	return n, nil
}
