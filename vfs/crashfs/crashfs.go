// Package crashfs is a file system in memory that can produce every state that a crash may leave.
//
// An FS records each operation until a Sync of its file or a SyncDir of its directory makes it
// durable. A Point is taken before an operation, in the middle of a write or between two calls. At
// a Point, each operation that is not durable may be lost or kept independently of the others:
// POSIX and a disk with a volatile cache promise no more. States iterates over the resulting
// states:
//
//   - all operations are lost; all are kept, as after a kill of the process; all names
//     and no content, and the reverse;
//   - each change of content is lost alone, and is kept alone;
//   - each change of a directory is lost alone, and is kept alone;
//   - each write after the end leaves only its length, zeros without the bytes;
//   - the last write is torn: any number of its first sectors of 512 bytes are there, with all
//     other writes or with none;
//   - any subset, any sectors of a write;
//   - of the bytes copied into windows, each page is lost alone, kept alone, without its last copy,
//     or as after any number of its copies;
//   - the disk acknowledged a flush and forgot it.
//
// In all of these states but the last, a store must open with all batches that it acknowledged as
// durable, followed by a prefix of the others, and no partial batch. After a forgotten flush no
// content is certain. The store may then return oribi.ErrCorrupt from Open or a read, or open in an
// earlier state. But no row may be wrong, no batch may be partial or present without the batches
// and alterations before it, and nothing may panic or hang.
//
//	fsys := crashfs.New(vfs.NewMem())
//	fsys.OnOperation(func(c crashfs.Operation) error {
//		for state := range c.Point().States(seed, 0) {
//			check(state.Image)
//		}
//		return nil
//	})
//
// A rename within a directory is one operation. A rename to another directory is two: one name is
// added, one removed. Reserved space is not content. The text in a lock file is informative:
// writing it is not an operation, and it is never lost. Reading, listing, locking and mapping are
// not operations either.
package crashfs

import (
	"io/fs"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// Operation is one call that changes a file system or makes changes durable: create, mkdir, remove,
// rename, syncdir, write, sync, truncate, preallocate, punch, copy (into a window).
type Operation struct {
	N    int // how many there were before, halves counted
	Op   string
	Name string // of a rename the new one
	Half bool   // the first half of a write or copy is done

	fsys *FS
}

// Point is the moment before the operation. It is valid until the function that got the Operation
// returns.
func (c Operation) Point() *Point { return c.fsys.journal.point() }

// FS is the file system. It is safe for concurrent use; operations are serialized. Its exported
// fields must be set before it is used.
type FS struct {
	// Halves splits each write and each copy of two or more bytes into two operations.
	Halves bool
	// ForgetFlushes is how many of the last flushes that changed something States may show as
	// forgotten by the disk.
	ForgetFlushes int

	live *vfs.Mem

	turn    sync.Mutex // held during an operation and the call of the function before it
	before  func(Operation) error
	changes int
	journal *journal
}

// New returns a file system that starts with a copy of base, all of it durable.
func New(base *vfs.Mem) *FS { return &FS{live: base.Clone(), journal: newJournal(base)} }

// OnOperation sets a function to be called before each operation, one at a time; nil removes it. If
// fn returns an error, the operation does nothing and returns it. fn must not change the file
// system.
func (f *FS) OnOperation(fn func(Operation) error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	f.before = fn
}

// Operations returns how many operations there were.
func (f *FS) Operations() int {
	f.turn.Lock()
	defer f.turn.Unlock()
	return f.changes
}

// Point returns the current moment.
func (f *FS) Point() *Point {
	f.turn.Lock()
	defer f.turn.Unlock()
	return f.journal.point()
}

// Read returns a copy of the file system as the process sees it.
func (f *FS) Read() *vfs.Mem { return f.live.Clone() }

// announce calls the function of OnOperation. The caller holds f.turn.
func (f *FS) announce(op, name string, half bool) error {
	c := Operation{N: f.changes, Op: op, Name: name, Half: half, fsys: f}
	f.changes++
	f.journal.forgetFlushes = f.ForgetFlushes
	if f.before == nil {
		return nil
	}
	return f.before(c)
}

// change does one operation and records it if it succeeds.
func (f *FS) change(op, name string, do func() error, note func(*journal)) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	if err := f.announce(op, name, false); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	note(f.journal)
	return nil
}

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	out := &file{fsys: f, name: name}
	err := f.change("create", name, func() (err error) {
		out.File, err = f.live.Create(name)
		return err
	}, func(j *journal) { out.node = j.create(name) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Open implements vfs.FS. It is not an operation, even for writing.
func (f *FS) Open(name string, write bool) (vfs.File, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	inner, err := f.live.Open(name, write)
	if err != nil {
		return nil, err
	}
	return &file{File: inner, fsys: f, name: name, node: f.journal.find(name)}, nil
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string) error {
	return f.change("mkdir", name, func() error { return f.live.Mkdir(name) }, func(j *journal) { j.mkdir(name) })
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.change("remove", name, func() error { return f.live.Remove(name) }, func(j *journal) { j.remove(name) })
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	return f.change("rename", newName, func() error {
		return f.live.Rename(oldName, newName)
	}, func(j *journal) { j.rename(oldName, newName) })
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	return f.change("syncdir", dir, func() error {
		return f.live.SyncDir(dir)
	}, func(j *journal) { j.flush(j.find(dir)) })
}

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) { return f.live.List(dir) }

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.live.Stat(name) }

