package bind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Binding connects the fields of a struct type with the columns of one schema. It is immutable.
type Binding struct {
	Schema  *schema.Schema
	Fields  []Field
	Columns []int // indexes of the fields' columns in the schema

	// Keyless is the first key column that has no field; it is empty if every key column has a field.
	// Lacks is the first column without a field that every new row must set, or empty.
	Keyless, Lacks string
}

// Bind makes the conversions of the fields. column returns the index in s of the column of field i. If
// exact, a time with nanoseconds is refused, not rounded down to microseconds. Errors: ErrSchema, and the
// errors of column, with the name of the field.
func (rt *RowType) Bind(s *schema.Schema, exact bool, column func(i int) (int, error)) (*Binding, error) {
	b := &Binding{Schema: s}
	for i := range rt.tags {
		tag := &rt.tags[i]
		col, err := column(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tag.text, err)
		}
		f, err := newField(&s.Columns[col], tag.typ, exact)
		if err != nil {
			return nil, fmt.Errorf("%s: column %q: %w: %w", tag.text, s.Columns[col].Name, err, fault.ErrSchema)
		}
		f.Column, f.Name, f.path = col, s.Columns[col].Name, tag.path
		b.Fields = append(b.Fields, f)
		b.Columns = append(b.Columns, col)
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if slices.Contains(b.Columns, i) {
			continue
		}
		if i < s.Keys && b.Keyless == "" {
			b.Keyless = c.Name
		}
		if !c.AutoIncrement && (i < s.Keys || c.Required()) && b.Lacks == "" {
			b.Lacks = c.Name
		}
	}
	return b, nil
}

// Choose returns the part of b with the columns of the given indexes, in that order. Errors:
// ErrSchema for a column that has no field.
func (b *Binding) Choose(columns []int) (*Binding, error) {
	part := &Binding{Schema: b.Schema, Columns: columns}
	for _, col := range columns {
		i := slices.Index(b.Columns, col)
		if i < 0 {
			return nil, fmt.Errorf("column %q has no field: %w", b.Schema.Columns[col].Name, fault.ErrSchema)
		}
		part.Fields = append(part.Fields, b.Fields[i])
	}
	return part, nil
}

// Read sets row, an addressable struct, from the cells of b.Columns. Errors: ErrSchema for a value
// that its field cannot contain, naming the column.
func (b *Binding) Read(row reflect.Value, cells [][]byte) error {
	for k := range b.Fields {
		f := &b.Fields[k]
		if err := f.take(f.of(row), cells[k]); err != nil {
			return fmt.Errorf("column %q: %w: %w", f.Name, err, fault.ErrSchema)
		}
	}
	return nil
}

// Field converts one column between a struct and a cell.
type Field struct {
	Column int    // index in the schema
	Name   string // of the column

	path []int // to the struct field
	put  func(buf []byte, f reflect.Value) ([]byte, error)
	take func(f reflect.Value, cell []byte) error

	Computed bool // the field is an operand
}

// Put returns the cell of the field in row, an addressable struct. As in Append, the cell of a byte
// string is the field's own memory, and a cell of fixed width is appended to buf, which is empty.
func (f *Field) Put(buf []byte, row reflect.Value) ([]byte, error) { return f.put(buf, f.of(row)) }

// Operand returns the operand that the field in row, an addressable struct, contains; ok is false if it is
// the zero Operand.
func (f *Field) Operand(row reflect.Value) (o Operand, ok bool) {
	o = *(*Operand)(f.of(row).Addr().UnsafePointer())
	return o, o.Kind != 0
}

// of returns the field in row, which must be addressable.
func (f *Field) of(row reflect.Value) reflect.Value {
	if len(f.path) == 1 {
		return row.Field(f.path[0])
	}
	return row.FieldByIndex(f.path)
}

// newField returns the conversions between a struct field of type t and a column. See Bind for exact.
func newField(c *schema.Column, t reflect.Type, exact bool) (Field, error) {
	var f Field
	if isOperand(t) {
		f.Computed = true
		f.put = func([]byte, reflect.Value) ([]byte, error) { return nil, errOperand }
		f.take = func(reflect.Value, []byte) error { return errOperand }
		return f, nil
	}
	if t.Kind() == reflect.Pointer {
		if t.Elem().Kind() == reflect.Pointer {
			return f, fmt.Errorf("a %s: one pointer is enough for NULL", t)
		}
		present := *c
		present.Nullable = false
		g, err := newField(&present, t.Elem(), exact)
		if err != nil {
			return f, err
		}
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return nil, nil
			}
			return g.put(buf, v.Elem())
		}
		f.take = func(v reflect.Value, cell []byte) error {
			if cell == nil {
				v.SetZero()
				return nil
			}
			p := reflect.New(t.Elem())
			v.Set(p)
			return g.take(p.Elem(), cell)
		}
		return f, nil
	}
	if t == cellType {
		f.chooseCell(c)
		return f, nil
	}
	if c.Nullable && t.Kind() != reflect.Slice {
		return f, fmt.Errorf("the column can be NULL, the field cannot: make it a *%s", t)
	}
	if !f.choose(c, t, exact) {
		return f, fmt.Errorf("a %s does not fit type %s", t, c.TypeName())
	}
	return f, nil
}

