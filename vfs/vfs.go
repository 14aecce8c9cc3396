// Package vfs is the file system as the engine sees it: real, or in memory for tests.
//
// All paths are slash-or-native paths as package path/filepath makes them. An FS may be used by
// many goroutines at once; a File's ReadAt and WriteAt too, its other methods not. Errors are those
// of package os: errors.Is(err, fs.ErrNotExist) and fs.ErrExist work, a full disk satisfies
// errors.Is(err, fault.ErrNoSpace), and what is no regular file ErrNotRegular.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrNotRegular is the error of a call that asks for a file where there is something else: a
// directory, a link, a device.
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
	// List gives the names in a directory, sorted.
	List(dir string) ([]string, error)
	// Stat tells size and kind. It does not follow a symbolic link at the end of name.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
	// Lock locks a file and does not wait. If another opener, in this process or another, holds a
	// lock that excludes this one, the error is fault.ErrLocked. A missing file is an error
	// (fs.ErrNotExist) unless mode is LockCreate.
	Lock(name string, mode LockMode) (Lock, error)
	// FreeBytes tells how much can still be written to the file system that holds dir; -1 where
	// that is unknown.
	FreeBytes(dir string) int64
}

// File is one open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is the length in bytes.
	Size() (int64, error)
	// Sync makes content and length durable (fdatasync where there is one).
	Sync() error
	// Truncate sets the length.
	Truncate(size int64) error
	// Preallocate reserves space for [off, off+n) without changing the length where the system can
	// do that; else it does nothing.
	Preallocate(off, n int64) error
	// PunchHole gives back the space of [off, off+n), which reads as zeros afterwards. Where the
	// system cannot, it returns an error that wraps fault.ErrUnsupported and changes nothing.
	PunchHole(off, n int64) error
}

// LockMode is how FS.Lock locks a file.
type LockMode int

const (
	LockShared    LockMode = iota // excludes exclusive locks
	LockExclusive                 // excludes all other locks
	LockCreate                    // LockExclusive, on a new file if there is none
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

// Allocated is how many bytes of the disk a file or directory takes, going by what Stat gave:
// without its holes, with the space that is reserved behind its end. Where the system does not
// tell, it is the length.
func Allocated(info fs.FileInfo) int64 {
	if n, ok := allocated(info); ok {
		return n
	}
	return info.Size()
}
