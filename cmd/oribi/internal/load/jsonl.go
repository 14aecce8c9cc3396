package load

import (
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// jsonSource reads rows of JSON, as lines or as one array: an object per row, whose names are
// columns.
type jsonSource struct {
	*maker
	in    *jsonin.Records
	read  func([]byte, *schema.Column, []byte) ([]byte, error)
	table string
}

func jsonRows(in io.Reader, m *maker, o *Options) *jsonSource {
	s := &jsonSource{maker: m, in: jsonin.NewRecords(in, csvin.MaxRecordBytes), read: cell.FromJSON, table: o.Table.Name()}
	if o.Scalars {
		s.read = scalarFromJSON
	}
	return s
}

// scalarFromJSON is cell.FromJSON, except that a string column also accepts numbers, true and false
// as text.
func scalarFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	if c.Type != schema.String || value[0] == '"' || value[0] == '{' {
		return cell.FromJSON(dst, c, value)
	}
	if value[0] == '[' {
		return dst, fmt.Errorf("want a string, not an array; for arrays add --type '%s=array(int64)', or another type", c.Name)
	}
	return append(dst, value...), nil
}

func (s *jsonSource) line() int   { return s.in.Line }
func (s *jsonSource) raw() []byte { return s.in.Raw }

func (s *jsonSource) next(dst *rows) error {
	object, err := s.in.Next()
	if bad, ok := errors.AsType[*jsonin.Error](err); ok {
		if len(bad.Path) > 0 {
			err = columnError(bad.Path[0], errors.New(bad.Reason()))
		}
		return &badRow{err}
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
	next := 0 // members are mostly in schema order
	for w := jsonin.Walk(object); w.Next(); next++ {
		if next >= len(s.cells) || s.schema.Columns[next].Name != string(w.Name) {
			if next = s.schema.Index(string(w.Name)); next < 0 {
				return columnError(string(w.Name), fmt.Errorf("no such column in table %q%s", s.table, nearest.Hint(string(w.Name), s.schema.Names())))
			}
		}
		if jsonin.IsNull(w.Value) {
			s.set[next] = true
			continue
		}
		if err := s.put(dst, next, w.Value, s.read); err != nil {
			return err
		}
	}
	return s.end(dst, s.in.Line, s.in.Raw)
}
