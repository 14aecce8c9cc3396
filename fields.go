package oribi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// rowType describes the fields of a struct type. It is immutable.
type rowType struct {
	typ  reflect.Type
	tags []fieldTag
}

// fieldTag is a struct field that is a column.
type fieldTag struct {
	path []int  // to the field, through embedded structs
	text string // for messages: Type.Field, with the embedded structs on the way
	typ  reflect.Type
	name string // of the column
	key  bool

	compression schema.Compression
}

var rowTypes sync.Map // reflect.Type → *rowType: the tags of a type are parsed once

// rowTypeOf returns the description of a struct type. Errors: ErrSchema.
func rowTypeOf(typ reflect.Type) (*rowType, error) {
	if known, ok := rowTypes.Load(typ); ok {
		return known.(*rowType), nil
	}
	if typ.Kind() != reflect.Struct || isValue(typ) {
		return nil, fmt.Errorf("oribi: %s is not a struct of columns: %w", typ, fault.ErrSchema)
	}
	rt := &rowType{typ: typ}
	if err := rt.collect(typ, nil, typ.String()); err != nil {
		return nil, fmt.Errorf("oribi: %w: %w", err, fault.ErrSchema)
	}
	if len(rt.tags) == 0 {
		return nil, fmt.Errorf("oribi: %s has no exported field, so it has no column: %w", typ, fault.ErrSchema)
	}
	rowTypes.Store(typ, rt)
	return rt, nil
}

// collect adds the fields of a struct type that is embedded in the row at path.
func (rt *rowType) collect(typ reflect.Type, path []int, text string) error {
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := fieldTag{path: append(slices.Clip(path), i), text: text + "." + f.Name, typ: f.Type}
		name, options, err := parseTag(f)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", tag.text, err)
		case name == "-":
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !isValue(f.Type):
			if err := rt.collect(f.Type, tag.path, tag.text); err != nil {
				return err
			}
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && !isValue(f.Type.Elem()):
			return fmt.Errorf("%s: an embedded pointer: embed the struct itself", tag.text)
		case !f.IsExported() && name == "" && options == tagOptions{}:
			continue
		case !f.IsExported():
			return fmt.Errorf("%s: the field has a tag but is not exported", tag.text)
		case name == "":
			name = strings.ToLower(f.Name)
		}
		for _, other := range rt.tags {
			if other.name == name {
				return fmt.Errorf("%s: column %q is also that of %s", tag.text, name, other.text)
			}
		}
		tag.name, tag.key, tag.compression = name, options.key, options.compression
		rt.tags = append(rt.tags, tag)
	}
	return nil
}

// tagOptions is what follows the name in a tag.
type tagOptions struct {
	key         bool
	compression schema.Compression
}

// parseTag returns the column's name, empty if the tag gives none, and the options.
func parseTag(f reflect.StructField) (name string, o tagOptions, err error) {
	tag, ok := f.Tag.Lookup("oribi")
	if !ok {
		if strings.Contains(strings.ToLower(string(f.Tag)), "oribi") {
			return "", o, fmt.Errorf("malformed tag `%s`, want oribi:\"name\" or oribi:\"name,key\"", f.Tag)
		}
		return "", o, nil
	}
	name, rest, found := strings.Cut(tag, ",")
	if name == "-" && found {
		return "", o, fmt.Errorf("tag %q: a field that is no column has no options", tag)
	}
	for found {
		var option string
		switch option, rest, found = strings.Cut(rest, ","); option {
		case "key":
			o.key = true
		case "lz4hc":
			o.compression = schema.LZ4HC
		case "dense":
			o.compression = schema.Dense
		default:
			return "", o, fmt.Errorf("tag option %q, want \"key\", \"lz4hc\", or \"dense\"", option)
		}
	}
	return name, o, nil
}

// isValue reports whether a struct type is the value of one column.
func isValue(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[Decimal]() || t == reflect.TypeFor[Int128]()
}

