package work

import (
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/vfs"
)

// countingFS counts the syncs of files and directories, and measures their time.
type countingFS struct {
	vfs.FS
	syncs  atomic.Int64
	waited atomic.Int64 // nanoseconds
}

func (c *countingFS) reset() {
	c.syncs.Store(0)
	c.waited.Store(0)
}

// count counts one call.
func (c *countingFS) count(sync func() error) error {
	begin := time.Now()
	err := sync()
	c.waited.Add(int64(time.Since(begin)))
	c.syncs.Add(1)
	return err
}

func (c *countingFS) Create(name string) (vfs.File, error) { return c.file(c.FS.Create(name)) }

func (c *countingFS) Open(name string, write bool) (vfs.File, error) {
	return c.file(c.FS.Open(name, write))
}

func (c *countingFS) SyncDir(dir string) error {
	return c.count(func() error { return c.FS.SyncDir(dir) })
}

func (c *countingFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &countingFile{f, c}, nil
}

type countingFile struct {
	vfs.File
	fs *countingFS
}

func (f *countingFile) Sync() error { return f.fs.count(f.File.Sync) }
