package storedir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// Locks are the locks of an open store, exclusive for a writer and shared for readers.
//
// LOCK exists before any other file of the store and names its writer. Some users remove files with
// such names as leftovers. Then another process could create and lock a new LOCK while the first
// still writes. So INSTANCE, which Open never creates in a store, is locked too, and before each
// metadata commit a writer checks that LOCK is still the file that it locked.
//
// A nil *Locks is a follower's, which has none.
type Locks struct {
	dir      Dir
	readOnly bool
	lock     vfs.Lock // of LOCK; nil for a reader of a copy without it
	instance vfs.Lock // of INSTANCE; nil until the store is formatted
	owner    []byte   // a writer's first line of LOCK
}

// Lock locks LOCK. A writer creates it if it is missing; a reader then opens the store without it.
// Errors: ErrLocked, naming the process that has locked it; the errors of the file system.
func (d Dir) Lock(readOnly bool) (l *Locks, err error) {
	l = &Locks{dir: d, readOnly: readOnly}
	mode := vfs.LockCreate
	if readOnly {
		mode = vfs.LockShared
	}
	l.lock, err = d.FS.Lock(d.File(LockName), mode)
	if readOnly && errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if errors.Is(err, fault.ErrLocked) {
		return l, fmt.Errorf("%w: %s", fault.ErrLocked, l.describeHolder())
	}
	return l, err
}

// Followers lock INSTANCE for a moment to find out whether there is a writer. So a writer tries
// several times.
const (
	instanceTries = 40
	instanceSleep = 2 * time.Millisecond
)

// LockInstance locks INSTANCE, which must exist. Errors: ErrLocked; the errors of the file system.
func (l *Locks) LockInstance() (err error) {
	mode := vfs.LockExclusive
	if l.readOnly {
		mode = vfs.LockShared
	}
	for try := 1; ; try++ {
		l.instance, err = l.dir.FS.Lock(l.dir.File(InstanceName), mode)
		if l.readOnly || try == instanceTries || !errors.Is(err, fault.ErrLocked) {
			break
		}
		time.Sleep(instanceSleep)
	}
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w: another process has the store open, although its %s was removed",
			fault.ErrLocked, LockName)
	}
	return err
}

// WriteOwner writes the name of this process to LOCK, for the errors of other processes that open
// the store. It keeps and returns the mark of earlier writers, see Mark.
func (l *Locks) WriteOwner() (marked mvcc.Timestamp, err error) {
	if b, err := l.lock.Read(); err == nil {
		marked = decodeMark(b)
	}
	l.owner = fmt.Appendf(nil, "pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	return marked, l.lock.Write(appendMark(slices.Clip(l.owner), marked))
}

// Mark writes a clock mark to LOCK: no write batch up to ts will come that is not in the log.
func (l *Locks) Mark(ts mvcc.Timestamp) error {
	return l.lock.Write(appendMark(bytes.Clone(l.owner), ts))
}

// Check returns an error if LOCK is not the file that this writer locked.
func (l *Locks) Check() error { return l.lock.Check() }

// Release unlocks the files.
func (l *Locks) Release() error {
	if l == nil {
		return nil
	}
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
func (l *Locks) describeHolder() string {
	if !l.readOnly {
		if lock, err := l.dir.FS.Lock(l.dir.File(LockName), vfs.LockShared); err == nil {
			lock.Close()
			return "readers have the store open"
		}
	}
	const unknown = "a writer has the store open"
	b, err := l.dir.read(LockName, lockMax)
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
