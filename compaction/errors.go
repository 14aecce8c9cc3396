package compaction

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt  = fault.ErrCorrupt  // an input's bytes differ from the bytes that were written
	ErrNotFound = fault.ErrNotFound // no such rowset or column
)
