// Package history runs histories of a store and compares every answer with the model.
//
// A Generator generates steps from a seed and the model's state, from which it chooses operations
// that usually succeed. A Runner runs each step on a store and compares the result. Shrink shortens
// a failing history. Crashed is the disk image of a crash and the states that it may contain.
//
//	r := history.Explore(script.Settings{Seed: 7}, func(c history.Counts) bool { return c.Steps < 1000 })
//	if r.Err != nil {
//		fmt.Println(history.Shrink(r.Script, 30*time.Second))
//	}
//
// A Runner is not safe for concurrent use, except for the fields that State guards.
package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/keydir"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Dir is the directory of a Runner's store in a file system in memory.
const Dir = "/store"

// Runner runs steps on a store and compares it with a model.
type Runner struct {
	Script *script.Script // the steps run so far; the last one failed, if any did
	Model  *model.Model
	Counts Counts
	Err    error // the first difference or failure

	answers []uint64 // hashes of the store's results so far

	dir     string
	disk    vfs.FS
	crashes *crashfs.FS // the disk, if it can crash; else nil
	Mem     *vfs.Mem    // the disk, if it is in memory; its only crash is a kill
	front   front       // nil = the store is on the disk itself
	Wall    *Wall
	Store   *oribi.Store
	ctx     context.Context

	choices *rand.Rand // of background operations; nil for the store's own choices

	choosing sync.Mutex // guards choices while a store is open
	inside   bool       // the present rewrite has a flush inside

	passed mvcc.Timestamp // no timestamp above it has passed the clock since the store was opened

	// State guards the fields that describe the expected contents of the disk at any moment: the
	// model, the batch in flight, and the table being created or dropped. Other goroutines compare
	// disk images with these. The runner itself reads the model without the lock.
	State    sync.Mutex
	InFlight *model.Outcome
	Unsure   string
	Altering *script.Step // the Alter or Rename in progress

	alteredFrom uint32 // the schema version before an Alter

	middle middle

	whole bool // the table of the present step has no history that could have been dropped

	txs map[int]*transaction // those that are open, by number
}

// NewRunner opens an empty store in memory.
func NewRunner(o script.Settings) *Runner { return NewCrashRunner(o, crashfs.New(vfs.NewMem())) }

// NewCrashRunner opens an empty store on a disk.
func NewCrashRunner(o script.Settings, disk *crashfs.FS) *Runner {
	r := &Runner{Script: &script.Script{Settings: o}, Model: model.NewModel(), dir: Dir, disk: disk, crashes: disk,
		Wall: NewWall(), ctx: context.Background()}
	r.Err = r.open()
	return r
}

// front returns the file system over disk on which the store is opened. After a crash it is called
// with the new disk.
type front func(disk vfs.FS) vfs.FS

// NewDiskRunner opens an empty store in a directory of a file system. It does not support kills and
// power cuts.
func NewDiskRunner(o script.Settings, disk vfs.FS, dir string) *Runner {
	o.NoCrashes = true
	r := &Runner{Script: &script.Script{Settings: o}, Model: model.NewModel(), dir: dir, disk: disk,
		Wall: NewWall(), ctx: context.Background()}
	r.Err = r.open()
	return r
}

// NewMemRunner opens an empty store in memory, through the file system that front returns.
func NewMemRunner(o script.Settings, mem *vfs.Mem, front front) *Runner {
	r := &Runner{Script: &script.Script{Settings: o}, Model: model.NewModel(), dir: Dir, disk: mem, Mem: mem,
		front: front, Wall: NewWall(), ctx: context.Background()}
	for _, err := range []error{mem.Mkdir(Dir), mem.SyncDir("/")} {
		if err != nil {
			r.Err = err
			return r
		}
	}
	r.Err = r.open()
	return r
}

// ResumeRunner opens a store in memory that an earlier runner left, with its model and clock, over
// a file system.
func ResumeRunner(o script.Settings, m *model.Model, mem *vfs.Mem, w *Wall, front front) *Runner {
	r := &Runner{Script: &script.Script{Settings: o}, Model: m, dir: Dir, disk: mem, Mem: mem, front: front,
		Wall: w, ctx: context.Background()}
	r.Err = r.open()
	return r
}

