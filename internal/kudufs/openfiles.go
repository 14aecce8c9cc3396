package kudufs

import (
	"container/list"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// maxOpenFiles is the number of files with blocks that a directory keeps open: a server may have
// tens of thousands of containers, more than a process may have open files.
const maxOpenFiles = 256

// file is a file with blocks. Its fields except the name are guarded by openFiles.mu.
type file struct {
	name string

	blocks int           // that are open
	reads  int           // in progress; the file stays open meanwhile
	open   vfs.File      // nil: not open
	at     *list.Element // in openFiles.recent while it is open
}

// openFiles opens the files of open blocks when they are read, and closes the least recently read
// file when too many are open. More are open only while as many reads are in progress. Safe for
// concurrent use.
type openFiles struct {
	fs   vfs.FS
	most int // files to keep open

	mu     sync.Mutex
	recent list.List // of *file, the last used one first
}

// use begins the use of f by a block, which ends with release. It returns the size of f.
func (o *openFiles) use(f *file) (size int64, err error) {
	src, err := o.acquire(f)
	if err != nil {
		return 0, err
	}
	size, err = src.Size()
	o.mu.Lock()
	defer o.mu.Unlock()
	f.reads--
	if err == nil {
		f.blocks++
	} else if f.blocks == 0 && f.reads == 0 {
		o.close(f)
	}
	return size, err
}

// release ends the use of f by a block.
func (o *openFiles) release(f *file) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.blocks--; f.blocks > 0 || f.open == nil || f.reads > 0 {
		return nil
	}
	return o.close(f)
}

// close closes f. The caller has locked mu, and f is open.
func (o *openFiles) close(f *file) error {
	src := f.open
	o.recent.Remove(f.at)
	f.open, f.at = nil, nil
	return src.Close()
}

// acquire returns the open file of f, for a read that ends with f.reads--.
func (o *openFiles) acquire(f *file) (vfs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f.open != nil {
		o.recent.MoveToFront(f.at)
	} else {
		o.makeRoom()
		src, err := o.fs.Open(f.name, false)
		if err != nil {
			return nil, err
		}
		f.open, f.at = src, o.recent.PushFront(f)
	}
	f.reads++
	return f.open, nil
}

// makeRoom closes files so that one more may be opened. The caller has locked mu.
func (o *openFiles) makeRoom() {
	for e := o.recent.Back(); e != nil && o.recent.Len() >= o.most; {
		f := e.Value.(*file)
		e = e.Prev()
		if f.reads == 0 {
			o.close(f) // read-only: the error does not matter
		}
	}
}

// fileReader reads a file of which a block is open.
type fileReader struct {
	files *openFiles
	file  *file
}

// ReadAt implements io.ReaderAt. A file that was removed since its block was opened is ErrCorrupt.
func (r fileReader) ReadAt(b []byte, off int64) (int, error) {
	src, err := r.files.acquire(r.file)
	if err != nil {
		return 0, missing(r.file.name, err)
	}
	n, err := src.ReadAt(b, off)
	r.files.mu.Lock()
	r.file.reads--
	r.files.mu.Unlock()
	return n, err
}
