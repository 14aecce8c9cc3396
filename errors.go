package oribi

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that a caller can act on. Test for them with errors.Is: each is wrapped in an error that
// names the store, table, column, key, or position in a file.
var (
	ErrNotFound  = fault.ErrNotFound  // no row with the key
	ErrNoTable   = fault.ErrNoTable   // the store has no table of that name, or it was dropped
	ErrNoColumn  = fault.ErrNoColumn  // the table has no column of that name
	ErrKeyExists = fault.ErrKeyExists // an insert of a key that exists
	ErrNotUnique = fault.ErrNotUnique // a row with the values of another one in a unique index; errors.As finds the *NotUnique
	ErrExists    = fault.ErrExists    // a table of that name exists; a store exists where none may be
	ErrRow       = fault.ErrRow       // a row of a write batch was refused; errors.As finds the *RowError
	ErrSchema    = fault.ErrSchema    // a schema is not valid, or a struct or value does not fit it
	ErrTooOld    = fault.ErrTooOld    // a read below the history floor
	ErrFuture    = fault.ErrFuture    // a timestamp ahead of the clock

	// ErrConflict: a condition of a write batch is not met, rows that a transaction has read were
	// changed, or a column has another type.
	ErrConflict      = fault.ErrConflict
	ErrOverflow      = fault.ErrOverflow      // a sum of integers or decimals, or a product, is out of range
	ErrBatchTooLarge = fault.ErrBatchTooLarge // a write batch over its limit

	// ErrTransactionsFull: open transactions take all memory that they may, see Tx. The call may succeed
	// in a new transaction, after others have ended; the text says how long the oldest is open.
	ErrTransactionsFull = fault.ErrTransactionsFull

	ErrCorrupt     = fault.ErrCorrupt     // bytes on disk differ from what was written
	ErrUnsupported = fault.ErrUnsupported // a feature or a format that this program does not know
	ErrNotStore    = fault.ErrNotStore    // the directory does not contain a complete store
	ErrLocked      = fault.ErrLocked      // the store is open elsewhere, and cannot be shared
	ErrReadOnly    = fault.ErrReadOnly    // a write on a store opened read-only
	ErrPoisoned    = fault.ErrPoisoned    // an earlier write failed; the store is read-only from then on
	ErrClosed      = fault.ErrClosed      // the store or the iterator is closed

	// ErrNoSpace: the disk is full, up to the 16 MiB that are kept free. Nothing was changed.
	ErrNoSpace = fault.ErrNoSpace
)

// ErrCommitted is returned by a second Commit of a write batch if neither Reset nor an operation
// that begins the next batch comes in between.
var ErrCommitted = errors.New("the write batch was committed: Reset begins the next")

// RowError is a row of a write batch that was refused: its position, table, key, column, and cause.
type RowError = change.RowError

// NotUnique is the cause of a RowError that wraps ErrNotUnique.
type NotUnique = change.NotUnique

// callErr returns err as the error of a public call, see fault.Call.
func callErr(place string, err error) error { return fault.Call(place, err) }

// errTxConflict is the cause of an ErrConflict of a transaction.
var errTxConflict = fmt.Errorf("changed by another writer since the transaction began: %w", fault.ErrConflict)
