package carbonlines

import (
	"fmt"
	"io"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
)

// maxLineBytes bounds a line, and so the memory for an input without line ends.
const maxLineBytes = 64 << 20

// Reader reads rows: lines, or the elements of one JSON array. Blank lines are skipped.
type Reader struct {
	records *jsonin.Records
	row     *shape
	cell    []byte // memory of value
}

// NewReader returns a reader of rows that have these columns.
func NewReader(in io.Reader, columns []carbondata.Column) *Reader {
	return &Reader{records: jsonin.NewRecords(in, maxLineBytes), row: rows(columns), cell: make([]byte, 0, 64)}
}

// Line returns the number of the line last read, from 1.
func (r *Reader) Line() int { return r.records.Line }

// Next returns the values of the next row, in the order of the columns; the row belongs to the
// caller. It returns io.EOF after the last row; the first other error ends the reading. Errors name
// the column.
func (r *Reader) Next() ([]any, error) {
	text, err := r.records.Next()
	if err != nil {
		return nil, err
	}
	return r.object(r.row, text, "column")
}

// object parses an object with the fields of a STRUCT, each called what in messages.
func (r *Reader) object(s *shape, text []byte, what string) ([]any, error) {
	if text[0] != '{' {
		return nil, fmt.Errorf("want an object, not %s", jsonin.Kind(text))
	}
	values := make([]any, len(s.children))
	for w := jsonin.Walk(text); w.Next(); {
		i, ok := s.index[string(w.Name)]
		if !ok {
			return nil, fmt.Errorf("%s %q: no such %s%s", what, w.Name, what,
				nearest.Hint(string(w.Name), nearest.Keys(s.index)))
		}
		var err error
		if values[i], err = r.value(s.children[i], w.Value); err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, w.Name, err)
		}
	}
	return values, nil
}

func (r *Reader) value(s *shape, text []byte) (v any, err error) {
	if jsonin.IsNull(text) {
		return nil, nil
	}
	switch s.typ {
	case carbondata.Struct:
		return r.object(s, text, "field")
	case carbondata.Array:
		return r.list("element", text, func(text []byte) (any, error) { return r.value(s.children[0], text) })
	case carbondata.Map:
		return r.list("pair", text, func(text []byte) (any, error) { return r.pair(s, text) })
	}
	if r.cell, err = cell.FromJSON(r.cell[:0], &s.cell, text); err != nil {
		return nil, err
	}
	return Value(s.typ, r.cell), nil
}

// list parses an array whose elements are called what in messages.
func (r *Reader) list(what string, text []byte, parse func(text []byte) (any, error)) (any, error) {
	if text[0] != '[' {
		return nil, fmt.Errorf("want an array, not %s", jsonin.Kind(text))
	}
	list := []any{}
	for w := jsonin.Walk(text); w.Next(); {
		v, err := parse(w.Value)
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", what, len(list), err)
		}
		list = append(list, v)
	}
	return list, nil
}

// pair parses an entry of a MAP.
func (r *Reader) pair(s *shape, text []byte) (any, error) {
	if jsonin.IsNull(text) {
		return nil, nil
	}
	if text[0] != '[' {
		return nil, fmt.Errorf("want [key,value], not %s", jsonin.Kind(text))
	}
	var pair []any
	for w := jsonin.Walk(text); w.Next(); {
		if len(pair) == len(s.children) {
			return nil, fmt.Errorf("want [key,value], not more than two values")
		}
		v, err := r.value(s.children[len(pair)], w.Value)
		if err != nil {
			return nil, err
		}
		pair = append(pair, v)
	}
	if len(pair) < len(s.children) {
		return nil, fmt.Errorf("want [key,value], not %d of the two", len(pair))
	}
	return pair, nil
}
