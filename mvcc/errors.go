package mvcc

import "github.com/oribi-db/oribi/internal/fault"

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrClosed   = fault.ErrClosed   // the publisher is closed
	ErrFuture   = fault.ErrFuture   // a timestamp too far ahead of the clock, or none left
	ErrPoisoned = fault.ErrPoisoned // an earlier write failed
)
