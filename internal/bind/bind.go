// Package bind converts between the Go values of a caller and the cells of columns: single values,
// arrays, vectors, keys, rows, fields of structs, and the constants of predicates and terms.
//
// It knows columns, and neither stores nor tables: its errors describe the value and, where there
// are several columns, name the column, and the caller adds the table and the row. All functions
// are safe for concurrent use.
package bind

import (
	"errors"

	"github.com/oribi-db/oribi/schema"
)

// Append checks a Go value against a column and returns its cell. A nil value is NULL, and so is a
// nil cell.
//
// The cell of a string or of a []byte is the value's own memory, which must not be modified while
// the cell is used. A cell of fixed width is appended to buf, which is empty, so that it needs no
// memory of its own if buf has room for MaxWidth bytes.
func Append(buf []byte, c *schema.Column, v any) (cell []byte, err error) {
	if c.Type == schema.Array {
		return arrayCell(c, v)
	}
	return appendScalar(buf, c, v)
}

// Check checks the bytes of a cell against its column: the width, and the range of the type. A nil
// cell, NULL, is valid.
func Check(c *schema.Column, cell []byte) error {
	if c.Type == schema.Array && cell != nil {
		return checkArray(c, cell)
	}
	return checkScalar(c, cell)
}

// Value returns a cell as a Go value: the integer, float, or bool of the column's width; string;
// []byte; time.Time for date and timestamp; Decimal; []any for arrays; nil for NULL. It copies byte
// strings.
func Value(c *schema.Column, cell []byte) any {
	if c.Type == schema.Array && cell != nil {
		return arrayValue(c, cell)
	}
	return scalarValue(c, cell)
}

// ErrNull is the error for a NULL in a column that is not nullable.
var ErrNull = errors.New("NULL in a column that is not nullable")
