package prooftest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Dir is where a Runner's store lies in a file system in memory.
const Dir = "/store"

// Runner carries steps out on a store and compares it with a model.
type Runner struct {
	Script *Script // the steps carried out so far; the last one is the one that failed
	Model  *Model
	Counts Counts
	Err    error // the first difference, or what went wrong

	answers []uint64 // hashes of what the store answered so far

	dir     string
	disk    vfs.FS
	crashes *crashfs.FS // the same; nil = a disk without crashes, or mem
	mem     *vfs.Mem    // the same; the only crash is a kill
	front   front       // nil = the store is on the disk itself
	wall    *wall
	store   *oribi.Store
	ctx     context.Context

	passed mvcc.Timestamp // at least every timestamp that the clock has passed since the store was opened, and no more: the next is above it

	// state guards what a picture of the disk, taken at any moment by another goroutine, is
	// compared with: the model, the batch that is being committed, and the table that is being made
	// or dropped. Reads of the model by the runner itself need no lock.
	state    sync.Mutex
	inFlight *outcome
	unsure   string
	altering *Step // the Alter that is being made

	alteredFrom uint32 // the schema version before it

	middle middle
}

var background = context.Background()

// wall is a clock on the wall that stands still until it is moved, and remembers how far the clocks
// of stores under it have come.
type wall struct {
	mu      sync.Mutex
	now     time.Time
	highest mvcc.Timestamp // at least every timestamp that a clock has handed out or passed, or nearly
}

func newWall() *wall { return &wall{now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)} }

func (w *wall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// clone is another wall clock at the same time.
func (w *wall) clone() *wall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &wall{now: w.now, highest: w.highest}
}

// pass notes that a store's clock may be past ts.
func (w *wall) pass(ts mvcc.Timestamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest = max(w.highest, ts)
}

// passed is how far a store's clock may have come.
func (w *wall) passed() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest.Time()
}

func (w *wall) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// NewRunner opens an empty store in memory.
func NewRunner(o Settings) *Runner { return newCrashRunner(o, crashfs.New(vfs.NewMem())) }

func newCrashRunner(o Settings, disk *crashfs.FS) *Runner {
	r := &Runner{Script: &Script{Settings: o}, Model: NewModel(), dir: Dir, disk: disk, crashes: disk, wall: newWall(), ctx: background}
	r.Err = r.open()
	return r
}

// front gives the file system that the store is opened on, over the disk. After a crash the disk is
// another one.
type front func(disk vfs.FS) vfs.FS

// NewDiskRunner opens an empty store in a directory of a file system. Kills and power cuts cannot
// be had there.
func NewDiskRunner(o Settings, disk vfs.FS, dir string) *Runner {
	o.NoCrashes = true
	r := &Runner{Script: &Script{Settings: o}, Model: NewModel(), dir: dir, disk: disk, wall: newWall(), ctx: background}
	r.Err = r.open()
	return r
}

// newMemRunner opens an empty store in memory, behind a file system.
func newMemRunner(o Settings, mem *vfs.Mem, front front) *Runner {
	r := &Runner{Script: &Script{Settings: o}, Model: NewModel(), dir: Dir, disk: mem, mem: mem, front: front, wall: newWall(), ctx: background}
	for _, err := range []error{mem.Mkdir(Dir), mem.SyncDir("/")} {
		if err != nil {
			r.Err = err
			return r
		}
	}
	r.Err = r.open()
	return r
}

// Store is the open store.
func (r *Runner) Store() *oribi.Store { return r.store }

// options are how the store is opened each time.
func (r *Runner) options(fsys vfs.FS) *oribi.Options {
	o := &r.Script.Settings
	opts := &oribi.Options{FS: fsys, Manual: !o.Background, FlushBytes: o.FlushBytes, RowSetBytes: o.RowSetBytes, History: oribi.HistoryForever,
		LogSegmentBytes: o.Segment, MemoryLimit: o.Memory, Policy: policyNamed(o.Policy)}
	if o.byHand() {
		opts.Progress = r.progress
	}
	if o.History != 0 {
		opts.History = o.History
	}
	if o.Hybrid {
		opts.Clock = mvcc.NewHybridClock(r.wall.time)
	} else {
		opts.Clock = mvcc.NewLogicalClock(mvcc.First)
	}
	return opts
}

