package schemafile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Index is an index of a table.
type Index struct {
	Name    string
	Columns []string
	Unique  bool
}

// readIndexes parses an array of objects {"name":"by_email","columns":["email"],"unique":true}.
func (t *Table) readIndexes(value []byte) error {
	if value[0] != '[' {
		return fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		if len(t.Indexes) == schema.MaxColumns {
			return errors.New("too many")
		}
		x, err := readIndex(w.Value)
		if err != nil {
			return fmt.Errorf("index %s: %w", label(x.Name, len(t.Indexes)), err)
		}
		t.Indexes = append(t.Indexes, x)
	}
	return nil
}

func readIndex(value []byte) (x Index, err error) {
	if value[0] != '{' {
		return x, fmt.Errorf("want an object, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		switch name := string(w.Name); name {
		case "name":
			x.Name, err = readString(w.Value)
		case "columns":
			x.Columns, err = readStrings(w.Value)
		case "unique":
			x.Unique, err = readBool(w.Value)
		default:
			return x, fmt.Errorf("unknown field %q%s", name, nearest.Hint(name, []string{"name", "columns", "unique"}))
		}
		if err != nil {
			return x, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	if x.Name == "" {
		return x, errors.New("name is missing")
	}
	return x, nil
}

func readStrings(value []byte) (list []string, err error) {
	if value[0] != '[' {
		return nil, fmt.Errorf("want an array of strings, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		s, err := readString(w.Value)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// check returns an error if a table with these columns cannot have the index. The store knows further rules.
func (x *Index) check(columns []schema.Column) error {
	if len(x.Columns) == 0 {
		return errors.New("columns is missing")
	}
	for _, name := range x.Columns {
		i := slices.IndexFunc(columns, func(c schema.Column) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("column %q: %w", name, (&schema.Schema{Columns: columns}).NoColumn(name))
		}
		if c := &columns[i]; !c.Type.Keyable() {
			return fmt.Errorf("column %q: a column of type %s cannot be indexed", name, c.TypeName())
		}
	}
	return nil
}

// append appends an object that readIndex parses.
func (x *Index) append(dst []byte) []byte {
	dst = append(appendString(append(dst, `{"name":`...), x.Name), `,"columns":[`...)
	for i, c := range x.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, c)
	}
	return append(strconv.AppendBool(append(dst, `],"unique":`...), x.Unique), '}')
}
