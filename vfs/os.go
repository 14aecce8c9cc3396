package vfs

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/oribi-db/oribi/internal/fault"
)

// OS is the real file system.
//
// It opens nothing but regular files and follows no symbolic link at the end of a name. On linux a
// Sync is fdatasync, Preallocate and PunchHole are fallocate, CloneRange is FICLONERANGE, and files
// are a Mapper; elsewhere a Sync is whatever reaches the medium, Preallocate does nothing, and
// PunchHole and CloneRange are ErrUnsupported.
var OS FS = osFS{}

type osFS struct{}

const (
	fileMode = 0o600
	dirMode  = 0o700
)

func (osFS) Create(name string) (File, error) {
	return openRegular(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Open(name string, write bool) (File, error) {
	if write {
		return openRegular(name, os.O_RDWR)
	}
	return openRegular(name, os.O_RDONLY)
}

func (osFS) Mkdir(name string) error {
	return noSpace(os.Mkdir(name, dirMode))
}

func (osFS) Remove(name string) error {
	return os.Remove(name)
}

func (osFS) Rename(oldName, newName string) error {
	return noSpace(os.Rename(oldName, newName))
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Stat(name string) (fs.FileInfo, error) {
	return os.Lstat(name)
}

func (osFS) SyncDir(dir string) error {
	return syncDir(dir)
}

func (osFS) FreeBytes(dir string) int64 {
	return freeBytes(dir)
}

// osFile is an open regular file. Embedding gives ReadAt and Close.
type osFile struct {
	*os.File
}

// openRegular opens name and refuses everything that is not a regular file: a FIFO would block the
// first read, a device would take the writes.
func openRegular(name string, flag int) (File, error) {
	f, err := openFile(name, flag)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// openFile is openRegular for callers inside this package, who need the *os.File.
func openFile(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|openFlags, fileMode)
	if err != nil {
		// The system refuses some of them itself, with various errors.
		if info, statErr := os.Lstat(name); statErr == nil && flag&os.O_EXCL == 0 && !info.Mode().IsRegular() {
			return nil, notRegular(name, info)
		}
		return nil, noSpace(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(name string, info fs.FileInfo) error {
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%v is %w", info.Mode(), ErrNotRegular)}
}

func (f osFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	if err != nil {
		err = noSpace(err)
	}
	return n, err
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync never returns ErrNoSpace, even if the disk is full: it is unknown which of the earlier
// writes reached the disk, so no caller may simply try again.
func (f osFile) Sync() error {
	return syncData(f.File)
}

func (f osFile) Truncate(size int64) error {
	return noSpace(f.File.Truncate(size))
}

func (f osFile) Preallocate(off, n int64) error {
	if n <= 0 {
		return nil
	}
	return noSpace(preallocate(f.File, off, n))
}

// CloneRange implements Cloner.
func (f osFile) CloneRange(src File, srcOff, off, n int64) error {
	from, ok := src.(osFile)
	if !ok {
		return fault.Unsupportedf("clone a range of another file system")
	}
	if n <= 0 {
		return nil
	}
	return noSpace(cloneRange(f.File, from.File, srcOff, off, n))
}

func (f osFile) PunchHole(off, n int64) error {
	if n <= 0 {
		return nil
	}
	return punchHole(f.File, off, n)
}

// noSpace makes errors of a full disk or an exceeded quota satisfy errors.Is(err, ErrNoSpace)
// too.
func noSpace(err error) error {
	if err != nil && isNoSpace(err) {
		return &noSpaceError{err}
	}
	return err
}

// NoSpaceError wraps an error of the system so that it also satisfies errors.Is(err,
// ErrNoSpace), with the same text. The file systems of this package return such errors when
// the disk is full.
func NoSpaceError(cause error) error { return &noSpaceError{cause} }

type noSpaceError struct{ cause error }

func (e *noSpaceError) Error() string { return e.cause.Error() }

// Unwrap lets errors.Is see both the sentinel and the system's own error.
func (e *noSpaceError) Unwrap() []error { return []error{fault.ErrNoSpace, e.cause} }

// control runs fn on the descriptor of f, which stays open until fn returns.
func control(f *os.File, op string, fn func(fd uintptr) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := conn.Control(func(fd uintptr) { callErr = fn(fd) }); err != nil {
		return err
	}
	if callErr != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: callErr}
	}
	return nil
}
