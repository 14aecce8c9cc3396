package lab

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/vfs"
)

// countFS counts what is read from files.
type countFS struct {
	vfs.FS
	reads, bytes atomic.Int64
}

// Open opens a file whose reads are counted.
func (c *countFS) Open(name string, write bool) (vfs.File, error) {
	f, err := c.FS.Open(name, write)
	if err != nil {
		return nil, err
	}
	return &countedFile{f, c}, nil
}

// countedFile is a file that counts its reads.
type countedFile struct {
	vfs.File
	count *countFS
}

func (f *countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.count.reads.Add(1)
	f.count.bytes.Add(int64(n))
	return n, err
}
