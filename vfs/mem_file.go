package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/internal/fault"
)

// memFile is an open file of a Mem. The node outlives its names.
type memFile struct {
	m      *Mem
	n      *memNode
	name   string
	write  bool
	closed bool // guarded by m.mu
}

// check returns an error if the file is closed or may not be written. The caller holds m.mu.
func (f *memFile) check(write bool) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case write && !f.write:
		return errors.New("opened for reading only")
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	err := f.check(false)
	if err == nil && off < 0 {
		err = fs.ErrInvalid
	}
	if err != nil {
		return 0, pathError("read", f.name, err)
	}
	n := f.n.data.readAt(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// change runs fn on the content under the lock.
func (f *memFile) change(op string, off, n int64, fn func(c *content)) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.check(true)
	if err == nil && (off < 0 || n < 0) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return pathError(op, f.name, err)
	}
	fn(&f.n.data)
	return nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.change("write", off, 0, func(c *content) { c.writeAt(b, off) }); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *memFile) Truncate(size int64) error {
	return f.change("truncate", size, 0, func(c *content) { c.truncate(size) })
}

func (f *memFile) PunchHole(off, n int64) error {
	return f.change("punch hole", off, max(n, 0), func(c *content) { c.zero(off, min(off+n, c.size)) })
}

// CloneRange implements Cloner, by a copy.
func (f *memFile) CloneRange(src File, srcOff, off, n int64) error {
	from, ok := src.(*memFile)
	if !ok || from.m != f.m {
		return fault.Unsupportedf("clone a range of another file system")
	}
	const block = 4096
	if srcOff%block != 0 || off%block != 0 || n%block != 0 {
		return fault.Unsupportedf("clone %d bytes at %d to %d: not multiples of %d", n, srcOff, off, block)
	}
	b := make([]byte, n)
	if _, err := from.ReadAt(b, srcOff); err == io.EOF {
		return fault.Unsupportedf("clone %d bytes at %d: they are not all in the file", n, srcOff)
	} else if err != nil {
		return err
	}
	_, err := f.WriteAt(b, off)
	return err
}

func (f *memFile) Preallocate(off, n int64) error {
	return f.change("preallocate", off, max(n, 0), func(*content) {})
}

// Map implements Mapper.
func (f *memFile) Map(off, n int64) (Window, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	err := f.check(true)
	if err == nil && (off < 0 || n <= 0 || f.n.data.size < off+n) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, pathError("map", f.name, err)
	}
	return &memWindow{f.m, f.n, f.name, off, off + n}, nil
}

// memWindow is a window. It outlives the opening of the file.
type memWindow struct {
	m        *Mem
	n        *memNode
	name     string
	off, end int64
}

func (w *memWindow) Copy(b []byte, off int64) error {
	end := off + int64(len(b))
	if off < w.off || end > w.end {
		return pathError("copy", w.name, fs.ErrInvalid)
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if end > w.n.data.size {
		return pathError("copy", w.name, errShorter)
	}
	w.n.data.writeAt(b, off)
	return nil
}

func (w *memWindow) Close() error {
	w.end = w.off
	return nil
}

var errShorter = errors.New("the file ends before the window")

func (f *memFile) Size() (int64, error) {
	f.m.mu.RLock()
	defer f.m.mu.RUnlock()
	return f.n.data.size, pathError("stat", f.name, f.check(false))
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check(false); err != nil {
		return pathError("sync", f.name, err)
	}
	f.n.sync()
	return nil
}

func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check(false); err != nil {
		return pathError("close", f.name, err)
	}
	f.closed = true
	return nil
}

// Lock implements FS.
func (m *Mem) Lock(name string, mode LockMode) (Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(name)
	if mode == LockCreate && errors.Is(err, fs.ErrNotExist) {
		n, err = m.add(name, &memNode{})
	}
	if err == nil && n.isDir() {
		err = fmt.Errorf("directory is %w", ErrNotRegular)
	}
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	exclusive := mode != LockShared
	if n.locks < 0 || exclusive && n.locks > 0 {
		return nil, fmt.Errorf("vfs: lock %s: %w", name, fault.ErrLocked)
	}
	if exclusive {
		n.locks = -1
	} else {
		n.locks++
	}
	return &memLock{memFile: memFile{m: m, n: n, name: name, write: exclusive}}, nil
}

// memLock is a lock and its open file.
type memLock struct {
	memFile
}

func (l *memLock) Write(text []byte) error {
	return l.change("write", 0, 0, func(c *content) {
		c.truncate(0)
		c.writeAt(text, 0)
	})
}

func (l *memLock) Read() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(&l.memFile, 0, lockContentMax))
}

func (l *memLock) Check() error {
	l.m.mu.RLock()
	defer l.m.mu.RUnlock()
	if n, err := l.m.find(l.name); err != nil || n != l.n {
		return fmt.Errorf("vfs: lock %s: %w", l.name, errReplaced)
	}
	return nil
}

func (l *memLock) Close() error {
	if err := l.memFile.Close(); err != nil {
		return err
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.write {
		l.n.locks = 0
	} else {
		l.n.locks--
	}
	return nil
}
