package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/oribi-db/oribi/internal/celltext"
)

// app is one run of the command.
type app struct {
	stdin   io.Reader
	stdout  *stdout
	stderr  io.Writer
	file    *os.File // stdout itself, to find out whether it is a terminal
	errFile *os.File // stderr itself, to find out whether it is a terminal
	quiet   bool     // --quiet: no progress
	helpErr error    // from printing the help that --help requests
	started bool     // a verb runs; earlier errors are errors of the command line
}

// stdout is where data is printed. Once its reader has gone, every write returns errReaderGone.
type stdout struct{ out io.Writer }

func (o *stdout) Write(p []byte) (int, error) {
	n, err := o.out.Write(p)
	if isGone(err) {
		return n, errReaderGone
	}
	if err != nil {
		return n, &outputError{err: err}
	}
	return n, nil
}

// isGone reports whether err is the error of a write to a pipe without a reader.
func isGone(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // of Windows
	return errors.Is(err, syscall.EPIPE) ||
		runtime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

// printf writes one record.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// quote writes text as a JSON string.
func quote(text string) []byte {
	return celltext.AppendQuoted(nil, []byte(strings.ToValidUTF8(text, "\ufffd")))
}
