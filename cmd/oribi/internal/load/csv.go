package load

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// csvSource reads rows of CSV.
type csvSource struct {
	*maker
	reader *csvin.Reader
	places []int  // of the file's fields: the column's index in the table, −1 for those that are not loaded
	given  []bool // by column of the table: a field sets it

	columns csvColumns
}

// csvRows returns a source of the records of in. It returns errors in the header, which name the
// column.
func csvRows(in io.Reader, m *maker, o *Options) (*csvSource, error) {
	s := &csvSource{maker: m, reader: csvin.NewReader(in, o.Delimiter)}
	if o.Names.NoHeader && o.Names.List == nil {
		o.Names.List = insertedColumns(m)
	}
	names, err := s.reader.Header(o.Names)
	if err != nil {
		return s, err
	}
	given := make([]bool, len(m.schema.Columns))
	for _, name := range names {
		if o.Columns != nil && !slices.Contains(o.Columns, name) {
			s.places = append(s.places, -1)
			continue
		}
		i := m.schema.Index(name)
		if i < 0 {
			return s,
				columnError(name, fmt.Errorf("no such column in table %q%s", o.Table.Name(),
					unknownHint(name, names, m.schema)))
		}
		given[i] = true
		s.places = append(s.places, i)
	}
	for i, c := range m.schema.Columns {
		switch {
		case c.AutoIncrement && given[i] && !m.upsert:
			return s, columnError(c.Name, errAuto)
		case given[i] || c.AutoIncrement && !m.upsert:
		case i < m.schema.Keys:
			return s, columnError(c.Name, errors.New("is in the key, but not in the file"))
		case o.Mode != oribi.OpUpsert && c.Required():
			return s, columnError(c.Name, errors.New("is not in the file, has no default, and is not nullable"))
		}
	}
	s.given, s.columns = given, newCSVColumns(s, given)
	return s, nil
}

// insertedColumns returns the columns of a row that is inserted.
func insertedColumns(m *maker) []string {
	var names []string
	for i := range m.schema.Columns {
		if c := &m.schema.Columns[i]; !c.AutoIncrement || m.upsert {
			names = append(names, c.Name)
		}
	}
	return names
}

// unknownHint ends the message about an unknown name in the header. It suggests another delimiter
// if the header is one name that contains a likely delimiter, else the nearest column.
func unknownHint(name string, names []string, s *schema.Schema) string {
	if hint := csvin.DelimiterHint(names); hint != "" {
		return hint
	}
	return nearest.Hint(name, s.Names())
}

func (s *csvSource) line() int   { return s.reader.Line }
func (s *csvSource) raw() []byte { return s.reader.Raw() }

func (s *csvSource) next(dst *rows) error {
	if err := s.reader.Next(); err != nil {
		if bad, ok := errors.AsType[*csvin.BadRecord](err); ok {
			return &badRow{s.nameField(bad)}
		}
		return err
	}
	text := len(dst.text)
	switch err := s.row(dst); err {
	case nil:
	case errLeftOut:
		dst.text = dst.text[:text]
	default:
		dst.text = dst.text[:text]
		return &badRow{err}
	}
	return nil
}

// nameField adds the column's name to an error about a malformed field.
func (s *csvSource) nameField(bad *csvin.BadRecord) error {
	if bad.Field < len(s.places) && s.places[bad.Field] >= 0 {
		return columnError(s.schema.Columns[s.places[bad.Field]].Name, bad.Cause)
	}
	return bad
}

func (s *csvSource) row(dst *rows) error {
	fields := s.reader.Fit(len(s.places))
	switch n := len(s.places); {
	case len(fields) < n:
		err := fmt.Errorf("missing: the line ends after %d of %d fields", len(fields), n)
		if i := s.places[len(fields)]; i >= 0 {
			err = columnError(s.schema.Columns[i].Name, err)
		}
		return err
	case len(fields) > n:
		return fmt.Errorf("the line has %d fields, want %d", len(fields), n)
	}
	s.begin()
	for k := range fields {
		f, i := &fields[k], s.places[k]
		if i < 0 {
			continue
		}
		if len(f.Text) == 0 && !f.Quoted && s.emptyIsUnset(i) {
			continue
		}
		if err := s.put(dst, i, f.Text, cell.FromField); err != nil {
			return err
		}
	}
	return s.end(dst, s.reader.Line, s.reader.Raw())
}

// emptyIsUnset reports whether an empty field without quotes does not set column i. The empty
// string is written "", but programs write it without quotes, too. In a key that is more often a
// value that is missing.
func (s *csvSource) emptyIsUnset(i int) bool {
	c := &s.schema.Columns[i]
	return c.Nullable || i < s.schema.Keys || !c.Type.Text()
}
