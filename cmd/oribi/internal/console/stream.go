package console

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

// OpenInput opens a file for reading: "-" is stdin, and a file whose name ends in .gz is unpacked.
// Its errors are *fs.PathError.
func (a *Console) OpenInput(name string) (io.ReadCloser, error) { return a.OpenCounted(name, nil) }

// OpenCounted is OpenInput with a bar: its total is the file's size, and it advances by the bytes
// read from the file, packed or not.
func (a *Console) OpenCounted(name string, bar *progress.Bar) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(&counted{a.Stdin, bar}), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}
	case info.Mode().IsRegular():
		bar.SetTotal(info.Size())
	}
	in := &counted{f, bar}
	if err == nil && info.Mode().IsRegular() {
		in.Reader = &whole{f, info.Size()}
	}
	if !strings.HasSuffix(name, ".gz") {
		return &plain{in, f}, nil
	}
	z, err := unpack(in, f)
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "decompress", Path: name, Err: err}
	}
	return z, nil
}

// whole is a file that must have as many bytes as when it was opened: it may be truncated while it
// is read.
type whole struct {
	io.Reader
	left int64
}

var errShrunk = errors.New("the file became shorter while it was read")

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.left -= int64(n); err == io.EOF && w.left > 0 {
		err = errShrunk
	}
	return n, err
}

// plain is a file that is not unpacked.
type plain struct {
	io.Reader
	io.Closer
}

// maxWholeBytes bounds a file that is read into memory as a whole, such as a schema.
const maxWholeBytes = 4 << 20

// ReadInput reads a small file completely.
func (a *Console) ReadInput(name string) ([]byte, error) {
	in, err := a.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxWholeBytes+1))
	if err == nil && len(text) > maxWholeBytes {
		err = fmt.Errorf("larger than %d bytes", maxWholeBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
