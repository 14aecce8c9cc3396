package cli

import (
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

// bar starts a progress bar on stderr. It returns nil, a bar that shows nothing, if stderr is not a
// terminal or with --quiet. It sets Out and Width of o. The caller must stop the bar before
// anything else is printed.
func (a *app) bar(o progress.Options) *progress.Bar {
	if a.quiet || !isTerminal(a.errFile) {
		return nil
	}
	o.Out = a.errFile
	o.Width = func() int { return terminalWidth(a.errFile) }
	return progress.Start(o)
}

// counted is an input that updates a bar with the number of bytes read.
type counted struct {
	io.Reader
	bar *progress.Bar
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bar.Add(int64(n))
	return n, err
}
