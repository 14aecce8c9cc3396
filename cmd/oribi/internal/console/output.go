package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// MakeOutput creates or truncates the file that a flag names; - is stdout. It refuses the input
// file, which would be truncated before it is read.
func (a *Console) MakeOutput(flag, name, input, dir string) (io.WriteCloser, error) {
	if name == "-" {
		return &lastingOutput{a.Stdout}, nil
	}
	if out, err := os.Stat(name); err == nil {
		if in, err := statInput(a.Stdin, input); err == nil && os.SameFile(in, out) {
			return nil, exit.Usage(fmt.Errorf("--%s: %s is the input", flag, name))
		}
	}
	if err := instore.Check(vfs.OS, name, dir); err != nil {
		return nil, exit.Usage(fmt.Errorf("--%s: %w", flag, err))
	}
	return os.Create(name)
}

// statInput returns the file info of the input, also of a redirected stdin.
func statInput(stdin io.Reader, name string) (os.FileInfo, error) {
	if f, ok := stdin.(*os.File); ok && name == "-" {
		return f.Stat()
	}
	return os.Stat(name)
}

// lastingOutput ignores a closed reader: batches are applied even if their timestamps can no longer
// be printed.
type lastingOutput struct{ out *Stdout }

func (l *lastingOutput) Write(p []byte) (int, error) {
	n, err := l.out.Write(p)
	if errors.Is(err, exit.ErrReaderGone) {
		return len(p), nil
	}
	return n, err
}

func (l *lastingOutput) Close() error { return nil }

// NewFile creates a file that must not exist, and fills it. After an error the file is removed.
func NewFile(name string, fill func(out io.Writer) error) (err error) {
	if err := instore.Check(vfs.OS, name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			os.Remove(name)
		}
	}()
	out := bufio.NewWriterSize(f, 256<<10)
	if err := fill(out); err != nil {
		return err
	}
	return out.Flush()
}
