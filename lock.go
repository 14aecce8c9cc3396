package oribi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// storeLocks are the locks of an open store, exclusive for a writer and shared for readers.
//
// LOCK exists before any other file of the store and names its writer. Some users remove files with
// such names as leftovers. Then another process could create and lock a new LOCK while the first
// still writes. So INSTANCE, which Open never creates in a store, is locked too, and before each
// metadata commit a writer checks that LOCK is still the file that it locked.
type storeLocks struct {
	lock     vfs.Lock // of LOCK; nil for a reader of a copy without it
	instance vfs.Lock // of INSTANCE; nil until the store is formatted
	owner    []byte   // a writer's first line of LOCK
}

// takeLock locks LOCK. A writer creates it if it is missing; a reader then opens the store without
// it.
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
		return fmt.Errorf("%w: %s", fault.ErrLocked, s.describeHolder())
	}
	return err
}

// Followers lock INSTANCE for a moment to find out whether there is a writer. So a writer tries
// several times.
const (
	instanceTries = 40
	instanceSleep = 2 * time.Millisecond
)

// lockInstance locks INSTANCE, which must exist.
func (s *Store) lockInstance() (err error) {
	mode := vfs.LockExclusive
	if s.opts.ReadOnly {
		mode = vfs.LockShared
	}
	for try := 1; ; try++ {
		s.locks.instance, err = s.opts.FS.Lock(s.path(instanceName), mode)
		if s.opts.ReadOnly || try == instanceTries || !errors.Is(err, fault.ErrLocked) {
			break
		}
		time.Sleep(instanceSleep)
	}
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w: another process has the store open, although its %s was removed", fault.ErrLocked, lockName)
	}
	return err
}

// writeOwner writes the name of this process to LOCK, for the errors of other processes that open
// the store. It keeps the mark of earlier writers, see markClock.
func (s *Store) writeOwner() error {
	if b, err := s.locks.lock.Read(); err == nil {
		s.marked = decodeMark(b)
	}
	s.locks.owner = fmt.Appendf(nil, "pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	return s.locks.lock.Write(appendMark(slices.Clip(s.locks.owner), s.marked))
}

// check returns an error if LOCK is not the file that this writer locked.
func (l *storeLocks) check() error { return l.lock.Check() }

// release unlocks the files.
func (l *storeLocks) release() error {
	var errs []error
	for _, lock := range []vfs.Lock{l.instance, l.lock} {
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	return errors.Join(errs...)
}

// describeHolder returns which process has locked LOCK, as far as can be known. LOCK names the last
// writer, which may have ended long ago if readers have the lock.
func (s *Store) describeHolder() string {
	if !s.opts.ReadOnly {
		if l, err := s.opts.FS.Lock(s.path(lockName), vfs.LockShared); err == nil {
			l.Close()
			return "readers have the store open"
		}
	}
	const unknown = "a writer has the store open"
	b, err := readFile(s.opts.FS, s.path(lockName), lockMax)
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
