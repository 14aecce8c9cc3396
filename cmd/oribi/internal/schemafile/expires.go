package schemafile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// Expires says when the rows of a table expire: Age after the time in Column.
type Expires struct {
	Column string // empty: they do not
	Age    time.Duration
}

// read parses the object of a schema file.
func (e *Expires) read(value []byte) error {
	if value[0] != '{' {
		return fmt.Errorf("want an object, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		text, err := "", error(nil)
		switch name := string(w.Name); name {
		case "column":
			e.Column, err = readString(w.Value)
		case "age":
			if text, err = readString(w.Value); err == nil {
				e.Age, err = parseAge(text)
			}
		default:
			err = fmt.Errorf("unknown field%s", nearest.Hint(name, []string{"column", "age"}))
		}
		if err != nil {
			return fmt.Errorf("%q: %w", w.Name, err)
		}
	}
	if e.Column == "" {
		return errors.New(`no column: want {"column":"c","age":"7d"}`)
	}
	return nil
}

func (e *Expires) append(dst []byte) []byte {
	dst = appendString(append(dst, `{"column":`...), e.Column)
	if e.Age != 0 {
		dst = appendString(append(dst, `,"age":`...), formatAge(e.Age))
	}
	return append(dst, '}')
}

// String returns the text that ParseExpires reads.
func (e Expires) String() string {
	switch {
	case e.Column == "":
		return "none"
	case e.Age == 0:
		return e.Column
	}
	return e.Column + ":" + formatAge(e.Age)
}

// ParseExpires parses c, c:age, or none. has reports whether the table has a column.
func ParseExpires(text string, has func(column string) bool) (e Expires, err error) {
	i := strings.LastIndexByte(text, ':')
	switch {
	case text == "none":
		return e, nil
	case has(text), i < 0:
		return Expires{Column: text}, nil
	}
	e.Column = text[:i]
	e.Age, err = parseAge(text[i+1:])
	return e, err
}

// check returns an error if the rows of a table with these columns cannot expire in this way.
func (e *Expires) check(columns []schema.Column) error {
	for i := range columns {
		if c := &columns[i]; c.Name == e.Column {
			if err := CheckExpires(c); err != nil {
				return fmt.Errorf("column %q: %w", c.Name, err)
			}
			return nil
		}
	}
	return (&schema.Schema{Columns: columns}).NoColumn(e.Column)
}

// CheckExpires returns an error if rows cannot expire by the times in column c.
func CheckExpires(c *schema.Column) error {
	if c.Type != schema.Timestamp {
		return fmt.Errorf("type %s, want timestamp", c.TypeName())
	}
	return nil
}

// parseAge parses an age of rows, which may be less than a second.
func parseAge(text string) (time.Duration, error) {
	age, err := when.ParseAge(text)
	if err == nil && age != when.Forever {
		return age, nil
	}
	if short, err := time.ParseDuration(text); err == nil && short >= 0 {
		return short, nil
	}
	if errors.Is(err, when.ErrTooLong) {
		return 0, err
	}
	return 0, fmt.Errorf("%q is not an age: want a number and s, m, h, or d", text)
}

func formatAge(age time.Duration) string {
	if age%time.Second != 0 {
		return age.String()
	}
	return when.FormatAge(age)
}
