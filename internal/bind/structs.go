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
		case f.Anonymous && name == "" && isRow(f.Type):
			if err := rt.collect(f.Type, tag.path, tag.text); err != nil {
				return err
			}
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Pointer && isRow(f.Type.Elem()):
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
				return fmt.Errorf("%s: column %q is also the column of %s", tag.text, name, other.text)
			}
		}
		tag.name, tag.tagOptions = name, options
		rt.tags = append(rt.tags, tag)
	}
	return nil
}

// tagOptions are the options after the name in a tag.
type tagOptions struct {
	key         bool
	compression schema.Compression
	unique      bool   // the column has a unique index
	index       string // of which the column is a part; empty for none
}

// Index is an index that the tags of a struct type describe.
type Index struct {
	Name    string
	Columns []string // in the order of the fields
	Unique  bool
}

// Indexes returns the indexes of the tags, in the order of the fields that name them first.
func (rt *RowType) Indexes() (list []Index) {
	for i := range rt.tags {
		tag := &rt.tags[i]
		if tag.unique {
			list = append(list, Index{"by_" + tag.name, []string{tag.name}, true})
		}
		if tag.index == "" {
			continue
		}
		at := slices.IndexFunc(list, func(x Index) bool { return x.Name == tag.index && !x.Unique })
		if at < 0 {
			at = len(list)
			list = append(list, Index{Name: tag.index})
		}
		list[at].Columns = append(list[at].Columns, tag.name)
	}
	return list
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
		case "unique":
			o.unique = true
		default:
			index, isIndex := strings.CutPrefix(option, "index=")
			if o.index = index; !isIndex || index == "" {
				return "", o, fmt.Errorf("tag option %q, want \"key\", \"unique\", \"index=NAME\", \"lz4hc\", or \"dense\"", option)
			}
		}
	}
	return name, o, nil
}

// isRow reports whether t is a struct type, and not the type of the values of one column.
func isRow(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[batch.Decimal](), reflect.TypeFor[batch.Int128]():
		return false
	}
	return t.Kind() == reflect.Struct
}

// Schema returns the schema that the tags describe. Errors: ErrSchema, naming the field.
func (rt *RowType) Schema() (*schema.Schema, error) {
	var columns []schema.Column
	keys := 0
	for i := range rt.tags {
		tag := &rt.tags[i]
		c, ok := tag.column()
		if !ok {
			return nil, fmt.Errorf("%s: no column type for %s: %w", tag.text, tag.typ, fault.ErrSchema)
		}
		if tag.key {
			if keys != i {
				return nil, fmt.Errorf("%s: a key field after one that is not in the key: key fields come first: %w",
					tag.text, fault.ErrSchema)
			}
			keys++
		}
		columns = append(columns, c)
	}
	if keys == 0 {
		return nil, fmt.Errorf("%s has no key: tag its key fields, as in oribi:\"%s,key\": %w",
			rt.Type, rt.tags[0].name, fault.ErrSchema)
	}
	s, err := schema.New(columns, keys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rt.Type, err)
	}
	return s, nil
}

// column returns the column that the field's tag and type describe. It reports whether the field has
// the type of a column.
func (tag *fieldTag) column() (c schema.Column, ok bool) {
	c = schema.Column{Name: tag.name, Compression: tag.compression}
	t := tag.typ
	if t.Kind() == reflect.Pointer {
		c.Nullable, t = true, t.Elem()
	}
	if c.Type, ok = typeOf(t); ok || t.Kind() != reflect.Slice {
		return c, ok
	}
	if t = t.Elem(); t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c.Type = schema.Array
	c.Element, ok = typeOf(t)
	return c, ok
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