// OpenOn opens the store on a different disk.
func (r *Runner) OpenOn(disk *crashfs.FS) error {
	r.disk, r.crashes = disk, disk
	return r.open()
}

// Usual ends what histories have set for the process: when key directories and row files are made, and
// the size of the cache. Tests that count reads call it first.
func Usual() { setCosts(false, false) }

func setCosts(eager, scarce bool) {
	keydir.Eager.Store(eager)
	rowpage.Eager.Store(eager)
	store.ScarceCache.Store(scarce)
}

// Options returns the options with which the store is opened.
func (r *Runner) Options(fsys vfs.FS) *oribi.Options {
	o := &r.Script.Settings
	opts := &oribi.Options{FS: fsys, Manual: !o.Background, FlushBytes: o.FlushBytes, RowSetBytes: o.RowSetBytes,
		History:         oribi.HistoryForever,
		LogSegmentBytes: o.Segment, MemoryLimit: o.Memory, Policy: policyNamed(o.Policy)}
	setCosts(o.Eager, o.Scarce) // also for concurrent histories: no result depends on it
	if r.choices = nil; o.Shuffled || !o.Background {
		r.choices = values.NewRand(o.Seed)
		opts.Schedule = r.schedule
	}
	if o.Manual() {
		opts.Progress = r.progress
	}
	if o.History != 0 {
		opts.History = o.History
	}
	if o.Hybrid {
		opts.Clock = mvcc.NewHybridClock(r.Wall.time)
	} else {
		opts.Clock = mvcc.NewLogicalClock(mvcc.First)
	}
	return opts
}

func policyNamed(name string) compaction.Policy {
	if name == "" {
		return nil
	}
	if p, ok := compaction.Named()[name]; ok {
		return p
	}
	var o compaction.Overlap
	if _, err := fmt.Sscanf(name, "overlap%d", &o.Depth); err != nil {
		panic("unknown policy " + name) // invalid settings
	}
	return o
}

// Written returns a copy of the disk in memory as a kill leaves it.
func (r *Runner) Written() *vfs.Mem {
	if r.crashes != nil {
		return r.crashes.Point().Kill()
	}
	return r.Mem.Clone()
}

func (r *Runner) fs() vfs.FS {
	disk := r.disk
	if r.front != nil {
		disk = r.front(disk)
	}
	if r.Script.Settings.Manual() {
		disk = r.watched(disk)
	}
	return disk
}

func (r *Runner) open() (err error) {
	r.passed = r.Model.Newest()
	r.Store, err = oribi.Open(r.dir, r.Options(r.fs()))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	r.present()
	return nil
}

// Close ends the run. The store's error counts unless the run failed before.
func (r *Runner) Close() {
	if r.Store == nil {
		return
	}
	err := r.rollbackAll(every)
	if err = errors.Join(err, r.Store.Close()); r.Err == nil && err != nil {
		r.Err = fmt.Errorf("close: %w", err)
	}
	r.Store = nil
}

// Do runs one step. It returns false if the run has failed.
func (r *Runner) Do(st script.Step) bool {
	if r.Err != nil {
		return false
	}
	r.Script.Steps = append(r.Script.Steps, st)
	r.Counts.Steps++
	r.present()
	if err := r.Try(&st); err != nil {
		r.Err = fmt.Errorf("step %d, %s %s: %w", len(r.Script.Steps), st.Kind, st.Table, err)
	}
	return r.Err == nil
}

// present sets the model's present time to the store's.
func (r *Runner) present() {
	if r.Store == nil || len(r.Model.Tables) == 0 {
		return
	}
	now, err := r.now()
	if err == nil && r.Script.Settings.Hybrid && mvcc.EndOf(now.Time())-now < stepTimestamps {
		// Otherwise the step may use up the microsecond, and rows expire in the middle of it.
		r.Wall.move(now.Time().Add(time.Microsecond).Sub(r.Wall.time()))
		now, err = r.now()
	}
	if err != nil {
		return // a step will find out
	}
	r.State.Lock()
	r.Model.Now = now
	r.State.Unlock()
	r.passed = max(r.passed, now)
	r.Wall.pass(now)
}

