package batch

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt = fault.ErrCorrupt // the bytes of an array are damaged
	ErrSchema  = fault.ErrSchema  // a predicate or a vector does not fit its column
)
