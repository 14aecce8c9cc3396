package schema

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt  = fault.ErrCorrupt  // the bytes of an array are damaged
	ErrExists   = fault.ErrExists   // two columns have the same name
	ErrNoColumn = fault.ErrNoColumn // there is no column of that name
	ErrSchema   = fault.ErrSchema   // a schema breaks a rule
)
