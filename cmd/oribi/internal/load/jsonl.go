package load

import (
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// jsonSource reads rows of JSON, as lines or as one array: an object per row, whose names are
// columns.
type jsonSource struct {
	*maker
	in      *jsonin.Records
	scalars bool // string columns accept numbers, true and false as text
	wanted  []bool
	table   string
}

func jsonRows(in io.Reader, m *maker, o *Options) *jsonSource {
	s := &jsonSource{maker: m, in: jsonin.NewRecords(in, csvin.MaxRecordBytes),
		scalars: o.Scalars, table: o.Table.Name()}
	if o.Columns != nil {
		s.wanted = make([]bool, len(m.schema.Columns))
		for _, name := range o.Columns {
			if i := m.schema.Index(name); i >= 0 {
				s.wanted[i] = true
			}
		}
	}
	return s
}

// readText is cell.FromJSON, except that a string column also accepts objects and arrays as compact
// text, and a bool column what a field of CSV may be.
func readText(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	first := value[0]
	switch t := c.Type; {
	case (t == schema.String || t == schema.Varchar) && (first == '{' || first == '['):
		from := len(dst)
		dst = jsonin.AppendCompact(dst, value)
		return dst, celltext.CheckLength(c, dst[from:])
	case t == schema.Bool && first == '"':
		return celltext.FromField(dst, c, jsonin.String(value))
	case t == schema.Bool && (first == '0' || first == '1'):
		return celltext.FromField(dst, c, value)
	}
	return cell.FromJSON(dst, c, value)
}

// readScalar is readText, except that a string column also accepts numbers, true and false as text.
func readScalar(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	if c.Type == schema.String && value[0] != '"' && value[0] != '{' && value[0] != '[' {
		return append(dst, value...), nil
	}
	out, err := readText(dst, c, value)
	if err != nil && c.Type == schema.Double {
		err = fmt.Errorf("%w; to keep such numbers as text, add --type '%s=string'", err, c.Name)
	}
	return out, err
}

func (s *jsonSource) line() int   { return s.in.Line }
func (s *jsonSource) raw() []byte { return s.in.Raw }

func (s *jsonSource) next(dst *rows) error {
	object, err := s.in.Next()
	if bad, ok := errors.AsType[*jsonin.Error](err); ok {
		return &badRow{bad.InColumn()}
	}
	if err != nil {
		return err
	}
	from := len(dst.text)
	switch err := s.row(dst, object); err {
	case nil:
	case errLeftOut:
		dst.text = dst.text[:from]
	default:
		dst.text = dst.text[:from]
		return &badRow{err}
	}
	return nil
}

func (s *jsonSource) row(dst *rows, object []byte) error {
	if object[0] != '{' {
		return fmt.Errorf("want an object, not %s", jsonin.Kind(object))
	}
	s.begin()
	read := readText
	if s.scalars {
		read = readScalar
	}
	next := 0 // members are mostly in schema order
	for w := jsonin.Walk(object); w.Next(); next++ {
		if next >= len(s.cells) || s.schema.Columns[next].Name != string(w.Name) {
			if next = s.schema.Index(string(w.Name)); next < 0 {
				if s.wanted != nil {
					continue
				}
				return columnError(string(w.Name),
					fmt.Errorf("no such column in table %q%s", s.table, nearest.Hint(string(w.Name), s.schema.Names())))
			}
		}
		switch {
		case s.wanted != nil && !s.wanted[next]:
			continue
		case jsonin.IsNull(w.Value):
			s.set[next] = true
			continue
		}
		if err := s.put(dst, next, w.Value, read); err != nil {
			return err
		}
	}
	return s.end(dst, s.in.Line, s.in.Raw)
}
