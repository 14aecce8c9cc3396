package rowset

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // files or metadata differ from the bytes that were written
	ErrNotFound    = fault.ErrNotFound    // no such row or column
	ErrSchema      = fault.ErrSchema      // a change does not fit the schema
	ErrUnsupported = fault.ErrUnsupported // a feature that this package does not know
)
