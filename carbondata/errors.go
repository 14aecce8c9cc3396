package carbondata

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = fault.ErrCorrupt     // the bytes are not well-formed CarbonData
	ErrUnsupported = fault.ErrUnsupported // a version, type, encoding, or feature that this package does not read
)