func policyNamed(name string) compaction.Policy {
	switch name {
	case "":
		return nil
	case "none":
		return compaction.None{}
	}
	var o compaction.Overlap
	if _, err := fmt.Sscanf(name, "overlap%d", &o.Depth); err != nil {
		panic("no policy is called " + name) // the settings are wrong
	}
	return o
}

// written is a copy of the disk in memory as a kill leaves it.
func (r *Runner) written() *vfs.Mem {
	if r.crashes != nil {
		return r.crashes.Point().Kill()
	}
	return r.mem.Clone()
}

func (r *Runner) fs() vfs.FS {
	disk := r.disk
	if r.front != nil {
		disk = r.front(disk)
	}
	if r.Script.Settings.byHand() {
		disk = r.watched(disk)
	}
	return disk
}

func (r *Runner) open() (err error) {
	r.passed = r.Model.newest()
	r.store, err = oribi.Open(r.dir, r.options(r.fs()))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// Close ends the run. The store's error counts unless the run failed before.
func (r *Runner) Close() {
	if r.store == nil {
		return
	}
	if err := r.store.Close(); r.Err == nil && err != nil {
		r.Err = fmt.Errorf("close: %w", err)
	}
	r.store = nil
}

// Do carries out one step; false when the run has failed.
func (r *Runner) Do(st Step) bool {
	if r.Err != nil {
		return false
	}
	r.Script.Steps = append(r.Script.Steps, st)
	r.Counts.Steps++
	if err := r.try(&st); err != nil {
		r.Err = fmt.Errorf("step %d, %s %s: %w", len(r.Script.Steps), st.Kind, st.Table, err)
	}
	return r.Err == nil
}

// try makes an error of a panic, so that the history can be shrunk and printed.
func (r *Runner) try(st *Step) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.step(st)
}

func (r *Runner) step(st *Step) error {
	if st.Table != "" && st.Kind != Create && r.Model.Tables[st.Table] == nil {
		return nil // its creation was left out
	}
	switch st.Kind {
	case Create:
		return r.create(st)
	case Drop:
		return r.drop(st)
	case Alter:
		return r.alter(st)
	case Write:
		if st.During != "" {
			return r.meanwhile(st)
		}
		return r.write(st)
	case Ingest:
		return r.ingest(st)
	case Get:
		return r.get(st)
	case Find:
		return r.find(st)
	case Count:
		return r.count(st)
	case Many:
		return r.many(st)
	case Versions:
		return r.history(st)
	case Diff:
		return r.diff(st)
	case Flush, Compact, Merge, Deltas, Minor, Major, UndoGC:
		return r.rewrite(st)
	case Tick:
		if st.Time < 0 { // the store's clock may have seen how late it was
			r.wall.pass(mvcc.EndOf(r.wall.time()))
		}
		r.wall.move(st.Time)
		return nil
	case Verify:
		return r.verify()
	case Check:
		return r.check(st)
	case Hold:
		return r.hold(st)
	case Reopen, ReadOnly, Kill, Cut, Tear:
		return r.reopen(st)
	}
	return fmt.Errorf("unknown step")
}

// Run carries a whole script out.
func Run(s *Script) *Runner {
	r := NewRunner(s.Settings)
	for _, st := range s.Steps {
		if !r.Do(st) {
			break
		}
	}
	r.Close()
	return r
}

// Explore makes steps and carries them out, in memory, until more says that it is enough, and a
// last check of everything.
func Explore(o Settings, more func(Counts) bool) *Runner { return NewRunner(o).Explore(more) }

// Explore goes on with steps of the settings' seed until more says that it is enough, checks
// everything and closes the store.
func (r *Runner) Explore(more func(Counts) bool) *Runner {
	g := NewGenerator(r.Script.Settings)
	for r.Err == nil && more(r.Counts) {
		r.Do(g.Next(r))
	}
	r.Do(Step{Kind: Check})
	r.Do(Step{Kind: Verify})
	r.Close()
	return r
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6f72696269)) }
