package carbondata

import (
	"errors"

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
