package console

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a stream, which may be nil, is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// usualWidth is the width assumed for a terminal that does not report its own.
const usualWidth = 80

// TerminalWidth is the number of columns of a terminal.
func TerminalWidth(f *os.File) int {
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width
	}
	return usualWidth
}
