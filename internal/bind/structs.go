package bind

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// RowType describes the fields of a struct type that are columns. It is immutable.
type RowType struct {
	Type reflect.Type
	tags []fieldTag
}

// fieldTag is a struct field that is a column.
type fieldTag struct {
	path []int  // to the field, through embedded structs
	text string // for messages: Type.Field, with the embedded structs on the way
	typ  reflect.Type
	name string // of the column

	tagOptions
}

var rowTypes sync.Map // reflect.Type → *RowType: the tags of a type are parsed once

// RowTypeOf returns the description of a struct type. Errors: ErrSchema, naming the field.
func RowTypeOf(typ reflect.Type) (*RowType, error) {
	if known, ok := rowTypes.Load(typ); ok {
		return known.(*RowType), nil
	}
	if !isRow(typ) {
		return nil, fmt.Errorf("%s is not a struct of columns: %w", typ, fault.ErrSchema)
	}
	rt := &RowType{Type: typ}
	if err := rt.collect(typ, nil, typ.String()); err != nil {
		return nil, fmt.Errorf("%w: %w", err, fault.ErrSchema)
	}
	if len(rt.tags) == 0 {
		return nil, fmt.Errorf("%s has no exported field, so it has no column: %w", typ, fault.ErrSchema)
	}
	rowTypes.Store(typ, rt)
	return rt, nil
}

// Len returns the number of fields that are columns.
func (rt *RowType) Len() int { return len(rt.tags) }

// Column returns the name of the column of field i, as its tag gives it.
func (rt *RowType) Column(i int) string { return rt.tags[i].name }

// collect adds the fields of a struct type that is embedded in the row at path.
func (rt *RowType) collect(typ reflect.Type, path []int, text string) error {
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := fieldTag{path: append(slices.Clip(path), i), text: text + "." + f.Name, typ: f.Type}
		name, options, err := parseTag(f)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", tag.text, err)
		case name == "-":
			continue
		case f.Anonymous && name == "" && isRow(f.Type) && options.set != nil:
			return fmt.Errorf("%s: an embedded struct has no options", tag.text)
		case f.Anonymous && name == "" && isRow(f.Type):
			if err := rt.collect(f.Type, tag.path, tag.text); err != nil {
				return err
			}
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer && isRow(f.Type.Elem()):
			return fmt.Errorf("%s: an embedded pointer: embed the struct itself", tag.text)
		case !f.IsExported() && name == "" && options.set == nil:
			continue
		case !f.IsExported():
			return fmt.Errorf("%s: the field has a tag but is not exported", tag.text)
		case name == "" && options.auto:
			name = schema.AutoIncrementName
		case name == "":
			name = strings.ToLower(f.Name)
		}
		for _, other := range rt.tags {
			if other.name == name {
				return fmt.Errorf("%s: column %q is also the column of %s", tag.text, name, other.text)
			}
		}
		tag.name, tag.tagOptions = name, options
		rt.tags = append(rt.tags, tag)
	}
	return nil
}

// isRow reports whether t is a struct type, and not the type of the values of one column.
func isRow(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), decimalType, reflect.TypeFor[batch.Int128]():
		return false
	}
	return t.Kind() == reflect.Struct
}

var decimalType = reflect.TypeFor[batch.Decimal]()

// Schema returns the schema that the tags describe. Errors: ErrSchema, naming the field.
func (rt *RowType) Schema() (*schema.Schema, error) {
	var columns []schema.Column
	keys, expires := 0, ""
	for i := range rt.tags {
		tag := &rt.tags[i]
		c, err := tag.column()
		if err != nil {
			return nil, err
		}
		if tag.key {
			if keys != i {
				return nil, tag.errorf("a key field after one that is not in the key: key fields come first")
			}
			keys++
		}
		if tag.expires && expires != "" {
			return nil, tag.errorf("rows expire by %s already", expires)
		}
		if tag.expires {
			expires = tag.text
		}
		columns = append(columns, c)
	}
	if keys == 0 {
		return nil, fmt.Errorf("%s has no key: tag its key fields, as in oribi:\"%s,key\": %w",
			rt.Type, rt.tags[0].name, fault.ErrSchema)
	}
	s, err := schema.New(columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rt.Type, err)
	}
	return s, nil
}

// typeOf returns the column type for a Go type. It reports whether there is such a type.
func typeOf(t reflect.Type) (schema.Type, bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return schema.Timestamp, true
	case t == reflect.TypeFor[batch.Int128]():
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
