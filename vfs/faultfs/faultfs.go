// Package faultfs is a file system over another one in which chosen operations fail.
//
// Every call of vfs.FS, vfs.File and vfs.Lock is one Call, numbered from 0, except FreeBytes, which
// cannot fail. A Rule specifies which calls fail and how: the n-th that matches, or the n-th and
// all later ones; before the call has an effect, after its full effect, or after part of it; with
// the error of a failing disk or of a full disk, as package vfs returns it. A failed sync may also
// lose unsynced data.
//
//	disk := faultfs.New(vfs.NewMem())
//	fault := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write}, Name: "*.wal", Skip: 3, When: faultfs.Middle})
//	…
//	call, failed := fault.First()
//
// Watch sets a function that is called before each call: it may wait, to simulate a slow disk,
// count, or refuse the call. Record lists the calls.
//
// All methods are safe for concurrent use if the underlying file system's methods are.
package faultfs

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// Op is a kind of call.
type Op string

// Kinds of calls.
const (
	Create      Op = "create"
	Open        Op = "open"
	Mkdir       Op = "mkdir"
	Remove      Op = "remove"
	Rename      Op = "rename"
	List        Op = "list"
	Stat        Op = "stat"
	SyncDir     Op = "syncdir"
	Lock        Op = "lock"
	Read        Op = "read"
	Write       Op = "write"
	Size        Op = "size"
	Sync        Op = "sync"
	Truncate    Op = "truncate"
	Preallocate Op = "preallocate"
	Punch       Op = "punch"
	Map         Op = "map"
	Copy        Op = "copy" // into a window
	Close       Op = "close"
	LockWrite   Op = "lockwrite" // of the text in a lock file
	LockRead    Op = "lockread"
	LockCheck   Op = "lockcheck"
	Unlock      Op = "unlock"
)

// Changes lists the kinds that change what is on the disk or make it durable, except Lock, which
// may create a file.
var Changes = []Op{Create, Mkdir, Remove, Rename, SyncDir, Write, Sync, Truncate, Preallocate, Punch, Copy, LockWrite}

// Looks lists the kinds that inspect or open what exists.
var Looks = []Op{Open, List, Stat, Lock, Size, Map, LockRead, LockCheck}

// Call is one call.
type Call struct {
	N    int // number of earlier calls
	Op   Op
	Name string
	To   string // Rename: the new name
	// Exclusive reports whether an Open is for writing, or a Lock exclusive.
	Exclusive bool
	// Off and Len are the range of Read, Write, Preallocate, Punch, Map and Copy. Of Truncate Len is
	// the new size.
	Off, Len int64
}

// Changes reports whether the call changes what is on the disk or makes it durable.
func (c *Call) Changes() bool { return slices.Contains(Changes, c.Op) }

// FS is the file system. Use New to create one.
type FS struct {
	base vfs.FS

	mu     sync.Mutex
	n      int
	counts map[Op]int
	watch  func(Call) error
	done   func(Call)
	rules  []*Fault
	record bool
	calls  []Call
}

// New returns a file system on top of another one, without rules.
func New(base vfs.FS) *FS { return &FS{base: base, counts: map[Op]int{}} }

// Base returns the underlying file system.
func (f *FS) Base() vfs.FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.base
}

// SetBase replaces the underlying file system, as after a crash. Open files stay on the old one.
func (f *FS) SetBase(base vfs.FS) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = base
}

// Watch sets a function that is called before each call, concurrently if the calls are concurrent;
// nil removes it. If fn returns an error, the call has no effect and returns it; if the error was
// made by Halfway, the call does half of its work first.
func (f *FS) Watch(fn func(Call) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = fn
}

// WatchDone sets a function that is called at the end of each successful call.
func (f *FS) WatchDone(fn func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = fn
}

// finished calls the function of WatchDone if err is nil, and returns err.
func (f *FS) finished(c Call, err error) error {
	f.mu.Lock()
	done := f.done
	f.mu.Unlock()
	if err == nil && done != nil {
		done(c)
	}
	return err
}

// Halfway returns an error for a function of Watch to return: the call does half of its work and
// fails with err.
func Halfway(err error) error { return &halfway{err} }

type halfway struct{ cause error }

func (h *halfway) Error() string { return h.cause.Error() }

// Count returns the number of calls of the given kinds, of all kinds if none is given.
func (f *FS) Count(ops ...Op) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(ops) == 0 {
		return f.n
	}
	for _, op := range ops {
		n += f.counts[op]
	}
	return n
}

// Record starts a new list of calls, or stops listing them.
func (f *FS) Record(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.calls = on, nil
}

// Calls returns the calls since Record.
func (f *FS) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Fail adds a rule. If several match a call, the rule that was added first applies.
func (f *FS) Fail(r Rule) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &Fault{rule: r, fs: f}
	f.rules = append(f.rules, t)
	return t
}

// Heal removes all rules.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// judge counts a call and returns how it fails, nil if it does not.
func (f *FS) judge(c Call) *verdict {
	f.mu.Lock()
	c.N = f.n
	f.n++
	f.counts[c.Op]++
	if f.record {
		f.calls = append(f.calls, c)
	}
	watch := f.watch
	var v *verdict
	for _, t := range f.rules {
		if v == nil {
			v = t.match(c)
		} else {
			t.match(c) // for its count
		}
	}
	f.mu.Unlock()
	if watch == nil {
		return v
	}
	switch err := watch(c).(type) {
	case nil:
		return v
	case *halfway:
		return &verdict{err: err.cause, when: Middle}
	default:
		return &verdict{err: err}
	}
}

// matches reports whether the last elements of a name match a pattern with as many elements.
func matches(pattern, name string) bool {
	name = filepath.ToSlash(name)
	from := len(name)
	for range strings.Count(pattern, "/") + 1 {
		if from = strings.LastIndexByte(name[:from], '/'); from < 0 {
			break
		}
	}
	ok, err := filepath.Match(pattern, name[from+1:])
	if err != nil {
		panic("faultfs: " + pattern + " is not a valid pattern") // a bug in the test
	}
	return ok
}
