package change

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
)

// RowError is a row of a write batch that was refused, and the cause.
//
// errors.Is(err, ErrRow) is true for every RowError; errors.Is also reaches Cause
// (for example ErrKeyExists or ErrNotFound).
type RowError struct {
	Row    int    // index of the operation in its write batch, 0-based
	Table  string // table name
	Key    string // the key as JSON, empty when it could not be read
	Column string // column name, empty when the row as a whole is at fault
	Cause  error
}

func (e *RowError) Error() string {
	s := fmt.Sprintf("row %d of table %q", e.Row, e.Table)
	if e.Key != "" {
		s += " key " + e.Key
	}
	if e.Column != "" {
		s += fmt.Sprintf(": column %q", e.Column)
	}
	return s + ": " + e.Cause.Error()
}

// Unwrap makes both ErrRow and the cause visible to errors.Is.
func (e *RowError) Unwrap() []error { return []error{fault.ErrRow, e.Cause} }

// NotUnique is the cause of a RowError about a row that would have the same values as another row in the
// columns of a unique index. It wraps ErrNotUnique.
type NotUnique struct {
	Index string
	Key   []byte // encoded, of the other row
	Other string // the same as JSON
}

func (e *NotUnique) Error() string {
	return fmt.Sprintf("index %q: row %s has the same values: not unique", e.Index, e.Other)
}

// Unwrap makes ErrNotUnique visible to errors.Is.
func (e *NotUnique) Unwrap() error { return fault.ErrNotUnique }
