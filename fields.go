package oribi

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// field moves one column between a struct and a cell.
type field struct {
	col   int // index in the schema
	index int // of the struct field
	put   func(buf []byte, f reflect.Value) ([]byte, error)
	take  func(f reflect.Value, cell []byte)

	refuses func(cell []byte) error // tells a cell that the field cannot hold; nil = it holds all
}

// read moves a cell into the struct. Errors: ErrSchema for one that the field cannot hold.
func (f *field) read(row reflect.Value, cell []byte) error {
	if f.refuses != nil && cell != nil {
		if err := f.refuses(cell); err != nil {
			return err
		}
	}
	f.take(row.Field(f.index), cell)
	return nil
}

// fieldTag is a struct field with what its tag says.
type fieldTag struct {
	field reflect.StructField
	name  string
	key   bool
}

func fieldTags(typ reflect.Type) ([]fieldTag, error) {
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("oribi: %s is not a struct: %w", typ, fault.ErrSchema)
	}
	var tags []fieldTag
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := f.Tag.Get("oribi")
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if option != "" && option != "key" {
			return nil, fmt.Errorf("oribi: %s.%s: tag option %q, want \"key\" or none: %w", typ, f.Name, option, fault.ErrSchema)
		}
		tags = append(tags, fieldTag{f, name, option == "key"})
	}
	return tags, nil
}

// SchemaOf makes the schema of a struct type: int8 to int64, uint8 to uint64, float, double,
// string, binary, bool, timestamp and int128 columns, arrays of all these but int128 for slices,
// NULL allowed where the field is a pointer. Fields tagged "key" must come first. Decimals, dates
// and varchars need more than a Go type says: make their schema with schema.New.
func SchemaOf[T any]() (*schema.Schema, error) {
	typ := reflect.TypeFor[T]()
	tags, err := fieldTags(typ)
	if err != nil {
		return nil, err
	}
	var columns []schema.Column
	keys := 0
	for i, tag := range tags {
		c := schema.Column{Name: tag.name}
		ft := tag.field.Type
		if ft.Kind() == reflect.Pointer {
			c.Nullable, ft = true, ft.Elem()
		}
		var ok bool
		if c.Type, ok = typeOf(ft); !ok && ft.Kind() == reflect.Slice {
			et := ft.Elem()
			if et.Kind() == reflect.Pointer {
				et = et.Elem()
			}
			c.Type = schema.Array
			c.Element, ok = typeOf(et)
		}
		if !ok {
			return nil, fmt.Errorf("oribi: %s.%s: no column type for %s: %w", typ, tag.field.Name, ft, fault.ErrSchema)
		}
		if tag.key {
			if keys != i {
				return nil, fmt.Errorf("oribi: %s.%s: key fields come first: %w", typ, tag.field.Name, fault.ErrSchema)
			}
			keys++
		}
		columns = append(columns, c)
	}
	return schema.New(columns, keys)
}

func typeOf(t reflect.Type) (schema.Type, bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema.Timestamp, true
	case t == reflect.TypeFor[Int128]():
		return schema.Int128, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return schema.Binary, true
	}
	switch t.Kind() {
	case reflect.Uint8:
		return schema.Uint8, true
	case reflect.Uint16:
		return schema.Uint16, true
	case reflect.Uint32:
		return schema.Uint32, true
	case reflect.Uint, reflect.Uint64:
		return schema.Uint64, true
	case reflect.Bool:
		return schema.Bool, true
	case reflect.Int8:
		return schema.Int8, true
	case reflect.Int16:
		return schema.Int16, true
	case reflect.Int32:
		return schema.Int32, true
	case reflect.Int, reflect.Int64:
		return schema.Int64, true
	case reflect.Float32:
		return schema.Float, true
	case reflect.Float64:
		return schema.Double, true
	case reflect.String:
		return schema.String, true
	}
	return 0, false
}

