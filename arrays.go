package oribi

import (
	"fmt"
	"reflect"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// arrayCell makes the cell of an array of a Go slice: of values as Row takes them for single ones,
// nil for NULL elements. A nil slice is NULL.
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
	case r.Kind() != reflect.Slice && r.Kind() != reflect.Array:
		return nil, fmt.Errorf("a %T does not fit type %s", v, c.TypeName())
	}
	element := c.Elements()
	return buildArray(c, r, func(buf []byte, e reflect.Value) ([]byte, error) { return appendValue(&buf, &element, e.Interface()) })
}

// buildArray makes the cell of an array of the elements of a slice. put makes the cell of one of
// them: those of fixed width in the memory that it is given, of length 0.
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

// checkArrayCell checks an array's cell and its elements.
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

// arrayOf is an array's cell as a Go value: []any, nil for NULL elements.
func arrayOf(c *schema.Column, cell []byte) []any {
	element := c.Elements()
	elements, _ := schema.ArrayElements(nil, c.Element, cell) // checked when it was written or read
	out := make([]any, len(elements))
	for i, e := range elements {
		out[i] = valueOf(&element, e)
	}
	return out
}

// packArrays is columns with those in array form as cells, which is how everything behind takes
// them; the vectors of the caller stay as they are. On an error row and column are where.
func packArrays(s *schema.Schema, columns []*batch.Vector, limit int) (packed []*batch.Vector, row int, column string, err error) {
	packed = columns
	for i, v := range columns {
		if v == nil || v.Elements == nil {
			continue
		}
		if row, err := checkArrays(v, limit); err != nil {
			return nil, row, s.Columns[i].Name, err
		}
		if &packed[0] == &columns[0] {
			packed = append([]*batch.Vector(nil), columns...)
		}
		packed[i] = &batch.Vector{Type: schema.Array}
		if err := packed[i].AppendPacked(v); err != nil {
			return nil, packed[i].Len, s.Columns[i].Name, err
		}
	}
	return packed, 0, "", nil
}

// checkArrays tells the first cell of a vector in array form that no row can have.
func checkArrays(v *batch.Vector, limit int) (row int, err error) {
	width := v.Type.Width()
	for i := range v.Len {
		from, to := v.Array(i)
		if to-from > schema.MaxElements {
			return i, errTooManyElements(to - from)
		}
		size := 0
		for k := from; k < to && width == 0; k++ {
			size += len(v.Elements.Cell(k))
		}
		if size > limit {
			return i, fmt.Errorf("%d bytes and more, limit %d", size, limit)
		}
	}
	return 0, nil
}

// chooseArray makes a field of a slice: of the Go types that fit the elements, pointers for those
// that may be NULL; or of any.
func (f *field) chooseArray(c *schema.Column, t reflect.Type) bool {
	if t.Kind() != reflect.Slice {
		return false
	}
	if t.Elem().Kind() == reflect.Interface && t.Elem().NumMethod() == 0 {
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() && !c.Nullable {
				return schema.AppendArray([]byte{}, c.Element, nil), nil
			}
			return arrayCell(c, v.Interface())
		}
		f.take = func(v reflect.Value, cell []byte) {
			if v.SetZero(); cell != nil {
				v.Set(reflect.ValueOf(arrayOf(c, cell)).Convert(v.Type()))
			}
		}
		return true
	}
	element := c.Elements()
	element.Nullable = t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Slice
	g, err := newField(&element, reflect.StructField{Type: t.Elem(), Index: []int{0}})
	if err != nil {
		return false
	}
	f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() && c.Nullable {
			return nil, nil
		}
		return buildArray(c, v, g.put)
	}
	f.take = func(v reflect.Value, cell []byte) {
		if cell == nil {
			v.SetZero()
			return
		}
		elements, _ := schema.ArrayElements(nil, c.Element, cell) // checked when it was written or read
		out := reflect.MakeSlice(v.Type(), len(elements), len(elements))
		for i, e := range elements {
			g.take(out.Index(i), e)
		}
		v.Set(out)
	}
	if !element.Nullable {
		f.refuses = func(cell []byte) error {
			elements, _ := schema.ArrayElements(nil, c.Element, cell)
			for i, e := range elements {
				if e == nil {
					return fmt.Errorf("column %q: element %d is NULL, which a %s cannot hold: make it a []*%s: %w", c.Name, i, t, t.Elem(), fault.ErrSchema)
				}
			}
			return nil
		}
	}
	return true
}
