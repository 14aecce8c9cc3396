package vfs

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrLocked      = fault.ErrLocked      // another process holds the lock
	ErrNoSpace     = fault.ErrNoSpace     // the disk is full
	ErrUnsupported = fault.ErrUnsupported // the file system cannot do it
)
