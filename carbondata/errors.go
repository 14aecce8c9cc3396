package carbondata

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // the bytes are not well-formed CarbonData
	ErrUnsupported = fault.ErrUnsupported // a version, type, encoding, or feature that this package does not read
	ErrNoColumn    = fault.ErrNoColumn    // a scan names a column that the table does not have
	ErrSchema      = fault.ErrSchema      // a value of a filter is not of its column's type
	ErrRow         = fault.ErrRow         // a value that a column, there or here, cannot hold
	ErrClosed      = fault.ErrClosed      // a call to a Writer after Close or Abort
)

// ErrNoRows is the error of Writer.Close without a row.
var ErrNoRows = errors.New("no rows, and CarbonData has no file without rows")

// inside adds a place to an error.
func inside(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// RowError is why a Writer refuses a row, or why a scan ends at one. It is an ErrRow.
type RowError struct {
	Row    int    // from 0: of the batch, in AppendBatch; of the rows of the scan; −1: not known
	Column string // with the value; empty if the row as a whole is refused
	Err    error
}

func (e *RowError) Error() string {
	text := e.Err.Error()
	if e.Column != "" {
		text = fmt.Sprintf("column %q: %s", e.Column, text)
	}
	if e.Row >= 0 {
		text = fmt.Sprintf("row %d: %s", e.Row, text)
	}
	return text
}

func (e *RowError) Unwrap() []error { return []error{ErrRow, e.Err} }

// refusedValue is why the value of a vector is refused.
type refusedValue struct {
	row int
	error
}

func (e *refusedValue) Unwrap() error { return e.error }

// inColumn adds the column to an error.
func inColumn(name string, err error) error {
	if bad, ok := errors.AsType[*refusedValue](err); ok {
		return &RowError{bad.row, name, bad.error}
	}
	return fmt.Errorf("column %q: %w", name, err)
}

// unheld is the error of a stored value that no value outside of files represents. It is an ErrRow.
type unheld struct{ text string }

func (e *unheld) Error() string { return e.text }

func (e *unheld) Unwrap() error { return ErrRow }
