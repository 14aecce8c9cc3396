package oribi

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/tablet"
)

// Key is the values of the key columns, in schema order.
type Key []any

// appendKey appends the encoding of a key that is given as a Go value, a Key, a Row, or cells
// ([][]byte). If prefix is set, the key may lack its last columns.
func (t *Table) appendKey(dst []byte, tableSchema *tablet.TableSchema, key any, prefix bool) ([]byte, error) {
	dst, err := encodeKey(dst, tableSchema, key, prefix)
	if err == nil {
		return dst, nil
	}
	bad := &RowError{Table: t.tab.Name(), Cause: err}
	if e, ok := errors.AsType[*bind.ColumnError](err); ok {
		bad.Column, bad.Cause = e.Column, e.Cause
	}
	return nil, fmt.Errorf("oribi: key: %w", bad)
}

func encodeKey(dst []byte, tableSchema *tablet.TableSchema, key any, prefix bool) ([]byte, error) {
	s, encoder := tableSchema.Schema, tableSchema.Encoder
	switch k := key.(type) {
	case [][]byte:
		return bind.AppendKeyCells(dst, s, encoder, k, prefix)
	case Row:
		values, err := bind.KeyOfRow(s, k)
		if err != nil {
			return nil, err
		}
		return bind.AppendKey(dst, s, encoder, values, prefix)
	case Key:
		return bind.AppendKey(dst, s, encoder, k, prefix)
	}
	return bind.AppendKey(dst, s, encoder, []any{key}, prefix)
}

// bound encodes a bound of a key range, in the memory of buf if that is large enough. It returns
// nil for no bound.
func (t *Table) bound(buf []byte, tableSchema *tablet.TableSchema, key any) ([]byte, error) {
	if key == nil {
		return nil, nil
	}
	return t.appendKey(buf, tableSchema, key, true)
}

// Row maps column names to values. A nil value is NULL; an absent name leaves the column unset. Row
// suits small programs; see TableOf for struct types, and Batch.Vectors for bulk work.
//
// An integer column takes every integer type whose value is in its range. Other columns take
// float32 and float64; string; []byte for binary; bool; time.Time for date and timestamp; Decimal;
// Int128. An array takes a slice of these, or []any with nil for NULL elements. Every column takes
// a Cell of its type, too, and a numeric column any number that it can represent exactly. In a row
// that was read, an array is a []any.
type Row map[string]any
