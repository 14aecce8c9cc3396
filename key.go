package oribi

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/schema"
)

// Key is the values of the key columns, in schema order.
type Key []any

// appendKey appends the encoding of a key that is given as a Go value, a Key, a Row, or cells
// ([][]byte). If prefix is set, the key may lack its last columns.
func (t *Table) appendKey(dst []byte, tableSchema *tablet.TableSchema, key any, prefix bool) ([]byte, error) {
	s := tableSchema.Schema
	switch k := key.(type) {
	case [][]byte:
		if len(k) == 0 || len(k) > s.Keys || len(k) < s.Keys && !prefix {
			return nil, t.keyError("", fmt.Errorf("%d cells, the key has %d columns", len(k), s.Keys))
		}
		for i, cell := range k {
			if err := t.checkKeyCell(&s.Columns[i], cell); err != nil {
				return nil, err
			}
		}
		return tableSchema.Encoder.AppendPrefix(dst, k), nil
	case Row:
		values, err := t.keyValues(s, k)
		if err != nil {
			return nil, err
		}
		return t.appendKeyOf(dst, tableSchema, values, prefix)
	case Key:
		return t.appendKeyOf(dst, tableSchema, k, prefix)
	}
	return t.appendKeyOf(dst, tableSchema, []any{key}, prefix)
}

// keyValues returns the values of a Row that is a key or its first columns.
func (t *Table) keyValues(s *schema.Schema, key Row) (values []any, err error) {
	for i := 0; i < s.Keys && len(values) < len(key); i++ {
		v, ok := key[s.Columns[i].Name]
		if !ok {
			return nil, t.keyRowError(s, key)
		}
		values = append(values, v)
	}
	if len(values) != len(key) {
		return nil, t.keyRowError(s, key)
	}
	return values, nil
}

// appendKeyOf is appendKey for the values of the key columns.
func (t *Table) appendKeyOf(dst []byte, tableSchema *tablet.TableSchema, values []any, prefix bool) ([]byte, error) {
	s := tableSchema.Schema
	if len(values) == 0 || len(values) > s.Keys || len(values) < s.Keys && !prefix {
		return nil, t.keyError("", fmt.Errorf("%d values, the key has %d columns", len(values), s.Keys))
	}
	for i, v := range values {
		cell, err := bind.Append(scratch(dst), &s.Columns[i], v)
		if err != nil {
			return nil, t.keyError(s.Columns[i].Name, err)
		}
		if cell == nil {
			return nil, t.keyError(s.Columns[i].Name, bind.ErrNull)
		}
		dst = tableSchema.Encoder.AppendCell(dst, i, cell)
	}
	return dst, nil
}

// scratch returns memory for a cell that is about to be appended to dst: the end of dst's memory,
// if that has room for both.
func scratch(dst []byte) []byte {
	if at := cap(dst) - bind.MaxWidth; at >= len(dst)+bind.MaxWidth {
		return dst[at:at]
	}
	return make([]byte, 0, bind.MaxWidth)
}

// keyRowError returns the error for a Row that is not a key: it has a column that is not in the
// key, or lacks one before a column that it has.
func (t *Table) keyRowError(s *schema.Schema, key Row) error {
	for _, name := range slices.Sorted(maps.Keys(key)) {
		switch i := s.Index(name); {
		case i < 0:
			return t.keyError(name, s.NoColumn(name))
		case i >= s.Keys:
			return t.keyError(name, errors.New("the column is not in the key"))
		}
	}
	for _, c := range s.Columns[:s.Keys] {
		if _, ok := key[c.Name]; !ok {
			return t.keyError(c.Name, errors.New("the key column is not set"))
		}
	}
	return nil // unreachable: key is a key
}

func (t *Table) checkKeyCell(c *schema.Column, cell []byte) error {
	if cell == nil {
		return t.keyError(c.Name, bind.ErrNull)
	}
	if err := bind.Check(c, cell); err != nil {
		return t.keyError(c.Name, err)
	}
	return nil
}

func (t *Table) keyError(column string, cause error) error {
	return fmt.Errorf("oribi: key: %w", &RowError{Table: t.tab.Name(), Column: column, Cause: cause})
}

// bound encodes a bound of a key range, in the memory of buf if that is large enough; it returns
// nil if there is none.
func (t *Table) bound(buf []byte, tableSchema *tablet.TableSchema, key any) ([]byte, error) {
	if key == nil {
		return nil, nil
	}
	return t.appendKey(buf, tableSchema, key, true)
}
