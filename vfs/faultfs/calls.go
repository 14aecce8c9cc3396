package faultfs

import (
	"io"
	"io/fs"

	"github.com/oribi-db/oribi/vfs"
)

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	return f.file(Call{Op: Create, Name: name}, func() (vfs.File, error) { return f.Base().Create(name) })
}

// Open implements vfs.FS.
func (f *FS) Open(name string, write bool) (vfs.File, error) {
	return f.file(Call{Op: Open, Name: name, Exclusive: write}, func() (vfs.File, error) {
		return f.Base().Open(name, write)
	})
}

// file does a call that returns a file.
func (f *FS) file(c Call, open func() (vfs.File, error)) (vfs.File, error) {
	inner, err := result(f, c, open)
	if err != nil {
		return nil, err
	}
	return &file{inner, f, c.Name}, nil
}

// result does a call that returns a value. It closes a file, a lock or a window of a call that
// fails after it was done.
func result[V any](f *FS, c Call, do func() (V, error)) (v V, err error) {
	err = f.run(c, func() (err error) {
		v, err = do()
		return err
	}, nil)
	if err == nil {
		return v, nil
	}
	if opened, ok := any(v).(io.Closer); ok {
		opened.Close()
	}
	var none V
	return none, err
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(name string) error {
	return f.run(Call{Op: Mkdir, Name: name}, func() error { return f.Base().Mkdir(name) }, nil)
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	return f.run(Call{Op: Remove, Name: name}, func() error { return f.Base().Remove(name) }, nil)
}

// Rename implements vfs.FS.
func (f *FS) Rename(oldName, newName string) error {
	return f.run(Call{Op: Rename, Name: oldName, To: newName}, func() error {
		return f.Base().Rename(oldName, newName)
	}, nil)
}

// List implements vfs.FS.
func (f *FS) List(dir string) (names []string, err error) {
	return result(f, Call{Op: List, Name: dir}, func() ([]string, error) { return f.Base().List(dir) })
}

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (info fs.FileInfo, err error) {
	return result(f, Call{Op: Stat, Name: name}, func() (fs.FileInfo, error) { return f.Base().Stat(name) })
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	return f.run(Call{Op: SyncDir, Name: dir}, func() error { return f.Base().SyncDir(dir) }, nil)
}

// FreeBytes implements vfs.FS. It is not a Call.
func (f *FS) FreeBytes(dir string) int64 { return f.Base().FreeBytes(dir) }

// Lock implements vfs.FS.
func (f *FS) Lock(name string, mode vfs.LockMode) (vfs.Lock, error) {
	c := Call{Op: Lock, Name: name, Exclusive: mode != vfs.LockShared}
	inner, err := result(f, c, func() (vfs.Lock, error) { return f.Base().Lock(name, mode) })
	if err != nil {
		return nil, err
	}
	return &lock{inner, f, name}, nil
}

// file is an open file.
type file struct {
	vfs.File
	f    *FS
	name string
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	return f.transfer(Read, b, off, f.File.ReadAt)
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(b []byte, off int64) (int, error) {
	return f.transfer(Write, b, off, f.File.WriteAt)
}

func (f *file) transfer(op Op, b []byte, off int64, do func([]byte, int64) (int, error)) (n int, err error) {
	c := Call{Op: op, Name: f.name, Off: off, Len: int64(len(b))}
	v := f.f.judge(c)
	switch {
	case v == nil:
		n, err = do(b, off)
		return n, f.f.finished(c, err)
	case v.when == Middle:
		n, err = do(b[:len(b)/2], off)
	case v.when == After:
		n, err = do(b, off)
		if op == Write {
			n = 0 // the number of bytes written is not returned
		}
	}
	if err != nil {
		return n, err
	}
	return n, v.err
}

// Size implements vfs.File.
func (f *file) Size() (size int64, err error) {
	return result(f.f, Call{Op: Size, Name: f.name}, f.File.Size)
}

// loser is a file that can lose its unsynced bytes.
type loser interface{ LoseUnsynced(cached bool) error }

// Sync implements vfs.File.
func (f *file) Sync() error {
	c := Call{Op: Sync, Name: f.name}
	v := f.f.judge(c)
	if v == nil {
		return f.f.finished(c, f.File.Sync())
	}
	if v.when == After {
		if err := f.File.Sync(); err != nil {
			return err
		}
	}
	if v.loss != Kept {
		if err := f.File.(loser).LoseUnsynced(v.loss == Hidden); err != nil {
			return err
		}
	}
	return v.err
}

// Truncate implements vfs.File.
func (f *file) Truncate(size int64) error {
	return f.f.run(Call{Op: Truncate, Name: f.name, Len: size}, func() error {
		return f.File.Truncate(size)
	}, func() error {
		now, err := f.File.Size()
		if err != nil {
			return err
		}
		return f.File.Truncate(now + (size-now)/2)
	})
}

// Preallocate implements vfs.File.
func (f *file) Preallocate(off, n int64) error {
	return f.f.run(Call{Op: Preallocate, Name: f.name, Off: off, Len: n}, func() error {
		return f.File.Preallocate(off, n)
	},
		func() error { return f.File.Preallocate(off, n/2) })
}

// PunchHole implements vfs.File.
func (f *file) PunchHole(off, n int64) error {
	return f.f.run(Call{Op: Punch, Name: f.name, Off: off, Len: n}, func() error { return f.File.PunchHole(off, n) },
		func() error { return f.File.PunchHole(off, n/2) })
}

// Map implements vfs.Mapper.
func (f *file) Map(off, n int64) (vfs.Window, error) {
	c := Call{Op: Map, Name: f.name, Off: off, Len: n}
	inner, err := result(f.f, c, func() (vfs.Window, error) { return vfs.Map(f.File, off, n) })
	if err != nil {
		return nil, err
	}
	return &window{inner, f}, nil
}

// window is a window on a file.
type window struct {
	vfs.Window
	file *file
}

// Copy implements vfs.Window.
func (w *window) Copy(b []byte, off int64) error {
	return w.file.f.run(Call{Op: Copy, Name: w.file.name, Off: off, Len: int64(len(b))}, func() error {
		return w.Window.Copy(b, off)
	},
		func() error { return w.Window.Copy(b[:len(b)/2], off) })
}

// Close implements vfs.File. Even if it fails, the underlying file is closed, as in the operating
// system.
func (f *file) Close() error { return f.f.end(Call{Op: Close, Name: f.name}, f.File.Close) }

func (f *FS) end(c Call, end func() error) error {
	v := f.judge(c)
	if err := end(); err != nil || v == nil {
		return f.finished(c, err)
	}
	return v.err
}

// lock is an acquired lock.
type lock struct {
	vfs.Lock
	f    *FS
	name string
}

// Write implements vfs.Lock.
func (l *lock) Write(content []byte) error {
	return l.f.run(Call{Op: LockWrite, Name: l.name, Len: int64(len(content))}, func() error {
		return l.Lock.Write(content)
	},
		func() error { return l.Lock.Write(content[:len(content)/2]) })
}

// Read implements vfs.Lock.
func (l *lock) Read() (content []byte, err error) {
	return result(l.f, Call{Op: LockRead, Name: l.name}, l.Lock.Read)
}

// Check implements vfs.Lock.
func (l *lock) Check() error {
	return l.f.run(Call{Op: LockCheck, Name: l.name}, l.Lock.Check, nil)
}

// Close implements vfs.Lock. Even if it fails, the lock is released.
func (l *lock) Close() error { return l.f.end(Call{Op: Unlock, Name: l.name}, l.Lock.Close) }
