package kv

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi"
)

// Errors that a caller can act on, besides those of package oribi. Test for them with errors.Is.
var (
	ErrNotFound       = oribi.ErrNotFound // no such key
	ErrBucketNotFound = oribi.ErrNoTable  // no such bucket
	ErrBucketExists   = oribi.ErrExists   // there is a bucket or another table of that name
	ErrConflict       = oribi.ErrConflict // what a transaction has read was changed
	ErrTxEnded        = oribi.ErrTxEnded  // the transaction was committed or rolled back

	// ErrNotBucket is returned for the name of a table that has other columns than a bucket.
	ErrNotBucket = errors.New("not a bucket")
	// ErrTxNotWritable is returned by writes in a transaction that only reads.
	ErrTxNotWritable = errors.New("the transaction is read-only")
)

// notBucket returns the error for a table of another form.
func notBucket(t *oribi.Table) error {
	var columns []string
	for i := range t.Schema().Columns {
		c := &t.Schema().Columns[i]
		columns = append(columns, c.Name+" "+c.TypeName())
	}
	return fmt.Errorf("kv: table %q with the columns %s: %w", t.Name(), strings.Join(columns, ", "), ErrNotBucket)
}

var (
	errEnded       = fmt.Errorf("kv: %w", ErrTxEnded)
	errNotWritable = fmt.Errorf("kv: %w", ErrTxNotWritable)
)
