// Package schemafile reads and writes table schemas as JSON, the form that "table create" takes and
// "table describe" prints:
//
//	{"columns":[
//	  {"name":"path","type":"string","key":true},
//	  {"name":"size","type":"int64","nullable":true,"default":0,
//	   "encoding":"auto","compression":"default","block_size":0,"comment":"bytes"}],
//	 "history":"7d","comment":"one row a file","row_file":true,
//	 "expires":{"column":"seen","age":"30d"},
//	 "indexes":[{"name":"by_size","columns":["size"],"unique":false}]}
//
// Fields that only describe adds (id, name, schema_version, history_floor, and each column's id)
// are ignored. Any other unknown field is an error.
package schemafile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// Table is the content of a schema file.
type Table struct {
	Columns []schema.Column // IDs are the positions; the store assigns others
	Keys    int             // the first Keys columns are the key
	History time.Duration   // 0 = not given, when.Forever = all
	Comment string
	RowFile schema.RowFile
	Expires Expires
	Indexes []Index

	// Fields that only describe prints; Read ignores them.
	Name          string
	ID            string
	SchemaVersion uint32
	HistoryFloor  uint64
}

// Read parses a schema file. Errors name the column and the field.
func Read(text []byte) (*Table, error) {
	text = jsonin.Trim(text)
	if err := jsonin.Check(text); err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, fmt.Errorf("want an object with columns, not %s", jsonin.Kind(text))
	}
	t := &Table{}
	for w := jsonin.Walk(text); w.Next(); {
		var err error
		switch name := string(w.Name); name {
		case "columns":
			err = t.readColumns(w.Value)
		case "history":
			err = t.readHistory(w.Value)
		case "comment":
			t.Comment, err = readString(w.Value)
		case "row_file":
			var on bool
			if on, err = readBool(w.Value); err == nil {
				t.RowFile = schema.RowFileOf(&on)
			}
		case "expires":
			err = t.Expires.read(w.Value)
		case "indexes":
			err = t.readIndexes(w.Value)
		case "id", "name", "schema_version", "history_floor":
		default:
			return nil, fmt.Errorf("unknown field %q%s", name,
				nearest.Hint(name, []string{"columns", "history", "comment", "row_file", "expires", "indexes"}))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	if len(t.Columns) > 0 && t.Keys == 0 {
		return nil, errors.New(`a table has at least one key column: mark the first columns with "key":true`)
	}
	// New's other checks are about the columns as a whole.
	if _, err := schema.New(slices.Clone(t.Columns), t.Keys); err != nil {
		return nil, err
	}
	if t.Expires.Column != "" {
		if err := t.Expires.check(t.Columns); err != nil {
			return nil, fmt.Errorf("expires: %w", err)
		}
	}
	for i := range t.Indexes {
		if err := t.Indexes[i].check(t.Columns); err != nil {
			return nil, fmt.Errorf("index %q: %w", t.Indexes[i].Name, err)
		}
	}
	return t, nil
}

func (t *Table) readHistory(value []byte) error {
	word, err := readString(value)
	if err == nil {
		t.History, err = when.ParseAge(word)
	}
	return err
}

func (t *Table) readColumns(value []byte) error {
	if value[0] != '[' {
		return fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		if len(t.Columns) == schema.MaxColumns {
			return fmt.Errorf("more than %d columns", schema.MaxColumns)
		}
		c, key, err := readColumn(w.Value)
		if err != nil {
			return fmt.Errorf("column %s: %w", label(c.Name, len(t.Columns)), err)
		}
		if key && t.Keys < len(t.Columns) {
			return fmt.Errorf("column %q: key columns come first", c.Name)
		}
		if key {
			t.Keys++
		}
		c.ID = schema.ColumnID(len(t.Columns))
		t.Columns = append(t.Columns, c)
	}
	return nil
}

// label returns the name of a column for messages, or its position if the name is not known yet.
func label(name string, index int) string {
	if name == "" {
		return strconv.Itoa(index + 1)
	}
	return strconv.Quote(name)
}

// columnFields are the fields of a column, for hints.
var columnFields = []string{"name", "type", "key", "nullable", "default", "encoding", "compression", "block_size",
	"comment", "immutable", "auto_incrementing"}

// readColumn parses one column. It parses the default last, since its form depends on the type.
func readColumn(value []byte) (c schema.Column, key bool, err error) {
	if value[0] != '{' {
		return c, false, fmt.Errorf("want an object, not %s", jsonin.Kind(value))
	}
	var initial []byte
	typed := false
	for w := jsonin.Walk(value); w.Next(); {
		switch name := string(w.Name); name {
		case "name":
			c.Name, err = readString(w.Value)
		case "type":
			typed, err = true, readType(&c, w.Value)
		case "key":
			key, err = readBool(w.Value)
		case "nullable":
			c.Nullable, err = readBool(w.Value)
		case "immutable":
			c.Immutable, err = readBool(w.Value)
		case "auto_incrementing":
			c.AutoIncrement, err = readBool(w.Value)
		case "default":
			initial = w.Value
		case "encoding":
			c.Encoding, err = readName("encoding", w.Value, encodings)
		case "compression":
			c.Compression, err = readName("compression", w.Value, compressions)
		case "block_size":
			c.BlockBytes, err = readInt32(w.Value)
		case "comment":
			c.Comment, err = readString(w.Value)
		case "id":
		default:
			return c, false, fmt.Errorf("unknown field %q%s", name, nearest.Hint(name, columnFields))
		}
		if err != nil {
			return c, false, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	switch {
	case c.Name == "":
		return c, false, errors.New("name is missing")
	case !typed:
		return c, false, errors.New("type is missing")
	case initial == nil:
		return c, key, nil
	case jsonin.IsNull(initial):
		if !c.Nullable {
			return c, false, errors.New("default: null needs a nullable column")
		}
		return c, key, nil
	}
	if c.Default, err = cell.FromJSON([]byte{}, &c, initial); err != nil {
		return c, false, fmt.Errorf("default: %w", err)
	}
	return c, key, nil
}

// ReadColumn parses one column of a schema file, which must not be a key column.
func ReadColumn(text []byte) (schema.Column, error) {
	text = jsonin.Trim(text)
	if err := jsonin.Check(text); err != nil {
		return schema.Column{}, err
	}
	c, key, err := readColumn(text)
	if err == nil && key {
		err = errors.New("key: a new column cannot be in the key")
	}
	if err != nil && c.Name != "" {
		err = fmt.Errorf("column %q: %w", c.Name, err)
	}
	return c, err
}

// ParseEncoding parses the name of an encoding.
func ParseEncoding(word string) (schema.Encoding, error) { return named("encoding", word, encodings) }

// ParseCompression parses the name of a codec.
func ParseCompression(word string) (schema.Compression, error) {
	return named("compression", word, compressions)
}

func readType(c *schema.Column, value []byte) error {
	word, err := readString(value)
	if err != nil {
		return err
	}
	return c.ParseTypeName(word)
}

func readString(value []byte) (string, error) {
	if value[0] != '"' {
		return "", fmt.Errorf("want a string, not %s", jsonin.Kind(value))
	}
	return string(jsonin.String(value)), nil
}

func readBool(value []byte) (bool, error) {
	if value[0] != 't' && value[0] != 'f' {
		return false, fmt.Errorf("want true or false, not %s", jsonin.Kind(value))
	}
	return value[0] == 't', nil
}

func readInt32(value []byte) (int32, error) {
	n, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("want a whole number of bytes, not %.20s", value)
	}
	return int32(n), nil
}

var encodings = byFileName(schema.Auto, schema.Plain, schema.RLE, schema.Bitshuffle, schema.Dictionary, schema.Prefix)

var compressions = byFileName(schema.DefaultCompression, schema.NoCompression, schema.Snappy, schema.LZ4,
	schema.Zlib, schema.LZ4HC, schema.Dense)

func byFileName[V interface{ FileName() string }](values ...V) map[string]V {
	names := map[string]V{}
	for _, v := range values {
		names[v.FileName()] = v
	}
	return names
}

func readName[V any](what string, value []byte, names map[string]V) (v V, err error) {
	word, err := readString(value)
	if err != nil {
		return v, err
	}
	return named(what, word, names)
}

func named[V any](what, word string, names map[string]V) (V, error) {
	v, ok := names[word]
	if !ok {
		return v, fmt.Errorf("unknown %s %q%s", what, word, nearest.Hint(word, nearest.Keys(names)))
	}
	return v, nil
}
