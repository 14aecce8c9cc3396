package prooftest

import (
	"io/fs"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// Change is one call that changes a file system: create, mkdir, remove, rename, syncdir, write, sync, truncate, preallocate, punch.
type Change struct {
	N    int // how many there were before
	Op   string
	Name string
	Half bool // the first half of a write is done
}

// Trap is a file system that tells of every change before it is made. Opening for reading, reading and locking are no changes.
type Trap struct {
	vfs.FS
	// Before is called before each change, one at a time. Its error becomes the result of the call, which then does nothing.
	Before func(Change) error
	// Halves has writes of two bytes and more done in two parts, with a call of Before between them.
	Halves bool

	mu sync.Mutex
	n  int
}

// Changes is how many changes there were.
func (t *Trap) Changes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

func (t *Trap) before(op, name string, half bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Change{N: t.n, Op: op, Name: name, Half: half}
	t.n++
	if t.Before == nil {
		return nil
	}
	return t.Before(c)
}

func (t *Trap) do(op, name string, fn func() error) error {
	if err := t.before(op, name, false); err != nil {
		return err
	}
	return fn()
}

// Create makes a file.
func (t *Trap) Create(name string) (f vfs.File, err error) {
	err = t.do("create", name, func() error {
		inner, err := t.FS.Create(name)
		f = &trapFile{inner, t, name}
		return err
	})
	return f, err
}

// Open opens a file. For writing it is no change yet.
func (t *Trap) Open(name string, write bool) (vfs.File, error) {
	f, err := t.FS.Open(name, write)
	if err != nil {
		return nil, err
	}
	return &trapFile{f, t, name}, nil
}

// Mkdir makes a directory.
func (t *Trap) Mkdir(name string) error {
	return t.do("mkdir", name, func() error { return t.FS.Mkdir(name) })
}

// Remove removes a file or an empty directory.
func (t *Trap) Remove(name string) error {
	return t.do("remove", name, func() error { return t.FS.Remove(name) })
}

// Rename renames.
func (t *Trap) Rename(from, to string) error {
	return t.do("rename", to, func() error { return t.FS.Rename(from, to) })
}

// SyncDir makes a directory's names durable.
func (t *Trap) SyncDir(name string) error {
	return t.do("syncdir", name, func() error { return t.FS.SyncDir(name) })
}

type trapFile struct {
	vfs.File
	t    *Trap
	name string
}

func (f *trapFile) WriteAt(p []byte, off int64) (n int, err error) {
	if err := f.t.before("write", f.name, false); err != nil {
		return 0, err
	}
	if half := len(p) / 2; f.t.Halves && half > 0 {
		if n, err := f.File.WriteAt(p[:half], off); err != nil {
			return n, err
		}
		if err := f.t.before("write", f.name, true); err != nil {
			return half, err
		}
	}
	return f.File.WriteAt(p, off)
}

func (f *trapFile) Sync() error { return f.t.do("sync", f.name, f.File.Sync) }

func (f *trapFile) Truncate(size int64) error {
	return f.t.do("truncate", f.name, func() error { return f.File.Truncate(size) })
}

func (f *trapFile) Preallocate(off, n int64) error {
	return f.t.do("preallocate", f.name, func() error { return f.File.Preallocate(off, n) })
}

func (f *trapFile) PunchHole(off, n int64) error {
	return f.t.do("punch", f.name, func() error { return f.File.PunchHole(off, n) })
}

// Lock takes a lock; the text that a writer leaves in the lock file is no change.
func (t *Trap) Lock(name string, exclusive bool) (vfs.Lock, error) { return t.FS.Lock(name, exclusive) }

// Stat tells size and kind.
func (t *Trap) Stat(name string) (fs.FileInfo, error) { return t.FS.Stat(name) }