// FreeBytes implements vfs.FS.
func (f *FS) FreeBytes(dir string) int64 { return f.live.FreeBytes(dir) }

// Lock implements vfs.FS. The name of a lock file that it makes can be lost as any other.
func (f *FS) Lock(name string, mode vfs.LockMode) (vfs.Lock, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	_, err := f.live.Stat(name)
	l, lockErr := f.live.Lock(name, mode)
	if lockErr != nil {
		return nil, lockErr
	}
	if err != nil {
		f.journal.create(name)
	}
	return &lock{Lock: l, fsys: f, node: f.journal.find(name)}, nil
}

type lock struct {
	vfs.Lock
	fsys *FS
	node node
}

func (l *lock) Write(content []byte) error {
	l.fsys.turn.Lock()
	defer l.fsys.turn.Unlock()
	if err := l.Lock.Write(content); err != nil {
		return err
	}
	l.fsys.journal.replace(l.node, content)
	return nil
}

// file is one opening of a file.
type file struct {
	vfs.File
	fsys *FS
	name string
	node node
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	return f.put(write, b, off, f.File.WriteAt)
}

// put writes b in one or two operations.
func (f *file) put(kind kind, b []byte, off int64, do func(b []byte, off int64) (int, error)) (done int, err error) {
	f.fsys.turn.Lock()
	defer f.fsys.turn.Unlock()
	parts := [][]byte{b}
	if f.fsys.Halves && len(b) > 1 {
		parts = [][]byte{b[:len(b)/2], b[len(b)/2:]}
	}
	for i, part := range parts {
		if err := f.fsys.announce(string(kind), f.name, i > 0); err != nil {
			return done, err
		}
		n, err := do(part, off+int64(done))
		if err == nil && n > 0 {
			f.fsys.journal.add(&op{kind: kind, node: f.node, off: off + int64(done), data: slices.Clone(part)})
		}
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// Map implements vfs.Mapper.
func (f *file) Map(off, n int64) (vfs.Window, error) {
	inner, err := vfs.Map(f.File, off, n)
	if err != nil {
		return nil, err
	}
	return &window{inner, f, off, off + n}, nil
}

type window struct {
	vfs.Window
	f        *file
	off, end int64
}

func (w *window) Copy(b []byte, off int64) error {
	if off < w.off || off+int64(len(b)) > w.end {
		return w.Window.Copy(b, off) // which refuses all of it
	}
	_, err := w.f.put(copied, b, off, func(b []byte, off int64) (int, error) {
		if err := w.Window.Copy(b, off); err != nil {
			return 0, err
		}
		return len(b), nil
	})
	return err
}

func (f *file) Sync() error {
	return f.fsys.change("sync", f.name, f.File.Sync, func(j *journal) { j.flush(f.node) })
}

func (f *file) Truncate(size int64) error {
	return f.fsys.change("truncate", f.name, func() error { return f.File.Truncate(size) },
		func(j *journal) { j.add(&op{kind: truncate, node: f.node, off: size}) })
}

func (f *file) PunchHole(off, n int64) error {
	return f.fsys.change("punch", f.name, func() error { return f.File.PunchHole(off, n) },
		func(j *journal) { j.add(&op{kind: punch, node: f.node, off: off, length: n}) })
}

func (f *file) Preallocate(off, n int64) error {
	return f.fsys.change("preallocate", f.name, func() error { return f.File.Preallocate(off, n) }, func(*journal) {})
}
