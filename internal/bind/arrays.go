package bind

import (
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// MaxCellBytes is the largest size of a cell that an option can allow.
const MaxCellBytes = 4 << 20

// arrayCell returns the cell of an array from a Go slice, or from a Cell, which is the array's bytes
// and not its elements. The elements are values as in Append, nil for NULL. A nil slice is NULL.
func arrayCell(c *schema.Column, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
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
		return r.Bytes(), checkArray(c, r.Bytes())
	case r.Kind() != reflect.Slice && r.Kind() != reflect.Array:
		return nil, errType(c, v)
	}
	element := c.Elements()
	return buildArray(c, r, func(buf []byte, e reflect.Value) ([]byte, error) {
		return appendScalar(buf, &element, e.Interface())
	})
}

var cellType = reflect.TypeFor[batch.Cell]()

// buildArray returns the cell of an array with the elements of a slice. put returns the cell of one
// element; a cell of fixed width is appended to buf, which is empty and has room for it.
func buildArray(
	c *schema.Column, slice reflect.Value, put func(buf []byte, e reflect.Value) ([]byte, error),
) ([]byte, error) {
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
		if size += len(cell); size > MaxCellBytes {
			return nil, fmt.Errorf("%d bytes and more, limit %d", size, MaxCellBytes)
		}
	}
	return schema.AppendArray([]byte{}, c.Element, elements), nil
}

func errTooManyElements(n int) error {
	return fmt.Errorf("an array of %d elements, limit %d", n, schema.MaxElements)
}

// checkArray checks the cell of an array and its elements.
func checkArray(c *schema.Column, cell []byte) error {
	elements, err := schema.ArrayElements(nil, c.Element, cell)
	if err != nil {
		return fmt.Errorf("bytes that are no cell of %s (%v)", c.TypeName(), err)
	}
	element := c.Elements()
	for i, e := range elements {
		if err := checkScalar(&element, e); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// arrayValue returns the cell of an array as a Go value, with nil for NULL elements.
func arrayValue(c *schema.Column, cell []byte) []any {
	element := c.Elements()
	elements, _ := schema.ArrayElements(nil, c.Element, cell) // checked when it was written or read
	out := make([]any, len(elements))
	for i, e := range elements {
		out[i] = scalarValue(&element, e)
	}
	return out
}
