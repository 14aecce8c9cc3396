package faultfs

import (
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/oribi-db/oribi/vfs"
)

// When is how far a call gets before it fails.
type When int

const (
	// Before: nothing is done.
	Before When = iota
	// After: everything is done, and the call fails all the same. A file that was opened is closed,
	// a lock that was taken is released.
	After
	// Middle: of a Read, Write, Preallocate, Punch and Truncate half of the bytes are done; of
	// others nothing.
	Middle
)

// Loss says what happens to unsynced bytes when a Sync of a file fails.
type Loss int

const (
	// Kept: the next Sync writes it.
	Kept Loss = iota
	// Hidden: it never reaches the disk, though reads show it and a later Sync succeeds. See
	// vfs.Mem.
	Hidden
	// Gone: it never reaches the disk, and reads show what is there.
	Gone
)

// Errors of disks. Each is returned as package vfs returns it: with the call and the name, and that
// of a full disk, except for a Sync, as vfs.ErrNoSpace too.
var (
	ErrIO    error = syscall.EIO
	ErrSpace error = syscall.ENOSPC
)

// Forever as a rule's Times lets all calls fail.
const Forever = -1

// Rule says which calls fail, and how. With the zero value the next call of any kind fails with
// ErrIO before it does anything.
type Rule struct {
	Ops   []Op            // kinds of calls that match; nil = all
	Name  string          // pattern of filepath.Match for as many last elements of the name as it has itself, "wal/*"; empty = all
	Match func(Call) bool // what more must hold; nil = nothing. It may be called by many goroutines, and must not call the FS
	Skip  int             // so many calls that match succeed first
	Times int             // then so many fail; 0 = 1
	When  When
	Err   error // nil = ErrIO; one that is no syscall.Errno is returned as it is
	// Loss is for the Sync of files of a vfs.Mem. On another file system it panics.
	Loss Loss
}

// Fault is a rule in effect, and what it has done.
type Fault struct {
	rule Rule
	fs   *FS

	// Guarded by fs.mu.
	matched int
	met     int
	first   Call
}

// Matched returns how many calls matched, failed or not.
func (t *Fault) Matched() int {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.matched
}

// Met returns how many calls the rule made fail.
func (t *Fault) Met() int {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.met
}

// First returns the first call that the rule made fail.
func (t *Fault) First() (c Call, met bool) {
	t.fs.mu.Lock()
	defer t.fs.mu.Unlock()
	return t.first, t.met > 0
}

// meet counts a call that matches, and returns how it fails, nil if it does not. The caller holds
// the lock of the FS.
func (t *Fault) meet(c Call) *verdict {
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
	if t.met++; t.met == 1 {
		t.first = c
	}
	return &verdict{err: diskError(c, r.Err), when: r.When, loss: r.Loss}
}

// diskError returns err as package os, and package vfs on top of it, would return it.
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

// run does a call. half is what can be half done; nil if nothing can.
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
