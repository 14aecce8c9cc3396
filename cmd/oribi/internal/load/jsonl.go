package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cell"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/cmd/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// jsonSource reads rows of JSON Lines: an object a line, the names of which are columns.
type jsonSource struct {
	*maker
	in      *bufio.Reader
	checker jsonin.Checker
	read    func([]byte, *schema.Column, []byte) ([]byte, error)
	table   string
	text    []byte
	number  int
}

func jsonRows(in io.Reader, m *maker, o *Options) *jsonSource {
	s := &jsonSource{maker: m, in: bufio.NewReaderSize(in, 256<<10), read: cell.FromJSON, table: o.Table.Name()}
	if o.Scalars {
		s.read = scalarFromJSON
	}
	jsonin.SkipMark(s.in)
	return s
}

// scalarFromJSON is cell.FromJSON that takes a number, true and false for a string: their text.
func scalarFromJSON(dst []byte, c *schema.Column, value []byte) ([]byte, error) {
	if c.Type == schema.String && value[0] != '"' && value[0] != '{' && value[0] != '[' {
		return append(dst, value...), nil
	}
	return cell.FromJSON(dst, c, value)
}

func (s *jsonSource) line() int   { return max(s.number, 1) }
func (s *jsonSource) raw() []byte { return s.text }

func (s *jsonSource) next(dst *rows) error {
	for {
		text, err := jsonin.ReadLine(s.in, s.text[:0], csvin.MaxRecordBytes)
		if s.number++; err != nil {
			return err
		}
		s.text = text
		if len(jsonin.Trim(text)) > 0 {
			break
		}
	}
	from := len(dst.text)
	if err := s.row(dst); err != nil {
		dst.text = dst.text[:from]
		return &badRow{err}
	}
	return nil
}

func (s *jsonSource) row(dst *rows) error {
	object := jsonin.Trim(s.text)
	if err := s.checker.Check(object); err != nil {
		if e, ok := errors.AsType[*jsonin.Error](err); ok && len(e.Path) > 0 {
			return columnError(e.Path[0], errors.New(e.Reason()))
		}
		return err
	}
	if object[0] != '{' {
		return fmt.Errorf("want an object, not %s", jsonin.Kind(object))
	}
	s.begin()
	next := 0 // members mostly stand in schema order
	for w := jsonin.Walk(object); w.Next(); next++ {
		if next >= len(s.cells) || s.schema.Columns[next].Name != string(w.Name) {
			if next = s.schema.Index(string(w.Name)); next < 0 {
				return columnError(string(w.Name), fmt.Errorf("no such column in table %q", s.table))
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
	return s.end(dst, s.number, s.text)
}
