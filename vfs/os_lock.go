package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
)

// osLock is a lock of the system on an open file, listed in osLocks.
type osLock struct {
	f         *os.File
	info      fs.FileInfo // device and inode, for os.SameFile
	exclusive bool
}

// osLocks lists the locks of this process. The system's lock is not enough: on some network file
// systems it belongs to the process, so a second opener in the same process would get it too, and
// the first Close would release it for both.
var osLocks struct {
	mu   sync.Mutex
	held []*osLock
}

func (osFS) Lock(name string, mode LockMode) (Lock, error) {
	flag := os.O_RDONLY
	switch mode {
	case LockExclusive:
		flag = os.O_RDWR
	case LockCreate:
		flag = os.O_RDWR | os.O_CREATE
	}
	// Between our open and our lock the holder may have removed the file, and another process may
	// have created and locked a new one of that name. So the name must still refer to the file we
	// locked.
	for range 10 {
		l, err := tryLock(name, flag, mode != LockShared)
		if err != nil {
			return nil, err
		}
		err = l.Check()
		if err == nil {
			return l, nil
		}
		l.Close()
		if !errors.Is(err, errReplaced) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("vfs: lock %s: the file is replaced each time: %w", name, fault.ErrLocked)
}

func tryLock(name string, flag int, exclusive bool) (*osLock, error) {
	f, err := openFile(name, flag)
	if err != nil {
		return nil, err
	}
	l := &osLock{f: f, exclusive: exclusive}
	if l.info, err = f.Stat(); err == nil {
		err = l.register()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// register takes the system's lock and adds l to osLocks, or does neither.
func (l *osLock) register() error {
	osLocks.mu.Lock()
	defer osLocks.mu.Unlock()
	for _, other := range osLocks.held {
		if (l.exclusive || other.exclusive) && os.SameFile(other.info, l.info) {
			return fmt.Errorf("vfs: lock %s: another opener in this process: %w", l.f.Name(), fault.ErrLocked)
		}
	}
	held, err := flock(l.f, l.exclusive)
	if held {
		return fmt.Errorf("vfs: lock %s: %w", l.f.Name(), fault.ErrLocked)
	}
	if err != nil {
		return err
	}
	osLocks.held = append(osLocks.held, l)
	return nil
}

func (l *osLock) Write(content []byte) error {
	if !l.exclusive {
		return fmt.Errorf("vfs: write %s: lock is shared: %w", l.f.Name(), fs.ErrPermission)
	}
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt(content, 0)
	return noSpace(err)
}

// errReplaced is the error of Check if the name does not refer to the locked file.
var errReplaced = errors.New("the file was removed or replaced")

func (l *osLock) Check() error {
	now, err := os.Lstat(l.f.Name())
	switch {
	case err == nil && os.SameFile(now, l.info):
		return nil
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("vfs: lock %s: %w", l.f.Name(), errReplaced)
	default:
		return err
	}
}

// lockContentMax is the most that Read returns of a lock file.
const lockContentMax = 64 << 10

func (l *osLock) Read() ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(l.f, 0, lockContentMax))
}

// Close removes the lock from osLocks and releases the system's lock in one step: an opener in this
// process finds both taken or both free.
func (l *osLock) Close() error {
	osLocks.mu.Lock()
	defer osLocks.mu.Unlock()
	osLocks.held = slices.DeleteFunc(osLocks.held, func(o *osLock) bool { return o == l })
	return errors.Join(unflock(l.f), l.f.Close())
}
