package oribi

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// TableOf is a table whose rows are structs of type T.
//
// Exported fields stand for the columns that their tags name: `oribi:"host,key"`, `oribi:"size"`,
// `oribi:"-"` for none; without a tag the field's name in lower case. A field has the Go type of
// its column, or a type of that kind: integers; float32, float64; string; []byte; bool; time.Time
// for date and timestamp; Decimal; Int128. A pointer field is for a nullable column: nil is NULL.
// Of an array column it is a slice of those ([]string, [][]byte), of pointers if elements may be
// NULL ([]*int32), or []any with values as in Row; where the column is nullable, a nil slice is
// NULL. An element that is NULL in a slice that cannot hold it is ErrSchema. How a field is
// converted is found once for each version of the schema; when a column of a field is there no
// more, or under another name or type, that is ErrSchema.
type TableOf[T any] struct {
	Table *Table
	tags  []fieldTag
	bound atomic.Pointer[binding]
}

// binding is what the fields are in one version of the schema. Immutable.
type binding struct {
	shape   *tablet.Shape
	fields  []field
	columns []int // of the fields, indexes in the schema
}

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

// Typed is t with rows of type T. Every key column and every column that a new row has to have
// needs a field, save an auto-incrementing one: inserts do not look at its field (Batch.Assigned
// tells the values), all else but scans needs it. Errors: ErrSchema, naming the field.
func Typed[T any](t *Table) (*TableOf[T], error) {
	typ := reflect.TypeFor[T]()
	tags, err := fieldTags(typ)
	if err != nil {
		return nil, err
	}
	out := &TableOf[T]{Table: t, tags: tags}
	b, err := out.bind(t.tab.Shape())
	if err != nil {
		return nil, err
	}
	s := b.shape.Schema
	for i := range s.Columns {
		c := &s.Columns[i]
		if !slices.Contains(b.columns, i) && !c.AutoIncrement && (i < s.Keys || c.Required()) {
			return nil, fmt.Errorf("oribi: %s has no field for column %q: %w", typ, c.Name, fault.ErrSchema)
		}
	}
	return out, nil
}

// bind finds the columns of the fields in a version of the schema, by their names.
func (t *TableOf[T]) bind(shape *tablet.Shape) (*binding, error) {
	if b := t.bound.Load(); b != nil && b.shape == shape {
		return b, nil
	}
	typ, b := reflect.TypeFor[T](), &binding{shape: shape}
	for _, tag := range t.tags {
		col := shape.Schema.Index(tag.name)
		if col < 0 {
			return nil, fmt.Errorf("oribi: %s.%s: table %q has no column %q: %w", typ, tag.field.Name, t.Table.tab.Name, tag.name, fault.ErrSchema)
		}
		f, err := newField(&shape.Schema.Columns[col], tag.field)
		if err != nil {
			return nil, fmt.Errorf("oribi: %s.%s: column %q: %w: %w", typ, tag.field.Name, tag.name, err, fault.ErrSchema)
		}
		f.col = col
		b.fields = append(b.fields, f)
		b.columns = append(b.columns, col)
	}
	t.bound.Store(b)
	return b, nil
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

// Insert adds rows that must not be there to a batch.
func (t *TableOf[T]) Insert(b *Batch, rows ...T) { t.add(OpInsert, b, rows) }

// Upsert adds rows, or sets the struct's columns of those that are there.
func (t *TableOf[T]) Upsert(b *Batch, rows ...T) { t.add(OpUpsert, b, rows) }

// Update sets the struct's columns of rows that must be there.
func (t *TableOf[T]) Update(b *Batch, rows ...T) { t.add(OpUpdate, b, rows) }

// Delete removes the rows with the keys of the structs; other fields are not looked at.
func (t *TableOf[T]) Delete(b *Batch, rows ...T) { t.add(OpDelete, b, rows) }

// Add adds one operation of any kind for each row.
func (t *TableOf[T]) Add(op Op, b *Batch, rows ...T) { t.add(op, b, rows) }

func (t *TableOf[T]) add(op Op, b *Batch, rows []T) {
rows:
	for i := range rows {
		p := b.part(t.Table)
		if p == nil {
			return
		}
		bound, err := t.bind(p.shape)
		if err != nil {
			b.spoil(&RowError{Row: b.n, Table: t.Table.tab.Name, Cause: err})
			return
		}
		s := p.shape.Schema
		clear(p.cells)
		clear(p.set)
		v := reflect.ValueOf(&rows[i]).Elem()
		p.reserveValues(len(bound.fields))
		for k := range bound.fields {
			f := &bound.fields[k]
			if !takes(op, s, f.col) {
				continue
			}
			start := len(p.value)
			cell, err := f.put(p.value[start:start], v.Field(f.index))
			if err != nil {
				b.fail(t.Table, s.Columns[f.col].Name, err)
				continue rows
			}
			if cell != nil && !s.Columns[f.col].Type.Variable() {
				p.value = p.value[:start+len(cell)]
			}
			p.cells[f.col], p.set[f.col] = cell, true
		}
		b.add(op, p)
	}
}

// reserveValues makes room for n cells of fixed width in p.value, which is then not moved while
// they are made.
func (p *part) reserveValues(n int) {
	if cap(p.value) < 16*n {
		p.value = make([]byte, 0, 16*n)
	}
	p.value = p.value[:0]
}

// Get reads one row, as Table.Get does.
func (t *TableOf[T]) Get(ctx context.Context, key any, opts ...ReadOption) (T, error) {
	var row T
	o := collect(opts)
	view, err := t.Table.read(ctx, &o)
	if err != nil {
		return row, err
	}
	defer t.Table.done(view)
	b, err := t.bind(view.Shape)
	if err != nil {
		return row, err
	}
	var few [fewCells][]byte
	cells, err := t.Table.get(view, key, b.columns, few[:0])
	if err != nil {
		return row, err
	}
	v := reflect.ValueOf(&row).Elem()
	for i := range b.fields {
		if err := b.fields[i].read(v, cells[i]); err != nil {
			return row, fmt.Errorf("oribi: table %q: %w", t.Table.tab.Name, err)
		}
	}
	return row, nil
}

// Scan reads rows, as Table.Scan does; Columns is set by the struct.
func (t *TableOf[T]) Scan(ctx context.Context, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		sc := t.Table.Scan(ctx, opts...)
		var fields []field
		sc.fit = func(shape *tablet.Shape) ([]int, error) {
			b, err := t.bind(shape)
			if err != nil {
				return nil, err
			}
			fields = b.fields
			return b.columns, nil
		}
		var zero T
		for b, err := range sc.Batches() {
			if err != nil {
				yield(zero, err)
				return
			}
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				var row T
				v := reflect.ValueOf(&row).Elem()
				for k := range fields {
					if err := fields[k].read(v, b.Columns[k].Cell(i)); err != nil {
						yield(zero, fmt.Errorf("oribi: table %q: %w", t.Table.tab.Name, err))
						return
					}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
