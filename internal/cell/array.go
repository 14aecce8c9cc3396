package cell

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// arrayFromJSON appends the cell of an array column: a JSON array of values of the elements' type,
// null for a NULL element.
func arrayFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	if value[0] != '[' {
		return dst, want("an array", value)
	}
	var elements [][]byte
	buf := []byte{} // may be reallocated: earlier elements then keep the old array
	element := c.Elements()
	for w := jsonin.Walk(value); w.Next(); {
		if len(elements) == schema.MaxElements {
			return dst, fmt.Errorf("has more than %d elements", schema.MaxElements)
		}
		if jsonin.IsNull(w.Value) {
			elements = append(elements, nil)
			continue
		}
		from := len(buf)
		var err error
		if buf, err = FromJSON(buf, &element, w.Value); err != nil {
			return dst, fmt.Errorf("element %d: %w", len(elements), err)
		}
		elements = append(elements, buf[from:len(buf):len(buf)])
	}
	return schema.AppendArray(dst, c.Element, elements), nil
}

// FromField is celltext.FromField, extended to arrays: their text is a JSON array.
func FromField(dst []byte, c *schema.Column, text []byte) ([]byte, error) {
	if c.Type != schema.Array {
		return celltext.FromField(dst, c, text)
	}
	text = jsonin.Trim(text)
	if err := jsonin.Check(text); err != nil {
		return dst, err
	}
	return arrayFromJSON(dst, c, text)
}