// stepTimestamps is more than the number of timestamps that a step takes.
const stepTimestamps = 2048

// now returns the present time of the store. It may write to the log, which takes State in runs with crashes.
func (r *Runner) now() (mvcc.Timestamp, error) {
	sn, err := r.Store.Snapshot(r.ctx)
	if err != nil {
		return 0, err
	}
	defer sn.Close()
	return sn.Timestamp(), nil
}

// Try runs a step and converts a panic to an error, for the history to be shrunk and printed.
func (r *Runner) Try(st *script.Step) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.step(st)
}

func (r *Runner) step(st *script.Step) error {
	if st.Table != "" && st.Kind != script.Create && r.Model.Tables[st.Table] == nil {
		return nil // the step that creates the table was removed
	}
	if err := r.beforeWrite(st); err != nil {
		return err
	}
	t, err := r.Store.Table(st.Table)
	r.whole = err == nil && t.Properties().HistoryFloor == mvcc.Min
	if st.InTx() {
		return r.inTransaction(st)
	}
	switch st.Kind {
	case script.Create:
		return r.create(st)
	case script.Drop:
		return r.drop(st)
	case script.Alter:
		return r.alter(st)
	case script.Rename:
		return r.rename(st)
	case script.Write, script.UpdateWhere, script.DeleteWhere, script.DeleteRange, script.Truncate, script.Restore:
		if st.During != "" {
			return r.during(st)
		}
		return r.commit(st)
	case script.Ingest:
		return r.ingest(st)
	case script.Get:
		return r.get(st)
	case script.Find:
		return r.find(st)
	case script.Count:
		return r.count(st)
	case script.Many:
		return r.many(st)
	case script.Versions:
		return r.history(st)
	case script.Diff:
		return r.diff(st)
	case script.Maintain:
		return r.maintain(st)
	case script.Flush, script.Compact, script.Merge, script.Deltas, script.Minor, script.Major,
		script.Recompress, script.UndoGC:
		return r.rewrite(st)
	case script.FlushAll:
		return r.flushAll()
	case script.Tick:
		if st.Time < 0 { // the store's clock may have seen how late it was
			r.Wall.pass(mvcc.EndOf(r.Wall.time()))
		}
		r.Wall.move(st.Time)
		return nil
	case script.Verify:
		return r.verify()
	case script.Check:
		return r.check(st)
	case script.Hold:
		return r.hold(st)
	case script.Copy:
		return r.copy()
	case script.Reopen, script.ReadOnly, script.Kill, script.Cut, script.Tear:
		return r.reopen(st)
	}
	return fmt.Errorf("unknown step")
}

// commit makes the step of a write batch or a bulk call.
func (r *Runner) commit(st *script.Step) error {
	if st.Bulk() {
		return r.bulk(st)
	}
	return r.write(st)
}

// Run runs a whole script.
func Run(s *script.Script) *Runner {
	r := NewRunner(s.Settings)
	for _, st := range s.Steps {
		if !r.Do(st) {
			break
		}
	}
	r.Close()
	return r
}

// Explore generates and runs steps in memory until more returns false, and then checks everything.
func Explore(o script.Settings, more func(Counts) bool) *Runner { return NewRunner(o).Explore(more) }

// Explore generates and runs steps of the settings' seed until more returns false, checks
// everything and closes the store.
func (r *Runner) Explore(more func(Counts) bool) *Runner {
	g := NewGenerator(r.Script.Settings)
	for r.Err == nil && more(r.Counts) {
		r.Do(g.Next(r))
	}
	r.Do(script.Step{Kind: script.Check})
	r.Do(script.Step{Kind: script.Verify})
	r.Close()
	return r
}
