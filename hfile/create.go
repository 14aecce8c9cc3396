package hfile

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/newfile"
)

// FileWriter is a Writer of a file, which appears under its name, complete and durable, at Finish.
// Until then the bytes are in a file with a temporary name, in the same directory. Either Finish or
// Abort must be called.
type FileWriter struct {
	*Writer
	file *newfile.File
	buf  *bufio.Writer
	done bool // after Finish or Abort
}

// fileBufferBytes is the memory between a Writer and its file. Larger blocks bypass it.
const fileBufferBytes = 64 << 10

// Create returns a writer of a new file. An existing name is an error (fs.ErrExist), here and in
// Finish. Errors: the errors of NewWriter and of package os.
func Create(name string, o WriterOptions) (*FileWriter, error) {
	w := &FileWriter{buf: bufio.NewWriterSize(nil, fileBufferBytes)}
	var err error
	if w.Writer, err = NewWriter(w.buf, o); err != nil {
		return nil, err
	}
	if w.file, err = newfile.Create(name); err != nil {
		return nil, fmt.Errorf("hfile: %w", err)
	}
	w.buf.Reset(w.file)
	return w, nil
}

// Finish completes the file and gives it its name. After an error there is no file. The writer
// takes no more calls: they return ErrClosed.
func (w *FileWriter) Finish() error {
	if w.done {
		return w.Writer.Finish() // why it is closed
	}
	err := w.Writer.Finish()
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	w.done = true
	if err = w.buf.Flush(); err == nil {
		err = w.file.Commit()
	} else {
		w.file.Abort()
	}
	if err != nil {
		return fmt.Errorf("hfile: %w", err)
	}
	return nil
}

// Abort gives up the file: it removes what was written. After Finish, or a second time, it does
// nothing, so that it can be deferred.
func (w *FileWriter) Abort() error {
	w.done = true
	if w.Writer.err == nil {
		w.Writer.fail(fmt.Errorf("hfile: writer: %w", ErrClosed))
	}
	if err := w.file.Abort(); err != nil {
		return fmt.Errorf("hfile: %w", err)
	}
	return nil
}
