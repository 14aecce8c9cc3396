package bind

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// tagOptions are the options after the name in a tag.
type tagOptions struct {
	set []string // the options, as in the tag

	key, auto, immutable bool
	unique               bool     // the column has a unique index
	indexes              []string // of which the column is a part; empty for by_ and the column's name
	compression          schema.Compression
	encoding             schema.Encoding
	said                 *schema.Column // its type, or that of its elements; nil: as the field's type says
	def                  *string        // the default
	expires              bool           // rows expire by the column
	age                  time.Duration
}

// optionNames are the options that errors list.
var optionNames = []string{"key", "auto", "immutable", "unique", "index", "index=NAME", "default=VALUE", "expires=AGE",
	"enc=ENCODING", "lz4hc", "dense", "decimal(p,s)", "varchar(n)", "date"}

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
		if option, rest, found, err = cutOption(rest); err == nil {
			err = o.add(option)
		}
		if err != nil {
			return "", o, err
		}
	}
	return name, o, nil
}

const quotedDefault = "default='"

// cutOption cuts an option from the rest of a tag. Commas in parentheses, and in the quotes of a
// default, do not end it.
func cutOption(tag string) (option, rest string, found bool, err error) {
	end := strings.IndexByte(tag, ',')
	switch open := strings.IndexByte(tag, '('); {
	case strings.HasPrefix(tag, quotedDefault):
		end = len(quotedDefault)
		for {
			i := strings.IndexByte(tag[end:], '\'')
			if i < 0 {
				return "", "", false, fmt.Errorf("tag option %q has no closing quote", tag)
			}
			if end += i + 1; !strings.HasPrefix(tag[end:], "'") {
				break
			}
			end++ // a quote in the value
		}
		if end < len(tag) && tag[end] != ',' {
			return "", "", false, fmt.Errorf("tag option %q: a comma follows the closing quote", tag)
		}
	case strings.HasPrefix(tag, "default="):
	case open >= 0 && open < end:
		if end = strings.IndexByte(tag, ')') + 1; end > 0 && end < len(tag) && tag[end] != ',' {
			return "", "", false, fmt.Errorf("tag option %q: a comma follows the parenthesis", tag)
		}
	}
	if end <= 0 || end == len(tag) {
		if end == 0 && tag != "" && tag[0] == ',' {
			return "", tag[1:], true, nil
		}
		return tag, "", false, nil
	}
	return tag[:end], tag[end+1:], true, nil
}

// add adds an option.
func (o *tagOptions) add(option string) error {
	word, value, valued := strings.Cut(option, "=")
	once := word
	if word == "index" {
		once = option // a column may be in several indexes
	}
	if slices.Contains(o.set, once) {
		return fmt.Errorf("tag option %q is given twice", once)
	}
	o.set = append(o.set, once)
	if err := o.parse(word, value, valued); err != nil {
		return fmt.Errorf("tag option %q%w", option, err)
	}
	return nil
}

// parse is add for an option without or with a value. Errors follow the option.
func (o *tagOptions) parse(word, value string, valued bool) (err error) {
	switch {
	case valued && value == "" && word != "default":
		return errors.New(": a value is missing after \"=\"")
	case word == "default" && valued:
		if strings.HasPrefix(value, "'") {
			value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
		}
		o.def = &value
	case word == "expires":
		o.expires = true
		if valued {
			if o.age, err = time.ParseDuration(value); err != nil || o.age < 0 {
				return errors.New(": want an age such as 24h")
			}
		}
	case word == "index":
		o.indexes = append(o.indexes, value)
	case word == "enc" && valued:
		return o.parseEncoding(value)
	case valued:
		return unknownOption(word)
	default:
		return o.parseWord(word)
	}
	return nil
}

func (o *tagOptions) parseEncoding(name string) error {
	var names []string
	for e := schema.Auto; e <= schema.Bitshuffle; e++ {
		if n := e.FileName(); n == name {
			o.encoding = e
			return nil
		} else if n != "" {
			names = append(names, n)
		}
	}
	return errors.New(": unknown encoding" + nearest.Hint(name, names))
}

// parseWord is parse for an option that has no value.
func (o *tagOptions) parseWord(word string) error {
	switch word {
	case "key":
		o.key = true
	case "auto":
		o.key, o.auto = true, true
	case "immutable":
		o.immutable = true
	case "unique":
		o.unique = true
	case "lz4hc", "dense":
		if o.compression != 0 {
			return errors.New(": there is another compression")
		}
		o.compression = schema.LZ4HC
		if word == "dense" {
			o.compression = schema.Dense
		}
	default:
		var c schema.Column
		err := c.ParseTypeName(word)
		switch {
		case err != nil && !strings.Contains(word, "("):
			return unknownOption(word)
		case err != nil:
			return fmt.Errorf(": %w", err)
		case c.Type == schema.Array:
			return errors.New(": a slice is an array: name the type of its elements")
		case o.said != nil:
			return errors.New(": there is another type")
		}
		o.said = &c
	}
	return nil
}

