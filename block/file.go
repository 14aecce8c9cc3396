package block

import (
	"fmt"
	"os"
)

// File is a loose file taken for a block: a Source with the number 0.
//
// Its length is what it was when it was opened. Whoever opened it closes it, after all readers.
type File struct {
	f    *os.File
	size int64
}

// OpenFile opens a regular file for reading. Anything else (a directory, a pipe) is refused: it
// cannot be read at any place, again and again. Errors: those of package os.
func OpenFile(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{f, info.Size()}, nil
}

// ReadAt follows io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

// ID is 0, the number of loose files.
func (f *File) ID() ID { return 0 }

// Size is the length in bytes.
func (f *File) Size() int64 { return f.size }

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }
