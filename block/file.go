package block

import (
	"errors"
	"io/fs"
	"os"
)

// File is a Source that reads a single file as the block with ID 0.
//
// Its size is the file's size at the time of OpenFile. Close it after the last read.
type File struct {
	f    *os.File
	size int64
}

// OpenFile opens a regular file for reading. It refuses other files, such as directories and pipes,
// which do not support repeated reads at any offset. It returns errors of package os.
func OpenFile(name string) (*File, error) {
	info, err := os.Stat(name) // opening a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, err
	}
	return &File{f, info.Size()}, nil
}

var errNotRegular = errors.New("not a regular file")

// ReadAt follows io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

// ID returns 0.
func (f *File) ID() ID { return 0 }

// Size returns the length in bytes.
func (f *File) Size() int64 { return f.size }

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }
