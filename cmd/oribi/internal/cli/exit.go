package cli

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
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDamage      = 3
	exitMissing     = 4
	exitLocked      = 5
	exitRefused     = 6
	exitInterrupted = 130
)

// failure is an error whose exit code does not follow from the error itself.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// withCode returns an error with an exit code of its own.
func withCode(code int, err error) error { return &failure{code, err} }

// usage reports an error in the command line or in a schema file.
func usage(err error) error { return withCode(exitUsage, err) }

// exitCode returns the exit code for the result of a run.
func exitCode(err error) int {
	if err == nil || errors.Is(err, errReaderGone) {
		return exitDone
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(context.Canceled):
		return exitInterrupted
	case is(oribi.ErrCorrupt):
		return exitDamage
	case is(oribi.ErrLocked):
		return exitLocked
	}
	// In an input file, an unknown table or an absent row is a bad line, not a wrong command line.
	if _, ok := errors.AsType[*apply.LineError](err); ok || is(oribi.ErrRow) {
		return exitFailed
	}
	switch {
	case is(oribi.ErrNotStore), is(backup.ErrNotRepository), is(oribi.ErrNoTable),
		is(oribi.ErrNoColumn), is(oribi.ErrNotFound):
		return exitMissing
	case is(oribi.ErrFuture), is(oribi.ErrSchema):
		return exitUsage
	}
	return exitFailed
}

// message returns what stderr prints for err: one line of printable text, without the names of
// libraries. The command has the same name as one of them, which is printed once.
func message(err error, code int) string {
	if code == exitInterrupted {
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

// helped is an error with one more line, which names the next step.
type helped struct {
	err  error
	help string
}

func (h *helped) Error() string { return h.err.Error() }

func (h *helped) Unwrap() error { return h.err }

// withHelp adds a line to an error.
func withHelp(err error, help string) error { return &helped{err, help} }

// reportedError is an error with a report that is printed to stderr after it.
type reportedError struct {
	error
	report string
}

func (e *reportedError) Unwrap() error { return e.error }

// withReport adds a report to an error.
func withReport(err error, report string) error { return &reportedError{err, report} }

// errReaderGone means that the reader of our output has closed it, as head does. It is not a
// failure.
var errReaderGone = errors.New("the reader closed the output")

// outputError is a failure to write to stdout.
type outputError struct{ err error }

func (e *outputError) Error() string { return "output: " + e.err.Error() }

func (e *outputError) Unwrap() error { return e.err }
