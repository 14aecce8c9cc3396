package delta

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // the bytes are not a delta file, or a damaged one
	ErrUnsupported = fault.ErrUnsupported // a feature that this package does not know
)
