package change

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt = fault.ErrCorrupt // a list or an image is not what was written
	ErrRow     = fault.ErrRow     // a row of a write batch was refused: errors.As gives the *RowError
)
