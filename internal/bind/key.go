package bind

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// ColumnError is an error about a key or a row: about a value for the column, or about the number of
// values if Column is empty.
type ColumnError struct {
	Column string
	Cause  error
}

func (e *ColumnError) Error() string {
	if e.Column == "" {
		return e.Cause.Error()
	}
	return fmt.Sprintf("column %q: %v", e.Column, e.Cause)
}

func (e *ColumnError) Unwrap() error { return e.Cause }

// AppendKey appends the encoding of a key to dst. values are the Go values of the key columns, in
// the order of the schema; if prefix is set, the last ones may be missing. e is the encoder of s.
// Errors: *ColumnError.
func AppendKey(dst []byte, s *schema.Schema, e *keyenc.Encoder, values []any, prefix bool) ([]byte, error) {
	if len(values) == 0 || len(values) > s.Keys || len(values) < s.Keys && !prefix {
		return nil, &ColumnError{Cause: fmt.Errorf("%d values, the key has %d columns", len(values), s.Keys)}
	}
	for i, v := range values {
		c := &s.Columns[i]
		cell, err := Append(scratch(dst), c, v)
		if err == nil && cell == nil {
			err = ErrNull
		}
		if err != nil {
			return nil, &ColumnError{c.Name, err}
		}
		dst = e.AppendCell(dst, i, cell)
	}
	return dst, nil
}

// scratch returns memory for a cell that is about to be appended to dst: the end of dst's memory,
// if it has room for the cell and its encoding.
func scratch(dst []byte) []byte {
	if at := cap(dst) - MaxWidth; at >= len(dst)+MaxWidth {
		return dst[at:at]
	}
	return make([]byte, 0, MaxWidth)
}

// AppendKeyCells is AppendKey for a key that is given as cells.
func AppendKeyCells(dst []byte, s *schema.Schema, e *keyenc.Encoder, cells [][]byte, prefix bool) ([]byte, error) {
	if len(cells) == 0 || len(cells) > s.Keys || len(cells) < s.Keys && !prefix {
		return nil, &ColumnError{Cause: fmt.Errorf("%d cells, the key has %d columns", len(cells), s.Keys)}
	}
	for i, cell := range cells {
		c := &s.Columns[i]
		err := Check(c, cell)
		if cell == nil {
			err = ErrNull
		}
		if err != nil {
			return nil, &ColumnError{c.Name, err}
		}
	}
	return e.AppendPrefix(dst, cells), nil
}

// KeyOfRow returns the values of a row that has only key columns: all of them, or the first ones.
// Errors: *ColumnError.
func KeyOfRow(s *schema.Schema, row map[string]any) (values []any, err error) {
	for _, c := range s.Columns[:s.Keys] {
		v, ok := row[c.Name]
		if !ok {
			break
		}
		values = append(values, v)
	}
	if len(values) == len(row) {
		return values, nil
	}
	for _, name := range slices.Sorted(maps.Keys(row)) {
		switch i := s.Index(name); {
		case i < 0:
			return nil, &ColumnError{name, s.NoColumn(name)}
		case i >= s.Keys:
			return nil, &ColumnError{name, errors.New("the column is not in the key")}
		}
	}
	return nil, &ColumnError{s.Columns[len(values)].Name, errors.New("the key column is not set")}
}

// UnknownColumn returns the error for the first name in a row, by the alphabet, that is no column,
// or nil.
func UnknownColumn(s *schema.Schema, row map[string]any) *ColumnError {
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if s.Index(name) < 0 {
			return &ColumnError{name, s.NoColumn(name)}
		}
	}
	return nil
}
