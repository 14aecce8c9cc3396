package client

import (
	"errors"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudurpc"
)

// Errors that a caller can act on. Test for them with errors.Is.
var (
	ErrClosed      = fault.ErrClosed      // the client was closed
	ErrCorrupt     = fault.ErrCorrupt     // a server sent bytes that are no valid answer
	ErrExists      = fault.ErrExists      // a table of that name exists
	ErrFuture      = fault.ErrFuture      // a timestamp ahead of the servers' clocks
	ErrKeyExists   = fault.ErrKeyExists   // an insert of a row that is present
	ErrNotFound    = fault.ErrNotFound    // an update or delete of a row that is absent
	ErrRow         = fault.ErrRow         // a row was refused
	ErrNoColumn    = fault.ErrNoColumn    // the table has no column of that name
	ErrNoTable     = fault.ErrNoTable     // the cluster has no table of that name, or it was deleted
	ErrSchema      = fault.ErrSchema      // a schema or partitioning breaks a rule
	ErrTooOld      = fault.ErrTooOld      // a timestamp before the history that the servers keep
	ErrUnsupported = fault.ErrUnsupported // a feature that the servers or this client do not have

	// ErrUnauthorized: the servers refuse the user, or what the user does.
	ErrUnauthorized = kudurpc.ErrUnauthorized
	// ErrNotCovered: no range partition of the table has the row's key.
	ErrNotCovered = errors.New("no range partition covers the key")
	// ErrImmutable: an update of an immutable column, or an upsert that gives one of a row that is present.
	ErrImmutable = errors.New("the column is immutable")
	// ErrUnknownOutcome: a call that must not be repeated was sent, and its answer was lost.
	ErrUnknownOutcome = errors.New("it is unknown whether the call was carried out")
)
