package oribi

import (
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/schema"
)

// arrayCell returns the cell of an array from a Go slice, or from a Cell, which is the array's bytes
// and not its elements. The elements are values as in Row, nil for NULL. A nil slice is NULL.
func arrayCell(c *schema.Column, v any) ([]byte, error) {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return nil, nil
		}
		r = r.Elem()
	}
	switch {
	case r.Kind() == reflect.Slice && r.IsNil():
		return nil, nil
	case r.Type() == cellType:
		return appendCell(nil, c, r.Bytes())
	case r.Kind() != reflect.Slice && r.Kind() != reflect.Array:
		return nil, fmt.Errorf("a %T does not fit type %s", v, c.TypeName())
	}
	element := c.Elements()
	return buildArray(c, r, func(buf []byte, e reflect.Value) ([]byte, error) { return appendValue(buf, &element, e.Interface()) })
}

// buildArray returns the cell of an array with the elements of a slice. put returns the cell of one
// element; a cell of fixed width is appended to buf, which is empty and has room for it.
func buildArray(c *schema.Column, slice reflect.Value, put func(buf []byte, e reflect.Value) ([]byte, error)) ([]byte, error) {
	n, width := slice.Len(), c.Element.Width()
	if n > schema.MaxElements {
		return nil, errTooManyElements(n)
	}
	elements, memory := make([][]byte, n), make([]byte, n*width)
	size := 0
	for i := range elements {
		cell, err := put(memory[i*width:i*width:(i+1)*width], slice.Index(i))
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		elements[i] = cell
		if size += len(cell); size > maxCellBytes {
			return nil, fmt.Errorf("%d bytes and more, limit %d", size, maxCellBytes)
		}
	}
	return schema.AppendArray([]byte{}, c.Element, elements), nil
}

func errTooManyElements(n int) error {
	return fmt.Errorf("an array of %d elements, limit %d", n, schema.MaxElements)
}

// checkArrayCell checks the cell of an array and its elements.
func checkArrayCell(c *schema.Column, cell []byte) error {
	elements, err := schema.ArrayElements(nil, c.Element, cell)
	if err != nil {
		return fmt.Errorf("bytes that are no cell of %s (%v)", c.TypeName(), err)
	}
	element := c.Elements()
	for i, e := range elements {
		if err := checkCell(&element, e); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// arrayOf returns the cell of an array as a Go value, with nil for NULL elements.
func arrayOf(c *schema.Column, cell []byte) []any {
	element := c.Elements()
	elements, _ := schema.ArrayElements(nil, c.Element, cell) // checked when it was written or read
	out := make([]any, len(elements))
	for i, e := range elements {
		out[i] = valueOf(&element, e)
	}
	return out
}
