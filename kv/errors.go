package kv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/operand"
)

// Errors that a caller can act on, besides the errors of package oribi. Test for them with
// errors.Is.
var (
	ErrNotFound       = oribi.ErrNotFound // no such key
	ErrBucketNotFound = oribi.ErrNoTable  // no such bucket
	ErrBucketExists   = oribi.ErrExists   // there is a bucket or another table of that name
	ErrConflict       = oribi.ErrConflict // what a transaction has read was changed
	ErrTxEnded        = oribi.ErrTxEnded  // the transaction was committed or rolled back

	// ErrNotCounter is returned by Add for a value that is not a counter.
	ErrNotCounter = operand.ErrNotCounter
	// ErrNotBucket is returned for the name of a table that has other columns than a bucket.
	ErrNotBucket = errors.New("not a bucket")
	// ErrTxNotWritable is returned by writes in a transaction that only reads.
	ErrTxNotWritable = errors.New("the transaction is read-only")
)

// bucketError is an error about the name of a bucket. Its text says bucket where the text of the
// cause says table.
type bucketError struct {
	text  string
	cause error
}

func (e *bucketError) Error() string { return e.text }

func (e *bucketError) Unwrap() error { return e.cause }

// noBucket returns the error for a name that no table has.
func (db *DB) noBucket(name string, cause error) error {
	e := &bucketError{fmt.Sprintf("kv: bucket %q: no such bucket", name), cause}
	for i, b := range db.Buckets() {
		switch {
		case i == 0:
			e.text += "; there is "
		case i == mostNamed:
			e.text += ", …"
			return e
		default:
			e.text += ", "
		}
		e.text += strconv.Quote(b.Name())
	}
	return e
}

// mostNamed is the number of buckets that an error names.
const mostNamed = 5

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
