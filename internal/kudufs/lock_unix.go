//go:build unix

package kudufs

import (
	"io"
	"os"
	"syscall"
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
