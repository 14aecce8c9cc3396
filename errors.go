package oribi

import (
	"errors"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that a caller can act on, for errors.Is. Each is wrapped with the place where it happened.
var (
	ErrNotFound      = fault.ErrNotFound      // no row with the key
	ErrNoTable       = fault.ErrNoTable       // the store has no table of that name, or it was dropped
	ErrNoColumn      = fault.ErrNoColumn      // the table has no column of that name
	ErrKeyExists     = fault.ErrKeyExists     // an insert met a live row with its key
	ErrExists        = fault.ErrExists        // a table of that name exists; a store exists where none may be
	ErrRow           = fault.ErrRow           // a row of a write batch was refused: errors.As gives the *RowError
	ErrSchema        = fault.ErrSchema        // a schema breaks a rule
	ErrTooOld        = fault.ErrTooOld        // a read below the history floor
	ErrFuture        = fault.ErrFuture        // a timestamp ahead of the clock
	ErrConflict      = fault.ErrConflict      // a condition of a write batch does not hold
	ErrBatchTooLarge = fault.ErrBatchTooLarge // a write batch over its limit
	ErrCorrupt       = fault.ErrCorrupt       // bytes on disk are not what was written
	ErrUnsupported   = fault.ErrUnsupported   // a feature or a format that this program does not know
	ErrNotStore      = fault.ErrNotStore      // the directory is no store, or half of one
	ErrLocked        = fault.ErrLocked        // another opener holds the store
	ErrReadOnly      = fault.ErrReadOnly      // a write on a store opened read-only
	ErrPoisoned      = fault.ErrPoisoned      // an earlier write failed; the store is read-only from there on
	ErrNoSpace       = fault.ErrNoSpace       // the disk is full, up to the 16 MiB that are kept free; nothing was changed
	ErrClosed        = fault.ErrClosed        // the store or the iterator is closed
)

// ErrCommitted is returned by a second Commit of a write batch without a Reset in between.
var ErrCommitted = errors.New("the write batch was committed: Reset begins the next")

// RowError is a row of a write batch that was refused: its position, table, key, column, and cause.
type RowError = change.RowError
