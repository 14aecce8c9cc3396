//go:build unix

package kudufs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/oribi-db/oribi/internal/fault"
)

// locked reports whether another process has locked a file as a server does, with a POSIX record
// lock. The question itself takes no lock, and needs no right to write. Source: blockmanager spec
// §1.6.
func locked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() // read-only: the error does not matter
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return false
	}
	return lock.Type != syscall.F_UNLCK
}

// lock takes the lock of a server on a file. It is lost when this process closes any descriptor of
// the file. Errors: ErrLocked.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l)
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EAGAIN) {
		err = fault.ErrLocked
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: err}, f.Close())
	}
	return f, nil
}

// systemBlockBytes returns the size of the blocks of the file system that has a file, 0 if it is
// not known.
func systemBlockBytes(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blksize)
	}
	return 0
}
