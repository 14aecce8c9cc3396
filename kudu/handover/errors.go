package handover

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt  = fault.ErrCorrupt  // files are damaged or missing
	ErrLocked   = fault.ErrLocked   // the server is running
	ErrNotFound = fault.ErrNotFound // there is no such tablet
	ErrNotStore = fault.ErrNotStore // the directory is not one of a Kudu server
	// the table has types or features that Kudu 1.18 does not know
	ErrUnsupported = fault.ErrUnsupported
)
