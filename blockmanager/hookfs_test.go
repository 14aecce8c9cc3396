package blockmanager

import (
	"io/fs"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// hookFS calls before ahead of everything that changes the disk, and after behind it. An error of
// before is the result of the call, which then does nothing.
type hookFS struct {
	inner  vfs.FS
	mu     sync.Mutex // held during hooks
	before func(op, name string) error
	after  func(op, name string)
}

func (h *hookFS) do(op, name string, fn func() error) error {
	if h.before != nil {
		h.mu.Lock()
		err := h.before(op, name)
		h.mu.Unlock()
		if err != nil {
			return err
		}
	}
	err := fn()
	if err == nil && h.after != nil {
		h.mu.Lock()
		h.after(op, name)
		h.mu.Unlock()
	}
	return err
}

func (h *hookFS) Create(name string) (f vfs.File, err error) {
	err = h.do("create", name, func() error {
		inner, err := h.inner.Create(name)
		f = &hookFile{inner, h, name}
		return err
	})
	return f, err
}

func (h *hookFS) Open(name string, write bool) (f vfs.File, err error) {
	open := func() error {
		inner, err := h.inner.Open(name, write)
		f = &hookFile{inner, h, name}
		return err
	}
	if write {
		err = h.do("open", name, open)
	} else {
		err = open()
	}
	return f, err
}

func (h *hookFS) Mkdir(name string) error {
	return h.do("mkdir", name, func() error { return h.inner.Mkdir(name) })
}

func (h *hookFS) Remove(name string) error {
	return h.do("remove", name, func() error { return h.inner.Remove(name) })
}

func (h *hookFS) Rename(a, b string) error {
	return h.do("rename", a, func() error { return h.inner.Rename(a, b) })
}

func (h *hookFS) SyncDir(name string) error {
	return h.do("syncdir", name, func() error { return h.inner.SyncDir(name) })
}

func (h *hookFS) List(dir string) ([]string, error)       { return h.inner.List(dir) }
func (h *hookFS) Stat(name string) (fs.FileInfo, error)   { return h.inner.Stat(name) }
func (h *hookFS) FreeBytes(dir string) int64              { return h.inner.FreeBytes(dir) }
func (h *hookFS) Lock(n string, x bool) (vfs.Lock, error) { return h.inner.Lock(n, x) }

type hookFile struct {
	vfs.File
	h    *hookFS
	name string
}

func (f *hookFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.h.do("write", f.name, func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *hookFile) Sync() error { return f.h.do("sync", f.name, f.File.Sync) }

func (f *hookFile) Truncate(size int64) error {
	return f.h.do("truncate", f.name, func() error { return f.File.Truncate(size) })
}

func (f *hookFile) Preallocate(off, n int64) error {
	return f.h.do("preallocate", f.name, func() error { return f.File.Preallocate(off, n) })
}

func (f *hookFile) PunchHole(off, n int64) error {
	return f.h.do("punch", f.name, func() error { return f.File.PunchHole(off, n) })
}
