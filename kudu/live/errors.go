package live

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/kudu/client"
)

// Errors that a caller can act on, besides the errors of packages oribi and client. Test for them with
// errors.Is.
var (
	ErrCorrupt     = fault.ErrCorrupt     // the position of a copy is damaged
	ErrLocked      = fault.ErrLocked      // another process makes the copy
	ErrUnsupported = fault.ErrUnsupported // Kudu cannot have it, see Unsuitable

	// ErrOtherTable: the table at the other end is not the one of the copy so far: it was dropped and
	// made again, or it belongs to another cluster.
	ErrOtherTable = errors.New("not the table of the copy so far")
	// ErrRefused: the cluster refused rows. RowsError has them.
	ErrRefused = errors.New("the cluster refused rows")
)

// RowsError has the rows that a cluster refused. The copy has not gone on past them.
type RowsError struct {
	Table string
	Rows  []*client.RowError
	More  int64 // rows that are not in Rows
}

// shownRows is how many rows the text of a RowsError has.
const shownRows = 5

// Error describes the first rows.
func (e *RowsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %q: %v: %d", e.Table, ErrRefused, int64(len(e.Rows))+e.More)
	for i, r := range e.Rows {
		if i == shownRows {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; %v", r)
	}
	return b.String()
}

// Unwrap makes ErrRefused and the rows visible to errors.Is and errors.As.
func (e *RowsError) Unwrap() []error {
	all := []error{ErrRefused}
	for _, r := range e.Rows {
		all = append(all, r)
	}
	return all
}

func refused(table string, f *client.Flushed) error {
	if len(f.RowErrors) == 0 && f.More == 0 {
		return nil
	}
	return &RowsError{Table: table, Rows: f.RowErrors, More: f.More}
}

func unsupported(format string, args ...any) error { return fault.Unsupportedf(format, args...) }
