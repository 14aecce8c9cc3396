package cli

import (
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

// bar begins to show progress on stderr. Without a terminal there, and with --quiet, it is nil,
// which is a bar that nobody sees. Out and Width of o are filled in. The caller stops it before
// anything else is printed.
func (a *app) bar(o progress.Options) *progress.Bar {
	if a.quiet || !isTerminal(a.errFile) {
		return nil
	}
	o.Out = a.errFile
	o.Width = func() int { return terminalWidth(a.errFile) }
	return progress.Start(o)
}

// counted is an input that tells a bar how much of it was read.
type counted struct {
	io.Reader
	bar *progress.Bar
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bar.Add(int64(n))
	return n, err
}
