// Package vfs is the file system as the engine sees it: real, or in memory for tests.
//
// All paths are native paths as package path/filepath makes them. An FS is safe for concurrent use;
// so are ReadAt and WriteAt of a File, but not its other methods. Some files also are a Mapper or a
// Cloner. Errors are as in package os: they satisfy errors.Is(err, fs.ErrNotExist) and fs.ErrExist.
// The error of a full disk also satisfies errors.Is(err, ErrNoSpace), the error of a file that is
// not regular ErrNotRegular.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrNotRegular is the error of a call that needs a regular file and finds a directory, a link or a
// device.
var ErrNotRegular = errors.New("not a regular file")

// FS is one file system.
type FS interface {
	// Create makes a new file for reading and writing, mode 0600; an existing one is an error
	// (fs.ErrExist).
	Create(name string) (File, error)
	// Open opens an existing file: for reading only, or for reading and writing.
	Open(name string, write bool) (File, error)
	// Mkdir makes one directory, mode 0700. Its parent must exist.
	Mkdir(name string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Rename replaces newName by oldName, atomically.
	Rename(oldName, newName string) error
	// List returns the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Stat returns size and kind. It does not follow a symbolic link at the end of name.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Lock locks a file and does not wait. If another opener, in this process or another, holds a
	// lock that excludes this one, the error is ErrLocked. A missing file is an error
	// (fs.ErrNotExist) unless mode is LockCreate.
	Lock(name string, mode LockMode) (Lock, error)
	// FreeBytes returns how many bytes can still be written to the file system that contains dir,
	// -1 if that is unknown.
	FreeBytes(dir string) int64
}

// File is one open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Sync makes content and length durable (fdatasync where there is one).
	Sync() error
	// Truncate sets the length.
	Truncate(size int64) error
	// Preallocate reserves space for [off, off+n) without changing the length. It does nothing
	// where the system cannot do that.
	Preallocate(off, n int64) error
	// PunchHole frees the space of [off, off+n), which reads as zeros afterwards. Where the
	// system cannot, it returns an error that wraps ErrUnsupported and changes nothing.
	PunchHole(off, n int64) error
}

// LockMode is how FS.Lock locks a file.
type LockMode int

const (
	LockShared    LockMode = iota // excludes exclusive locks
	LockExclusive                 // excludes all other locks
	LockCreate                    // LockExclusive; creates the file if it does not exist
)

// Lock is a lock held on a file.
type Lock interface {
	// Write replaces the content of the lock file, which only people read. The lock must be
	// exclusive.
	Write(content []byte) error
	// Read returns the content of the lock file.
	Read() ([]byte, error)
	// Check returns an error if the name no longer refers to the locked file: it was removed or
	// replaced, and another opener may hold a lock under the same name.
	Check() error
	// Close releases the lock. It does not remove the file.
	io.Closer
}

// Allocated returns how many bytes of the disk a file or directory occupies, from the result of
// Stat: without its holes, with the space that is reserved after its end. If the system does not
// say, it returns the length.
func Allocated(info fs.FileInfo) int64 {
	if n, ok := allocated(info); ok {
		return n
	}
	return info.Size()
}
