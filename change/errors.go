package change

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt = fault.ErrCorrupt // the bytes of a list or an image are damaged
	ErrRow     = fault.ErrRow     // a row of a write batch was refused: errors.As gives the *RowError

	// ErrNotUnique: two rows would have the same values in the columns of a unique index.
	ErrNotUnique = fault.ErrNotUnique
)