// binding connects the fields with the columns of one version of a table's schema. It is immutable.
type binding struct {
	schema  *tablet.TableSchema
	fields  []field
	columns []int // of the fields, indexes in the schema

	keyless string // a key column that has no field; empty = all have one
	lacks   string // a column that a new row must set and that has no field; empty = there is none
}

// bind builds the conversions of the fields. column returns the index of a field's column.
func (rt *rowType) bind(tableSchema *tablet.TableSchema, column func(i int) (int, error)) (*binding, error) {
	s, b := tableSchema.Schema, &binding{schema: tableSchema}
	for i := range rt.tags {
		tag := &rt.tags[i]
		col, err := column(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tag.text, err)
		}
		f, err := newField(&s.Columns[col], tag.typ)
		if err != nil {
			return nil, fmt.Errorf("%s: column %q: %w: %w", tag.text, s.Columns[col].Name, err, fault.ErrSchema)
		}
		f.col, f.path, f.name = col, tag.path, s.Columns[col].Name
		b.fields = append(b.fields, f)
		b.columns = append(b.columns, col)
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		if slices.Contains(b.columns, i) {
			continue
		}
		if i < s.Keys && b.keyless == "" {
			b.keyless = c.Name
		}
		if !c.AutoIncrement && (i < s.Keys || c.Required()) && b.lacks == "" {
			b.lacks = c.Name
		}
	}
	return b, nil
}

// read sets a struct from the cells of b.columns.
func (b *binding) read(row reflect.Value, cells [][]byte) error {
	for k := range b.fields {
		f := &b.fields[k]
		if err := f.take(f.of(row), cells[k]); err != nil {
			return fmt.Errorf("column %q: %w: %w", f.name, err, fault.ErrSchema)
		}
	}
	return nil
}

// field converts one column between a struct and a cell.
type field struct {
	col  int    // index in the schema
	path []int  // to the struct field
	name string // of the column
	put  func(buf []byte, f reflect.Value) ([]byte, error)
	take func(f reflect.Value, cell []byte) error
}

// of returns the field in row, which must be addressable.
func (f *field) of(row reflect.Value) reflect.Value {
	if len(f.path) == 1 {
		return row.Field(f.path[0])
	}
	return row.FieldByIndex(f.path)
}

// SchemaOf returns the schema of a struct type (see TableOf). Its columns have the types int8 to
// int64, uint8 to uint64, float, double, string, binary, bool, timestamp, and int128. A byte array
// such as [16]byte is a binary column, and a slice of any of these types but Int128 is an array. A
// column is nullable if its field is a pointer. Fields tagged "key" come first. Columns of type
// decimal, date, and varchar need more than a Go type says: build such schemas with schema.New.
//
// Errors: ErrSchema, naming the field.
func SchemaOf[T any]() (*schema.Schema, error) {
	rt, err := rowTypeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	var columns []schema.Column
	keys := 0
	for i := range rt.tags {
		tag := &rt.tags[i]
		c := schema.Column{Name: tag.name, Compression: tag.compression}
		ft := tag.typ
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
			return nil, fmt.Errorf("oribi: %s: no column type for %s: %w", tag.text, tag.typ, fault.ErrSchema)
		}
		if tag.key {
			if keys != i {
				return nil, fmt.Errorf("oribi: %s: a key field after one that is not in the key: key fields come first: %w", tag.text, fault.ErrSchema)
			}
			keys++
		}
		columns = append(columns, c)
	}
	if keys == 0 {
		return nil, fmt.Errorf("oribi: %s has no key: tag its key fields, as in oribi:\"%s,key\": %w", rt.typ, rt.tags[0].name, fault.ErrSchema)
	}
	s, err := schema.New(columns, keys)
	if err != nil {
		return nil, fmt.Errorf("oribi: %s: %w", rt.typ, err)
	}
	return s, nil
}

