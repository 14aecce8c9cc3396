package cfile

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // the bytes are damaged
	ErrNotFound    = fault.ErrNotFound    // no such cell
	ErrSchema      = fault.ErrSchema      // a vector does not fit the file
	ErrUnsupported = fault.ErrUnsupported // a feature, type, encoding or codec unknown to this package, or an operation that the file does not support
)
