package scan

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt = fault.ErrCorrupt // rows are not in order
	ErrSchema  = fault.ErrSchema  // a request does not fit the schema
)