func unknownOption(word string) error {
	if near := nearest.Of(word, optionNames); near != "" && word != "" {
		return fmt.Errorf(": did you mean %q?", near)
	}
	return errors.New(", want one of " + strings.Join(optionNames, ", "))
}

// errorf returns an ErrSchema about the field.
func (tag *fieldTag) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: "+format+": %w", append(append([]any{tag.text}, args...), fault.ErrSchema)...)
}

// column returns the column that the field's tag and type describe. Errors: ErrSchema, naming the field.
func (tag *fieldTag) column() (schema.Column, error) {
	c := schema.Column{Name: tag.name, Key: tag.key, AutoIncrement: tag.auto, Immutable: tag.immutable,
		Compression: tag.compression, Encoding: tag.encoding}
	if err := tag.setType(&c); err != nil {
		return c, err
	}
	if _, err := newField(&c, tag.typ, false); err != nil {
		return c, tag.errorf("%w", err)
	}
	if tag.def != nil {
		value, err := cell.FromField([]byte{}, &c, []byte(*tag.def))
		if err != nil {
			return c, tag.errorf("default of %s: %q %w", c.TypeName(), *tag.def, err)
		}
		c.Default = value
	}
	switch {
	case tag.auto && tag.name != schema.AutoIncrementName:
		return c, tag.errorf("tag option \"auto\": as in Kudu, the column is named %s, whatever the field is called: leave "+
			"the name %q out, as in oribi:\",auto\"", schema.AutoIncrementName, tag.name)
	case tag.expires && c.Type != schema.Timestamp:
		return c, tag.errorf("tag option \"expires\": type %s, want timestamp", c.TypeName())
	case (tag.unique || tag.indexes != nil) && !c.Type.Keyable():
		return c, tag.errorf("type %s cannot be in an index", c.TypeName())
	}
	alone := []schema.Column{{Name: c.Name + "-", Type: schema.Int64, Key: true}, c}
	if c.Key {
		alone = alone[1:]
	}
	if _, err := schema.New(alone); err != nil {
		return c, fmt.Errorf("%s: %w", tag.text, err)
	}
	return c, nil
}

// setType sets the type of the field's column, and whether it is nullable.
func (tag *fieldTag) setType(c *schema.Column) error {
	t := tag.typ
	if t.Kind() == reflect.Pointer {
		c.Nullable, t = true, t.Elem()
	}
	typ, ok := typeOf(t)
	isArray := !ok && t.Kind() == reflect.Slice
	if isArray {
		if t = t.Elem(); t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		typ, ok = typeOf(t)
	}
	switch {
	case tag.said != nil:
		typ, c.Precision, c.Scale, c.Length = tag.said.Type, tag.said.Precision, tag.said.Scale, tag.said.Length
	case t == decimalType:
		return tag.errorf("a Decimal needs its digits, as in oribi:\"%s,decimal(18,2)\"", tag.name)
	case !ok:
		return tag.errorf("no column type for %s", tag.typ)
	}
	if c.Type = typ; isArray {
		c.Type, c.Element = schema.Array, typ
	}
	return nil
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
		for _, name := range tag.indexes {
			if name == "" {
				name = "by_" + tag.name
			}
			at := slices.IndexFunc(list, func(x Index) bool { return x.Name == name && !x.Unique })
			if at < 0 {
				at = len(list)
				list = append(list, Index{Name: name})
			}
			list[at].Columns = append(list[at].Columns, tag.name)
		}
	}
	return list
}

// Expires returns the column by which rows expire, and the age. column is empty if none of the tags names
// one.
func (rt *RowType) Expires() (column string, age time.Duration) {
	for i := range rt.tags {
		if tag := &rt.tags[i]; tag.expires {
			return tag.name, tag.age
		}
	}
	return "", 0
}

// Fits returns an error unless field i fits a column of a table, which has its name: its type, that which
// the tag names, and whether it is in the key. Errors: ErrSchema, naming the field.
func (rt *RowType) Fits(i int, c *schema.Column) error {
	tag := &rt.tags[i]
	if _, err := newField(c, tag.typ, false); err != nil {
		return tag.errorf("column %q: %w", c.Name, err)
	}
	if tag.said != nil {
		of := *c
		if c.Type == schema.Array {
			of = c.Elements()
		}
		if tag.said.TypeName() != of.TypeName() {
			return tag.errorf("column %q has type %s: SetType changes it", c.Name, c.TypeName())
		}
	}
	if c.Key != tag.key {
		return tag.errorf("column %q: a table's key is chosen when it is created", c.Name)
	}
	return nil
}

// Addable returns an error unless the column of field i can be added to a table. Errors: ErrSchema, naming
// the field.
func (rt *RowType) Addable(i int, c *schema.Column) error {
	tag := &rt.tags[i]
	switch {
	case c.Key:
		return tag.errorf("new column %q: a table's key is chosen when it is created", c.Name)
	case c.Required():
		return tag.errorf("new column %q: existing rows need a value: make the field a *%s, or tag it with a default",
			c.Name, tag.typ)
	}
	return nil
}
