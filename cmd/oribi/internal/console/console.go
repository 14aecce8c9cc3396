// Package console is one run of the command as its verbs see it: its input, its output in the forms
// table, CSV, and JSON, its terminal, and its progress.
package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Console is one run of the command.
type Console struct {
	Stdin   io.Reader
	Stdout  *Stdout
	Stderr  io.Writer
	File    *os.File // stdout itself, to find out whether it is a terminal
	ErrFile *os.File // stderr itself, to find out whether it is a terminal
	Quiet   bool     // --quiet: no progress
	HelpErr error    // from printing the help that --help requests
	Started bool     // a verb runs; earlier errors are errors of the command line
}

// Stdout is where data is printed. Once its reader has gone, every write returns ErrReaderGone.
type Stdout struct{ Out io.Writer }

func (o *Stdout) Write(p []byte) (int, error) {
	n, err := o.Out.Write(p)
	if isGone(err) {
		return n, exit.ErrReaderGone
	}
	if err != nil {
		return n, &exit.OutputError{Err: err}
	}
	return n, nil
}

// isGone reports whether err is the error of a write to a pipe without a reader.
func isGone(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // of Windows
	return errors.Is(err, syscall.EPIPE) ||
		runtime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

// Printf prints one record on stdout.
func (a *Console) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Stdout, format, args...)
	return err
}

// Findings counts what a check or a rescue reports, and prints it.
type Findings struct {
	N   int
	Err error // of printing, after which findings are only counted
}

// Print counts a finding, which print prints.
func (f *Findings) Print(print func() error) {
	if f.N++; f.Err == nil {
		f.Err = print()
	}
}

// Quote writes text as a JSON string.
func Quote(text string) []byte {
	return celltext.AppendQuoted(nil, []byte(strings.ToValidUTF8(text, "\ufffd")))
}
