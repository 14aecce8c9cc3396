package load

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// batchSource reads the selected rows of record batches.
type batchSource struct {
	*maker
	pull   func() (*batch.RecordBatch, error, bool)
	close  func()
	fields []field
	given  []bool // by column of the table: a field sets it

	now   *batch.RecordBatch
	at    int   // next row of now; −1: none
	row   int   // the row of now last read
	count int   // rows read
	after error // after now
	text  []byte

	columns columnReader
}

// field is a column of the batches.
type field struct {
	from    schema.Column
	to      int // index of the table's column
	convert converter
	same    bool // convert copies cells
}

// batchRows returns a source of o.Batches, which must be closed.
func batchRows(m *maker, o *Options) (*batchSource, error) {
	fields, err := fieldsOf(o)
	if err != nil {
		return nil, err
	}
	s := &batchSource{maker: m, fields: fields, at: -1, given: make([]bool, len(m.schema.Columns))}
	for _, f := range fields {
		s.given[f.to] = true
	}
	s.columns = newColumnReader(s)
	s.pull, s.close = iter.Pull2(o.Batches)
	return s, nil
}

// fieldsOf returns the columns of the batches. Errors: a column that the table does not have, and
// one of another type.
func fieldsOf(o *Options) ([]field, error) {
	s := o.Table.Schema()
	var fields []field
	for _, c := range o.Fields {
		to := columnNamed(s, c.Name)
		switch {
		case slices.ContainsFunc(fields, func(f field) bool { return f.to == to }):
			return nil, columnError(c.Name,
				fmt.Errorf("another column of the input has this name in table %q", o.Table.Name()))
		case to < 0:
			return nil, columnError(c.Name,
				fmt.Errorf("no such column in table %q%s", o.Table.Name(), nearest.Hint(c.Name, s.Names())))
		}
		convert, same, err := conversion(&c, &s.Columns[to])
		if err != nil {
			return nil, columnError(c.Name, err)
		}
		fields = append(fields, field{c, to, convert, same})
	}
	return fields, nil
}

// columnNamed returns the index of the column with the given name, else of the only one whose name
// differs in case, else −1: formats such as CarbonData have names in lower case.
func columnNamed(s *schema.Schema, name string) int {
	if i := s.Index(name); i >= 0 {
		return i
	}
	found := -1
	for i := range s.Columns {
		if !strings.EqualFold(s.Columns[i].Name, name) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// line returns the number of the row, from 1.
func (s *batchSource) line() int { return s.count }

// raw returns the row as a line of JSON.
func (s *batchSource) raw() []byte {
	s.text = append(s.text[:0], '{')
	for i := range s.fields {
		if i > 0 {
			s.text = append(s.text, ',')
		}
		f := &s.fields[i]
		s.text = append(celltext.AppendQuoted(s.text, []byte(f.from.Name)), ':')
		s.text = celltext.AppendJSON(s.text, &f.from, s.now.Columns[i].Cell(s.row))
	}
	s.text = append(s.text, '}')
	return s.text
}

// advance finds the batch with the next row. Errors: io.EOF; the error of the batches, which every
// later call returns too.
func (s *batchSource) advance() error {
	for s.at < 0 && s.after == nil {
		b, err, ok := s.pull()
		switch {
		case !ok:
			s.after = io.EOF
		case err != nil:
			s.after = err
		default:
			s.now, s.at = b, b.Selection.Next(0)
		}
	}
	if s.at < 0 {
		return s.after
	}
	return nil
}

func (s *batchSource) next(dst *rows) error {
	if err := s.advance(); err != nil {
		return err
	}
	s.row, s.at = s.at, s.now.Selection.Next(s.at+1)
	s.count++
	from := len(dst.text)
	if err := s.convert(dst); err != nil {
		dst.text = dst.text[:from]
		return &badRow{err}
	}
	return nil
}

func (s *batchSource) convert(dst *rows) error {
	s.begin()
	for i := range s.fields {
		f := &s.fields[i]
		cell := s.now.Columns[i].Cell(s.row)
		if cell == nil {
			s.set[f.to] = true
			continue
		}
		if err := s.put(dst, f.to, cell, f.convert); err != nil {
			return err
		}
	}
	var raw []byte
	if s.maker.raw {
		raw = s.raw()
	}
	return s.end(dst, s.count, raw)
}
