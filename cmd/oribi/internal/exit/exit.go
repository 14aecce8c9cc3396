// Package exit has the exit codes of the command and the errors that determine them, with the hints
// and reports that are printed after the message.
package exit

import (
	"context"
	"errors"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Exit codes. Scripts rely on them.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	Damage      = 3
	Missing     = 4
	Locked      = 5
	Refused     = 6
	Interrupted = 130
)

// Failure is an error whose exit code does not follow from the error itself.
type Failure struct {
	code int
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// With returns an error with an exit code of its own.
func With(code int, err error) error { return &Failure{code, err} }

// Usage reports an error in the command line or in a schema file.
func Usage(err error) error { return With(Misused, err) }

// Code returns the exit code for the result of a run.
func Code(err error) int {
	if err == nil || errors.Is(err, ErrReaderGone) {
		return Done
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.code
	}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(context.Canceled):
		return Interrupted
	case is(oribi.ErrCorrupt):
		return Damage
	case is(oribi.ErrLocked):
		return Locked
	}
	// In an input file, an unknown table or an absent row is a bad line, not a wrong command line.
	if _, ok := errors.AsType[*apply.LineError](err); ok || is(oribi.ErrRow) {
		return Failed
	}
	switch {
	case is(oribi.ErrNotStore), is(backup.ErrNotRepository), is(oribi.ErrNoTable),
		is(oribi.ErrNoColumn), is(oribi.ErrNotFound):
		return Missing
	case is(oribi.ErrFuture), is(oribi.ErrSchema):
		return Misused
	}
	return Failed
}

// Message returns what stderr prints for err: one line of printable text, without the names of
// libraries. The command has the same name as one of them, which is printed once.
func Message(err error, code int) string {
	if code == Interrupted {
		return "interrupted"
	}
	text := strings.NewReplacer("\r", "", "\n", "; ").Replace(err.Error())
	text = strings.TrimSuffix(text, ": "+oribi.ErrSchema.Error()) // the message describes the fault
	for _, name := range libraryNames {
		text = without(text, name)
	}
	return celltext.Printable(text)
}

// libraryNames are the prefixes of the libraries' errors.
var libraryNames = []string{"oribi: ", "arrowio: "}

// without returns a text without a prefix of it or of its parts.
func without(text, prefix string) string {
	for at := 0; ; {
		i := strings.Index(text[at:], prefix)
		if i < 0 {
			return text
		}
		if at += i; at == 0 || strings.HasSuffix(text[:at], ": ") || strings.HasSuffix(text[:at], "; ") {
			text = text[:at] + text[at+len(prefix):]
		} else {
			at += len(prefix)
		}
	}
}

// Helped is an error with one more line, which names the next step.
type Helped struct {
	err  error
	Help string
}

func (h *Helped) Error() string { return h.err.Error() }

func (h *Helped) Unwrap() error { return h.err }

// WithHelp adds a line to an error.
func WithHelp(err error, help string) error { return &Helped{err, help} }

// Reported is an error with a report that is printed to stderr after it.
type Reported struct {
	error
	Report string
}

func (e *Reported) Unwrap() error { return e.error }

// WithReport adds a report to an error.
func WithReport(err error, report string) error { return &Reported{err, report} }

// ErrReaderGone means that the reader of our output has closed it, as head does. It is not a
// failure.
var ErrReaderGone = errors.New("the reader closed the output")

// OutputError is a failure to write to stdout.
type OutputError struct{ Err error }

func (e *OutputError) Error() string { return "output: " + e.Err.Error() }

func (e *OutputError) Unwrap() error { return e.Err }
