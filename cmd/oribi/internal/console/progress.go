package console

import (
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

// Bar starts a progress bar on stderr. It returns nil, a bar that shows nothing, if stderr is not a
// terminal or with --quiet. It sets Out and Width of o. The caller must stop the bar before
// anything else is printed.
func (a *Console) Bar(o progress.Options) *progress.Bar {
	if a.Quiet || !IsTerminal(a.ErrFile) {
		return nil
	}
	o.Out = a.ErrFile
	o.Width = func() int { return TerminalWidth(a.ErrFile) }
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
