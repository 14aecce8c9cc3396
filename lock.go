package oribi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// storeLocks are the locks of an open store, exclusive for a writer and shared for readers.
//
// LOCK exists before any other file of the store and names its writer. People remove files of that
// name as leftovers, and an opener would then create and lock a new one while the first opener
// still writes. So INSTANCE, which no opener creates, is locked too, and a writer compares LOCK
// with the file it locked before each metadata commit.
type storeLocks struct {
	lock     vfs.Lock // of LOCK; nil for a reader of a copy without it
	instance vfs.Lock // of INSTANCE; nil until the store is formatted
}

// takeLock locks LOCK. A writer creates it; a reader does without where it is missing.
func (s *Store) takeLock() (err error) {
	mode := vfs.LockCreate
	if s.opts.ReadOnly {
		mode = vfs.LockShared
	}
	s.locks.lock, err = s.opts.FS.Lock(s.path(lockName), mode)
	if s.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w: %s", err, s.describeHolder())
	}
	return err
}

// lockInstance locks INSTANCE, which exists.
func (s *Store) lockInstance() (err error) {
	mode := vfs.LockExclusive
	if s.opts.ReadOnly {
		mode = vfs.LockShared
	}
	s.locks.instance, err = s.opts.FS.Lock(s.path(instanceName), mode)
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w: another process has the store open, although its %s is gone", err, lockName)
	}
	return err
}

// writeOwner names this process in LOCK, for the error of other openers.
func (s *Store) writeOwner() error {
	return s.locks.lock.Write(fmt.Appendf(nil, "pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339)))
}

// check returns an error if LOCK is not the file that this writer locked.
func (l *storeLocks) check() error { return l.lock.Check() }

// release gives back the locks.
func (l *storeLocks) release() error {
	var errs []error
	for _, lock := range []vfs.Lock{l.instance, l.lock} {
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	return errors.Join(errs...)
}

// describeHolder says which opener holds LOCK, as far as it can be known. LOCK names the last
// writer, which may have ended long ago if readers hold the lock.
func (s *Store) describeHolder() string {
	if !s.opts.ReadOnly {
		if l, err := s.opts.FS.Lock(s.path(lockName), vfs.LockShared); err == nil {
			l.Close()
			return "readers have the store open"
		}
	}
	const unknown = "a writer has the store open"
	b, err := readFile(s.opts.FS, s.path(lockName), 128)
	var pid int
	var since string
	if _, bad := fmt.Sscanf(string(b), "pid %d since %s\n", &pid, &since); err != nil || bad != nil {
		return unknown
	}
	if _, err := time.Parse(time.RFC3339, since); err != nil {
		return unknown
	}
	return fmt.Sprintf("process %d has the store open for writing since %s", pid, since)
}
