package oribi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

func (s *Store) takeLock() error {
	lock, err := s.opts.FS.Lock(s.path(lockName), !s.opts.ReadOnly)
	if s.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil // a copy made without LOCK, which a reader cannot make; see checkUnlocked
	}
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w%s", err, s.lastWriter())
	}
	if err != nil {
		return err
	}
	s.lock = lock
	if s.opts.ReadOnly {
		return nil
	}
	return lock.Write(fmt.Appendf(nil, "pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339)))
}

// lastWriter is what LOCK says of who last opened the store for writing, for a message: that writer
// holds the lock, unless readers do.
func (s *Store) lastWriter() string {
	b, err := readFile(s.opts.FS, s.path(lockName), 128)
	var pid int
	var since string
	if _, bad := fmt.Sscanf(string(b), "pid %d since %s\n", &pid, &since); err != nil || bad != nil {
		return ""
	}
	if _, err := time.Parse(time.RFC3339, since); err != nil {
		return ""
	}
	return fmt.Sprintf(" (its last writer is process %d, since %s)", pid, since)
}

// checkUnlocked is for a reader that found no LOCK and so holds none. A store that somebody may
// write to has one, since a writer makes it before anything else: if there is one now, what was
// just read may be half before and half after its writing. A writer that comes later cannot make a
// read answer wrongly: ranges that held committed blocks are never written again, only punched, and
// what was punched fails its checksum.
func (s *Store) checkUnlocked() error {
	if s.lock != nil {
		return nil
	}
	names, err := s.opts.FS.List(s.dir)
	if err == nil && slices.Contains(names, lockName) {
		err = fmt.Errorf("a writer came while the store was opened without %s: %w", lockName, fault.ErrLocked)
	}
	return err
}
