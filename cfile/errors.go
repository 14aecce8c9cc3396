package cfile

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt  = fault.ErrCorrupt  // the bytes are damaged
	ErrNotFound = fault.ErrNotFound // no such cell
	ErrSchema   = fault.ErrSchema   // a vector does not fit the file
	// ErrUnsupported: a feature, type, encoding or codec that this package does not know, or an
	// operation that the file does not support.
	ErrUnsupported = fault.ErrUnsupported
)
