package faultfs

import (
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/oribi-db/oribi/vfs"
)

// When specifies how far a call gets before it fails.
type When int

const (
	// Before: the call has no effect.
	Before When = iota
	// After: the call has its full effect and fails nevertheless. A file that was opened is closed,
	// a lock that was acquired is released.
	After
	// Middle: a Read, Write, Copy, Preallocate, Punch or Truncate processes half of its bytes; other
	// calls have no effect.
	Middle
)

// Loss specifies what happens to unsynced bytes when a Sync of a file fails.
type Loss int

const (
	// Kept: the next Sync writes them.
	Kept Loss = iota
	// Hidden: they never reach the disk, although reads return them and a later Sync succeeds. See
	// vfs.Mem.
	Hidden
	// Gone: they never reach the disk, and reads return what is on the disk.
	Gone
)

// Errors of disks. Each is returned as package vfs returns it: with the call and the name.
// ErrSpace is vfs.ErrNoSpace too, except for a Sync.
var (
	ErrIO    error = syscall.EIO
	ErrSpace error = syscall.ENOSPC
)

// Forever, as a rule's Times, makes all calls fail.
const Forever = -1

// Rule specifies which calls fail, and how. With the zero value the next call of any kind fails
// with ErrIO before it has any effect.
type Rule struct {
	Ops []Op // kinds of calls that match; nil = all
	// Name is a pattern of filepath.Match for the last elements of the name, as many as the pattern
	// has: "wal/*" matches "/store/wal/1". If Name is empty, the rule applies to all names.
	Name string
	// Match is an additional condition, unless it is nil. It may be called concurrently, and must
	// not call the FS.
	Match func(Call) bool
	Skip  int // number of matching calls that succeed first
	Times int // number of calls that fail then; 0 = 1
	When  When
	Err   error // nil = ErrIO; an error that is not a syscall.Errno is returned unchanged
	// Loss applies to the Sync of files of a vfs.Mem. On other file systems it panics.
	Loss Loss
}

// Fault is an active rule and its statistics.
type Fault struct {
	rule Rule
	fs   *FS

	// Guarded by fs.mu.
	matched  int
	failures int
	first    Call
}

// Matched returns how many calls matched, failed or not.
func (t *Fault) Matched() int {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.matched
}

// Failures returns how many calls the rule made fail.
func (t *Fault) Failures() int {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.failures
}

// First returns the first call that the rule made fail.
func (t *Fault) First() (c Call, failed bool) {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.first, t.failures > 0
}

// match counts a matching call and returns how it fails, nil if it does not. The caller holds the
// lock of the FS.
func (t *Fault) match(c Call) *verdict {
	r := &t.rule
	switch {
	case r.Ops != nil && !slices.Contains(r.Ops, c.Op),
		r.Name != "" && !matches(r.Name, c.Name) && (c.To == "" || !matches(r.Name, c.To)),
		r.Match != nil && !r.Match(c):
		return nil
	}
	n := t.matched - r.Skip
	t.matched++
	if n < 0 || r.Times != Forever && n >= max(r.Times, 1) {
		return nil
	}
	if t.failures++; t.failures == 1 {
		t.first = c
	}
	return &verdict{err: diskError(c, r.Err), when: r.When, loss: r.Loss}
}

// diskError returns err in the form in which package os, and package vfs on top of it, return it.
func diskError(c Call, err error) error {
	if err == nil {
		err = ErrIO
	}
	number, ok := err.(syscall.Errno)
	if !ok {
		return err
	}
	err = &fs.PathError{Op: string(c.Op), Path: c.Name, Err: number}
	if c.Op == Rename {
		err = &os.LinkError{Op: string(c.Op), Old: c.Name, New: c.To, Err: number}
	}
	if number == syscall.ENOSPC && c.Op != Sync && c.Op != SyncDir {
		err = vfs.NoSpaceError(err)
	}
	return err
}

// verdict is how a call fails.
type verdict struct {
	err  error
	when When
	loss Loss
}

// run runs a call. half is the function for a partial effect, or nil if the call cannot have one.
func (f *FS) run(c Call, do, half func() error) error {
	v := f.judge(c)
	switch {
	case v == nil:
		return f.finished(c, do())
	case v.when == After:
		if err := do(); err != nil {
			return err
		}
	case v.when == Middle && half != nil:
		if err := half(); err != nil {
			return err
		}
	}
	return v.err
}