// newField finds the conversions between a struct field and a column.
func newField(c *schema.Column, sf reflect.StructField) (field, error) {
	f := field{index: sf.Index[0]}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		inner, present := sf, *c
		inner.Type, present.Nullable = t.Elem(), false
		g, err := newField(&present, inner)
		if err != nil {
			return f, err
		}
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			if v.IsNil() {
				return nil, nil
			}
			return g.put(buf, v.Elem())
		}
		f.take = func(v reflect.Value, cell []byte) {
			if cell == nil {
				v.SetZero()
				return
			}
			p := reflect.New(t.Elem())
			g.take(p.Elem(), cell)
			v.Set(p)
		}
		f.refuses = g.refuses
		return f, nil
	}
	if c.Nullable && t.Kind() != reflect.Slice {
		return f, fmt.Errorf("the column can be NULL, the field cannot: make it a pointer")
	}
	if !f.choose(c, t) {
		return f, fmt.Errorf("a %s does not fit type %s", t, c.TypeName())
	}
	return f, nil
}

// choose sets put and take by the column's type; false if the Go type does not fit.
func (f *field) choose(c *schema.Column, t reflect.Type) bool {
	// Structs are reached by address: to put one into an interface would copy it to the heap.
	switch c.Type {
	case schema.Date, schema.Timestamp:
		if t == reflect.TypeFor[time.Time]() {
			f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
				return appendTime(&buf, c.Type, *v.Addr().Interface().(*time.Time))
			}
			f.take = func(v reflect.Value, cell []byte) { *v.Addr().Interface().(*time.Time) = timeOf(c.Type, cell) }
			return true
		}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendDecimal(&buf, c, *v.Addr().Interface().(*Decimal))
		}
		f.take = func(v reflect.Value, cell []byte) {
			*v.Addr().Interface().(*Decimal) = Decimal{Unscaled: wide(cell), Scale: c.Scale}
		}
		return t == reflect.TypeFor[Decimal]()
	case schema.Int128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(&buf, c, *v.Addr().Interface().(*Int128))
		}
		f.take = func(v reflect.Value, cell []byte) { *v.Addr().Interface().(*Int128) = wide(cell) }
		return t == reflect.TypeFor[Int128]()
	case schema.String, schema.Varchar, schema.Binary:
		return f.chooseString(c, t)
	case schema.Array:
		return f.chooseArray(c, t)
	case schema.Bool:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendBool(&buf, v.Bool()), nil }
		f.take = func(v reflect.Value, cell []byte) { v.SetBool(cell[0] != 0) }
		return t.Kind() == reflect.Bool
	case schema.Float, schema.Double:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendFloat(&buf, c.Type, v.Float()), nil }
		f.take = func(v reflect.Value, cell []byte) {
			if c.Type == schema.Float {
				v.SetFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(cell))))
			} else {
				v.SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(cell)))
			}
		}
		return t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32 && c.Type == schema.Float
	}
	return f.chooseInteger(c, t)
}

func (f *field) chooseString(c *schema.Column, t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.String:
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
			b := bytesOf(v.String())
			if c.Type == schema.Binary {
				return orEmpty(b), nil
			}
			return orEmpty(b), checkText(c, b)
		}
		f.take = func(v reflect.Value, cell []byte) { v.SetString(string(cell)) }
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.put = func(_ []byte, v reflect.Value) ([]byte, error) {
			b := v.Bytes()
			if b == nil && c.Nullable {
				return nil, nil
			}
			if c.Type == schema.Binary {
				return orEmpty(b), nil
			}
			return orEmpty(b), checkText(c, b)
		}
		f.take = func(v reflect.Value, cell []byte) {
			if cell == nil {
				v.SetZero()
				return
			}
			v.SetBytes(append([]byte{}, cell...))
		}
	default:
		return false
	}
	return true
}

func (f *field) chooseInteger(c *schema.Column, t reflect.Type) bool {
	z := reflect.Zero(t)
	switch {
	case z.CanInt():
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(&buf, c, batch.Int128Of(v.Int()))
		}
		f.take = func(v reflect.Value, cell []byte) { v.SetInt(int64(wide(cell).Lo)) }
		return t.Bits() >= 8*c.Type.Width()
	case z.CanUint():
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendInteger(&buf, c, Int128{Lo: v.Uint()}) }
		switch c.Type {
		case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		default:
			return false
		}
		mask := uint64(math.MaxUint64) >> (64 - 8*c.Type.Width())
		f.take = func(v reflect.Value, cell []byte) { v.SetUint(wide(cell).Lo & mask) }
		return t.Bits() >= 8*c.Type.Width()
	}
	return false
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
