package client

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurpc"
)

// RowError is a row that a server refused. The other rows of its request were written.
//
// errors.Is(err, ErrRow) is true for every RowError; errors.Is also reaches Cause.
type RowError struct {
	Op     Op
	Tablet string // its ID
	Key    string // as JSON
	// Cause is ErrKeyExists for an insert of a key that is present, ErrNotFound for an update or delete
	// of one that is absent, ErrImmutable, or another error with the server's text.
	Cause error
}

// Error describes the row.
func (e *RowError) Error() string {
	return fmt.Sprintf("tablet %s: %s of row %s: %v", e.Tablet, e.Op, e.Key, e.Cause)
}

// Unwrap makes both ErrRow and the cause visible to errors.Is.
func (e *RowError) Unwrap() []error { return []error{fault.ErrRow, e.Cause} }

// rowCause returns the error of a status of a row.
func rowCause(status *kudupb.AppStatusPB) error {
	cause := fault.ErrRow
	switch kudurpc.Status(status.GetCode()) {
	case kudurpc.AlreadyPresent:
		cause = fault.ErrKeyExists
	case kudurpc.NotFound:
		cause = fault.ErrNotFound
	case kudurpc.Immutable:
		cause = ErrImmutable
	}
	return fmt.Errorf("%s (%s): %w", status.GetMessage(), kudurpc.Status(status.GetCode()), cause)
}