// choose sets put and take by the column's type. It reports whether the Go type fits.
func (f *Field) choose(c *schema.Column, t reflect.Type, exact bool) bool {
	// Structs are reached by address: to put one into an interface would copy it to the heap.
	switch c.Type {
	case schema.Date, schema.Timestamp:
		if t == reflect.TypeFor[time.Time]() {
			f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
				at := v.Addr().Interface().(*time.Time)
				if exact && c.Type == schema.Timestamp && at.Nanosecond()%1000 != 0 {
					return nil, fmt.Errorf("time %s has nanoseconds, a timestamp has microseconds: truncate it",
						at.Format(time.RFC3339Nano))
				}
				return appendTime(buf, c.Type, *at)
			}
			f.take = func(v reflect.Value, cell []byte) error {
				*v.Addr().Interface().(*time.Time) = timeOf(c.Type, cell)
				return nil
			}
			return true
		}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendDecimal(buf, c, *v.Addr().Interface().(*batch.Decimal))
		}
		f.take = func(v reflect.Value, cell []byte) error {
			*v.Addr().Interface().(*batch.Decimal) = decimalOf(c, cell)
			return nil
		}
		return t == reflect.TypeFor[batch.Decimal]()
	case schema.Int128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(buf, c, *v.Addr().Interface().(*batch.Int128))
		}
		f.take = func(v reflect.Value, cell []byte) error {
			*v.Addr().Interface().(*batch.Int128) = batch.Int128OfCell(c.Type, cell)
			return nil
		}
		return t == reflect.TypeFor[batch.Int128]()
	case schema.String, schema.Varchar, schema.Binary:
		return f.chooseString(c, t)
	case schema.Array:
		return f.chooseArray(c, t, exact)
	case schema.Bool:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendBool(buf, v.Bool()), nil }
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetBool(cell[0] != 0)
			return nil
		}
		return t.Kind() == reflect.Bool
	case schema.Float, schema.Double:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendFloat(buf, c.Type, v.Float()) }
		f.take = func(v reflect.Value, cell []byte) error {
			if c.Type == schema.Float {
				v.SetFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))))
			} else {
				v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(cell)))
			}
			return nil
		}
		return t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32 && c.Type == schema.Float
	}
	return f.chooseInteger(c, t)
}

// chooseCell sets put and take for a field that is a Cell, which fits each type.
func (f *Field) chooseCell(c *schema.Column) {
	f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendCell(buf, c, v.Bytes()) }
	f.take = func(v reflect.Value, cell []byte) error {
		v.SetBytes(bytes.Clone(cell))
		return nil
	}
}

func (f *Field) chooseString(c *schema.Column, t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.String:
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
			b := bytesOf(v.String())
			if c.Type == schema.Binary {
				return orEmpty(b), nil
			}
			return orEmpty(b), celltext.CheckText(c, b)
		}
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetString(string(cell))
			return nil
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
			b := v.Bytes()
			if b == nil && c.Nullable {
				return nil, nil
			}
			if c.Type == schema.Binary {
				return orEmpty(b), nil
			}
			return orEmpty(b), celltext.CheckText(c, b)
		}
		f.take = func(v reflect.Value, cell []byte) error {
			if cell == nil {
				v.SetZero()
				return nil
			}
			v.SetBytes(append([]byte{}, cell...))
			return nil
		}
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8 && c.Type == schema.Binary:
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) { return orEmpty(v.Bytes()), nil }
		f.take = func(v reflect.Value, cell []byte) error {
			if len(cell) != t.Len() {
				return fmt.Errorf("%d bytes, which a %s cannot contain", len(cell), t)
			}
			copy(v.Bytes(), cell)
			return nil
		}
	default:
		return false
	}
	return true
}

// chooseInteger accepts Go integers that can represent every value of the column.
func (f *Field) chooseInteger(c *schema.Column, t reflect.Type) bool {
	z, width := reflect.Zero(t), 8*c.Type.Width()
	unsigned := !fits(c.Type, batch.Int128Of(-1))
	switch {
	case z.CanInt():
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(buf, c, batch.Int128Of(v.Int()))
		}
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetInt(int64(batch.Int128OfCell(c.Type, cell).Lo))
			return nil
		}
		return t.Bits() > width || t.Bits() == width && !unsigned
	case z.CanUint() && unsigned:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(buf, c, batch.Int128{Lo: v.Uint()})
		}
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetUint(batch.Int128OfCell(c.Type, cell).Lo)
			return nil
		}
		return t.Bits() >= width
	}
	return false
}

// chooseArray accepts slices of Go types that fit the elements, of pointers to them for elements
// that may be NULL, and of any.
func (f *Field) chooseArray(c *schema.Column, t reflect.Type, exact bool) bool {
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
		f.take = func(v reflect.Value, cell []byte) error {
			if v.SetZero(); cell != nil {
				v.Set(reflect.ValueOf(arrayValue(c, cell)).Convert(v.Type()))
			}
			return nil
		}
		return true
	}
	element := c.Elements()
	element.Nullable = t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Slice
	g, err := newField(&element, t.Elem(), exact)
	if err != nil {
		return false
	}
	f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() && c.Nullable {
			return nil, nil
		}
		return buildArray(c, v, g.put)
	}
	f.take = func(v reflect.Value, cell []byte) error {
		if cell == nil {
			v.SetZero()
			return nil
		}
		elements, _ := schema.ArrayElements(nil, c.Element, cell) // checked when it was written or read
		out := reflect.MakeSlice(v.Type(), len(elements), len(elements))
		for i, e := range elements {
			if e == nil && !element.Nullable {
				return fmt.Errorf("element %d is NULL, which a %s cannot contain: make it a []*%s", i, t, t.Elem())
			}
			if err := g.take(out.Index(i), e); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		v.Set(out)
		return nil
	}
	return true
}