func typeOf(t reflect.Type) (schema.Type, bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema.Timestamp, true
	case t == reflect.TypeFor[Int128]():
		return schema.Int128, true
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() == reflect.Uint8:
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

// newField returns the conversions between a struct field of type t and a column.
func newField(c *schema.Column, t reflect.Type) (field, error) {
	var f field
	if t.Kind() == reflect.Pointer {
		if t.Elem().Kind() == reflect.Pointer {
			return f, fmt.Errorf("a %s: one pointer is enough for NULL", t)
		}
		present := *c
		present.Nullable = false
		g, err := newField(&present, t.Elem())
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
	if !f.choose(c, t) {
		return f, fmt.Errorf("a %s does not fit type %s", t, c.TypeName())
	}
	return f, nil
}

// choose sets put and take by the column's type. It reports whether the Go type fits.
func (f *field) choose(c *schema.Column, t reflect.Type) bool {
	// Structs are reached by address: to put one into an interface would copy it to the heap.
	switch c.Type {
	case schema.Date, schema.Timestamp:
		if t == reflect.TypeFor[time.Time]() {
			f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
				return appendTime(buf, c.Type, *v.Addr().Interface().(*time.Time))
			}
			f.take = func(v reflect.Value, cell []byte) error {
				*v.Addr().Interface().(*time.Time) = timeOf(c.Type, cell)
				return nil
			}
			return true
		}
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendDecimal(buf, c, *v.Addr().Interface().(*Decimal))
		}
		f.take = func(v reflect.Value, cell []byte) error {
			*v.Addr().Interface().(*Decimal) = Decimal{Unscaled: wide(cell), Scale: c.Scale}
			return nil
		}
		return t == reflect.TypeFor[Decimal]()
	case schema.Int128:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(buf, c, *v.Addr().Interface().(*Int128))
		}
		f.take = func(v reflect.Value, cell []byte) error {
			*v.Addr().Interface().(*Int128) = wide(cell)
			return nil
		}
		return t == reflect.TypeFor[Int128]()
	case schema.String, schema.Varchar, schema.Binary:
		return f.chooseString(c, t)
	case schema.Array:
		return f.chooseArray(c, t)
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

var cellType = reflect.TypeFor[Cell]()

// chooseCell sets put and take for a field that is a Cell, which fits each type.
func (f *field) chooseCell(c *schema.Column) {
	f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendCell(buf, c, v.Bytes()) }
	f.take = func(v reflect.Value, cell []byte) error {
		v.SetBytes(bytes.Clone(cell))
		return nil
	}
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
			return orEmpty(b), checkText(c, b)
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
func (f *field) chooseInteger(c *schema.Column, t reflect.Type) bool {
	z, width := reflect.Zero(t), 8*c.Type.Width()
	unsigned := false
	switch c.Type {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		unsigned = true
	}
	mask := uint64(math.MaxUint64) >> (64 - width)
	switch {
	case z.CanInt():
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) {
			return appendInteger(buf, c, batch.Int128Of(v.Int()))
		}
		if unsigned {
			f.take = func(v reflect.Value, cell []byte) error {
				v.SetInt(int64(wide(cell).Lo & mask))
				return nil
			}
			return t.Bits() > width
		}
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetInt(int64(wide(cell).Lo))
			return nil
		}
		return t.Bits() >= width
	case z.CanUint() && unsigned:
		f.put = func(buf []byte, v reflect.Value) ([]byte, error) { return appendInteger(buf, c, Int128{Lo: v.Uint()}) }
		f.take = func(v reflect.Value, cell []byte) error {
			v.SetUint(wide(cell).Lo & mask)
			return nil
		}
		return t.Bits() >= width
	}
	return false
}

// chooseArray accepts slices of Go types that fit the elements, of pointers to them for elements
// that may be NULL, and of any.
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
		f.take = func(v reflect.Value, cell []byte) error {
			if v.SetZero(); cell != nil {
				v.Set(reflect.ValueOf(arrayOf(c, cell)).Convert(v.Type()))
			}
			return nil
		}
		return true
	}
	element := c.Elements()
	element.Nullable = t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Slice
	g, err := newField(&element, t.Elem())
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
