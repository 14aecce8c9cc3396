// Package fault defines the sentinel errors of the module.
//
// The root package and the public packages that return them re-export these values, so that
// errors.Is works whichever package a caller imports. Every other error wraps one of them with %w
// and adds the location, outermost first:
//
//	cfile: block 17: cblock at byte 4096: crc 1f2e3d4c, want 5a6b7c8d: corrupt
package fault

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: no row with the key.
	ErrNotFound = errors.New("not found")
	// ErrNoTable: the store has no table of that name, or it was dropped.
	ErrNoTable = errors.New("no such table")
	// ErrNoColumn: the table has no column of that name.
	ErrNoColumn = errors.New("no such column")
	// ErrKeyExists: an insert met a live row with the same key.
	ErrKeyExists = errors.New("key exists")
	// ErrNotUnique: two rows would have the same values in the columns of a unique index.
	ErrNotUnique = errors.New("not unique")
	// ErrExists: a table or column of that name exists.
	ErrExists = errors.New("exists already")
	// ErrRow: a row of a write batch was refused; errors.As gives the *change.RowError.
	ErrRow = errors.New("bad row")
	// ErrSchema: a schema breaks a rule.
	ErrSchema = errors.New("bad schema")
	// ErrTooOld: a read below the history floor.
	ErrTooOld = errors.New("timestamp is before the history that is kept")
	// ErrFuture: a timestamp too far ahead of the clock.
	ErrFuture = errors.New("timestamp is ahead of the clock")
	// ErrConflict: a condition of a write batch is not met.
	ErrConflict = errors.New("conflict")
	// ErrOverflow: a number is out of range.
	ErrOverflow = errors.New("out of range")
	// ErrBatchTooLarge: a write batch over its size limit.
	ErrBatchTooLarge = errors.New("write batch too large")
	// ErrTransactionsFull: open transactions take all memory that they may.
	ErrTransactionsFull = errors.New("the memory of transactions is full")
	// ErrCorrupt: bytes on disk differ from the bytes that were written.
	ErrCorrupt = errors.New("corrupt")
	// ErrUnsupported: a feature or format version this program does not know.
	ErrUnsupported = errors.New("unsupported")
	// ErrNotStore: the directory is not a store, or only half of one.
	ErrNotStore = errors.New("not a store")
	// ErrLocked: another opener holds the store.
	ErrLocked = errors.New("locked")
	// ErrReadOnly: a write on a store opened read-only.
	ErrReadOnly = errors.New("opened read-only")
	// ErrPoisoned: an earlier write failed in a way that makes further writes unsafe.
	ErrPoisoned = errors.New("store is read-only after a failed write")
	// ErrNoSpace: the disk is full; nothing was changed, the call may be tried again.
	ErrNoSpace = errors.New("no space left")
	// ErrClosed: the store, iterator or batch was closed.
	ErrClosed = errors.New("closed")
	// ErrCellLimit: a cell is longer than Options.CellLimit. The packages that return it do not
	// re-export it: it is part of ErrRow.
	ErrCellLimit = errors.New("cell too long")
)

// CellTooLong returns ErrCellLimit for a cell of n bytes.
func CellTooLong(n, limit int) error {
	return Reworded(ErrCellLimit, "%d bytes, limit %d (Options.CellLimit)", n, limit)
}

// Corruptf returns an error with the given text that wraps ErrCorrupt.
func Corruptf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrCorrupt)...)
}

// Unsupportedf returns an error with the given text that wraps ErrUnsupported.
func Unsupportedf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
}

// Reworded returns an error with the given text alone that wraps kind, for a cause that the text of
// kind does not describe.
func Reworded(kind error, format string, args ...any) error {
	return &reworded{fmt.Sprintf(format, args...), kind}
}

type reworded struct {
	text string
	kind error
}

func (e *reworded) Error() string { return e.text }
func (e *reworded) Unwrap() error { return e.kind }
