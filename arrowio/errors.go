package arrowio

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/oribi-db/oribi"
)

// Errors that callers can act on, for errors.Is. They are the values that package oribi exports
// under the same names.
var (
	ErrCorrupt     = oribi.ErrCorrupt     // the bytes are not well-formed Arrow or Parquet
	ErrUnsupported = oribi.ErrUnsupported // a type or a feature that this package does not convert or read
	ErrNoColumn    = oribi.ErrNoColumn    // no column of that name
	ErrSchema      = oribi.ErrSchema      // columns or types that do not fit
	ErrRow         = oribi.ErrRow         // a value that a column cannot represent exactly
	ErrConflict    = oribi.ErrConflict    // the table was altered before the scan began
	ErrClosed      = oribi.ErrClosed      // a file that was closed, or a stream that was read before
)

// ColumnError names a column that cannot be converted, or one in which a value cannot.
type ColumnError struct {
	Column string
	Row    int64 // of the value, from 0 over all rows read or written so far; −1 for the column as a whole
	Err    error
}

// Error names the column and the row, counted from 1.
func (e *ColumnError) Error() string {
	if e.Row < 0 {
		return fmt.Sprintf("column %q: %v", e.Column, e.Err)
	}
	return fmt.Sprintf("row %d: column %q: %v", e.Row+1, e.Column, e.Err)
}

func (e *ColumnError) Unwrap() error { return e.Err }

// columnErrorf returns the error of a column as a whole.
func columnErrorf(column, format string, args ...any) *ColumnError {
	return &ColumnError{Column: column, Row: -1, Err: fmt.Errorf(format, args...)}
}

// cellError is the error of one cell of an array or a vector.
type cellError struct {
	cell int
	err  error
}

func (e *cellError) Error() string { return fmt.Sprintf("cell %d: %v", e.cell, e.err) }
func (e *cellError) Unwrap() error { return e.err }

func cellErrorf(cell int, format string, args ...any) error {
	return &cellError{cell, fmt.Errorf(format+": %w", append(args, ErrRow)...)}
}

// in returns err as a ColumnError. The first cell of the column's batch is in row base, so a
// *cellError for cell i becomes an error of row base+i.
func in(column string, base int64, err error) error {
	var cell *cellError
	var done *ColumnError
	switch {
	case err == nil || errors.As(err, &done):
		return err
	case errors.As(err, &cell):
		return &ColumnError{Column: column, Row: base + int64(cell.cell), Err: cell.err}
	}
	return &ColumnError{Column: column, Row: -1, Err: err}
}

// wrap returns err with the prefix of this package.
func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("arrowio: %w", err)
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrCorrupt)...)
}

// damage returns an error of arrow-go while it read a file: ErrCorrupt, unless it is one of the
// caller's reader, which source has noted.
func damage(err error, source *source) error {
	switch {
	case err == nil:
		return nil
	case source != nil && source.err != nil:
		return source.err
	}
	for _, known := range []error{ErrCorrupt, ErrUnsupported, ErrRow, ErrSchema} {
		if errors.Is(err, known) {
			return ours(err, known)
		}
	}
	if errors.Is(err, arrow.ErrNotImplemented) {
		return unsupportedf("%v", err)
	}
	for _, text := range panicTexts {
		if strings.Contains(err.Error(), text) {
			return errMalformed
		}
	}
	return corruptf("%v", err)
}

// errMalformed is the error of bytes of which arrow-go does not say what is wrong with them.
var errMalformed = corruptf("the data is not well-formed")

// panicTexts are parts of errors that arrow-go makes of panics.
var panicTexts = []string{"runtime error", "interface conversion", "unknown error"}

// ours returns what is in an error of arrow-go around one of this package.
func ours(err, known error) error {
	for strings.HasPrefix(err.Error(), "arrow/") {
		in := errors.Unwrap(err)
		if in == nil || in == known || !errors.Is(in, known) {
			break
		}
		err = in
	}
	return err
}

// guard turns a panic of arrow-go about the bytes of a file into an error. It is deferred. arrow-go
// checks many lengths only by slicing, so errors of the runtime are among them: their texts say
// nothing to a user.
func guard(err *error, source *source) {
	r := recover()
	if r == nil {
		return
	}
	e, ok := r.(error)
	switch {
	case source != nil && source.err != nil:
		*err = source.err
	case ok && (errors.Is(e, ErrCorrupt) || errors.Is(e, ErrUnsupported) || errors.Is(e, arrow.ErrNotImplemented)):
		*err = damage(e, nil)
	default:
		*err = errMalformed
	}
}

// source is the caller's reader. It notes the first error other than the end of the data, since
// arrow-go does not wrap all of them.
type source struct {
	io.ReaderAt
	io.Reader
	err error
}

func (s *source) note(err error) {
	if err != nil && s.err == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p, off)
	s.note(err)
	return n, err
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.note(err)
	return n, err
}

func unsupportedf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
}
