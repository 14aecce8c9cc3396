package hfile

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi/vfs"
)

// FileWriter is a Writer of a file, which appears under its name, complete and durable, at Finish.
// Until then the bytes are in a file with a temporary name, in the same directory. Either Finish or
// Abort must be called.
type FileWriter struct {
	*Writer
	name, tmp string
	f         *os.File // nil once it is closed
	buf       *bufio.Writer
}

// fileBufferBytes is the memory between a Writer and its file. Larger blocks bypass it.
const fileBufferBytes = 64 << 10

// Create returns a writer of a new file. An existing name is an error (fs.ErrExist), here and in
// Finish. Errors: those of NewWriter and of package os.
func Create(name string, o WriterOptions) (*FileWriter, error) {
	if err := mustNotExist(name); err != nil {
		return nil, fmt.Errorf("hfile: %w", err)
	}
	w := &FileWriter{name: name, buf: bufio.NewWriterSize(nil, fileBufferBytes)}
	var err error
	if w.Writer, err = NewWriter(w.buf, o); err != nil {
		return nil, err
	}
	if err := w.createTemporary(); err != nil {
		return nil, fmt.Errorf("hfile: %w", err)
	}
	w.buf.Reset(w.f)
	return w, nil
}

func mustNotExist(name string) error {
	_, err := os.Lstat(name)
	if err == nil {
		return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// createTemporary creates the file with the temporary name, readable as the process's umask says:
// other programs read HFiles.
func (w *FileWriter) createTemporary() (err error) {
	for range 100 {
		w.tmp = filepath.Join(filepath.Dir(w.name), fmt.Sprintf(".hfile-%08x.tmp", rand.Uint32()))
		w.f, err = os.OpenFile(w.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// Finish completes the file and gives it its name. After an error there is no file. The writer
// takes no more calls: they return ErrClosed.
func (w *FileWriter) Finish() error {
	if w.f == nil {
		return w.Writer.Finish() // why it is closed
	}
	err := w.Writer.Finish()
	if err == nil {
		err = w.publish()
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

// publish makes the bytes durable, and then the name.
//
//  1. The temporary file is synced. A crash here leaves only that.
//  2. It gets its name; the temporary one is removed.
//  3. The directory is synced.
func (w *FileWriter) publish() error {
	err := w.buf.Flush()
	if err == nil {
		err = w.f.Sync()
	}
	if closeErr := w.f.Close(); err == nil {
		err = closeErr
	}
	w.f = nil
	if err == nil {
		err = w.rename()
	}
	if err == nil {
		w.tmp = ""
		if err = vfs.OS.SyncDir(filepath.Dir(w.name)); err != nil {
			os.Remove(w.name)
		}
	}
	if err != nil {
		return fmt.Errorf("hfile: %w", err)
	}
	return nil
}

// rename gives the file its name unless there is a file of that name. A link does that in one step;
// some file systems have none.
func (w *FileWriter) rename() error {
	err := os.Link(w.tmp, w.name)
	switch {
	case err == nil:
		return os.Remove(w.tmp)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if err := mustNotExist(w.name); err != nil {
		return err
	}
	return os.Rename(w.tmp, w.name)
}

// Abort gives up the file: it removes what was written. After Finish, or a second time, it does
// nothing, so that it can be deferred.
func (w *FileWriter) Abort() error {
	if w.Writer.err == nil {
		w.Writer.fail(fmt.Errorf("hfile: writer: %w", ErrClosed))
	}
	if w.f != nil {
		w.f.Close()
		w.f = nil
	}
	if w.tmp == "" {
		return nil
	}
	err := os.Remove(w.tmp)
	w.tmp = ""
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hfile: %w", err)
	}
	return nil
}
