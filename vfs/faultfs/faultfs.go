// Package faultfs is a file system over another one in which chosen operations fail.
//
// Every call of vfs.FS, vfs.File and vfs.Lock is one Call, numbered from 0, but FreeBytes, which
// cannot fail. A Rule says which calls fail and how: the n-th that matches, or the n-th and all
// behind it; before anything is done, after all is done, or half done; with the error of a broken
// or of a full disk, as package vfs gives it. A sync may fail and lose what was not synced besides.
//
//	disk := faultfs.New(vfs.NewMem())
//	fault := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write}, Name: "*.wal", Skip: 3, When: faultfs.Middle})
//	…
//	call, met := fault.First()
//
// Watch has a function called before each call: it may wait, so that the disk is slow, count, or
// refuse. Record keeps a list.
//
// All methods may be called by many goroutines at once, as those of the file system below.
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
	Close       Op = "close"
	LockWrite   Op = "lockwrite" // of the text in a lock file
	LockRead    Op = "lockread"
	LockCheck   Op = "lockcheck"
	Unlock      Op = "unlock"
)

// Changes lists the kinds that change what is on the disk or make it durable, but for Lock, which
// may make a file.
var Changes = []Op{Create, Mkdir, Remove, Rename, SyncDir, Write, Sync, Truncate, Preallocate, Punch, LockWrite}

// Looks lists the kinds that find out what is there and open it.
var Looks = []Op{Open, List, Stat, Lock, Size, LockRead, LockCheck}

// Call is one call.
type Call struct {
	N    int // how many there were before
	Op   Op
	Name string
	To   string // Rename: the new name
	// Exclusive tells of Open that it is for writing, of Lock that it is exclusive.
	Exclusive bool
	// Off and Len are the range of Read, Write, Preallocate and Punch. Of Truncate Len is the new
	// size.
	Off, Len int64
}

// Changes tells whether the call changes what is on the disk or makes it durable.
func (c *Call) Changes() bool { return slices.Contains(Changes, c.Op) }

// FS is the file system. Its zero value is of no use: see New.
type FS struct {
	under vfs.FS

	mu     sync.Mutex
	n      int
	counts map[Op]int
	watch  func(Call) error
	done   func(Call)
	rules  []*Fault
	record bool
	calls  []Call
}

// New makes a file system without a rule over another one.
func New(under vfs.FS) *FS { return &FS{under: under, counts: map[Op]int{}} }

// Under is the file system below.
func (f *FS) Under() vfs.FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under
}

// SetUnder goes on with another file system below, as after a crash. Open files stay on the old
// one.
func (f *FS) SetUnder(under vfs.FS) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.under = under
}

// Watch has fn called before each call from now on, by as many goroutines at once as call; nil for
// none. An error of fn is the result of the call, which does nothing, or half of what it should if
// the error is of Halfway.
func (f *FS) Watch(fn func(Call) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = fn
}

// WatchDone has fn called behind each call that succeeds, likewise.
func (f *FS) WatchDone(fn func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = fn
}

// tell calls the function of WatchDone and passes err on.
func (f *FS) tell(c Call, err error) error {
	f.mu.Lock()
	done := f.done
	f.mu.Unlock()
	if err == nil && done != nil {
		done(c)
	}
	return err
}

// Halfway makes an error for a function of Watch, after which the call does half of its work and
// fails with err.
func Halfway(err error) error { return &halfway{err} }

type halfway struct{ cause error }

func (h *halfway) Error() string { return h.cause.Error() }

// Count is how many calls of some kinds there were; of all kinds if none is named.
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

// Record begins a new list of calls, or ends with it.
func (f *FS) Record(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record, f.calls = on, nil
}

// Calls is the list since Record.
func (f *FS) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Fail adds a rule. Of several that match a call the one that was added first counts.
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

// judge counts a call and tells how it fails; nil if it does not.
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
			v = t.meet(c)
		} else {
			t.meet(c) // it counts
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

// matches tells whether the last elements of a name fit a pattern with as many.
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
		panic("faultfs: " + pattern + " is no pattern") // the test is wrong
	}
	return ok
}
