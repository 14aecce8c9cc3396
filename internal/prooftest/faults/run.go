package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// faultRun is one run of a trace.
type faultRun struct {
	kind     *Kind // nil = nothing fails
	r        *history.Runner
	disk     *faultfs.FS
	fault    *faultfs.Fault
	poisoned bool
	reported bool // a call has failed with the fault
	counts   Counts
}

func (t *Trace) run(kind *Kind, n int) *faultRun {
	mem := vfs.NewMem()
	x := &faultRun{kind: kind, disk: faultfs.New(mem)}
	rule := faultfs.Rule{Match: func(faultfs.Call) bool { return false }}
	if kind != nil {
		rule = kind.rule
		rule.Skip = n
	}
	x.fault = x.disk.Fail(rule)
	o := t.f.Settings
	o.NoCrashes = true
	over := func(under vfs.FS) vfs.FS {
		x.disk.SetUnder(under)
		return x.disk
	}
	g := history.NewGenerator(o)
	if t.image == nil {
		x.r = history.NewMemRunner(o, mem, over)
	} else {
		o.Seed++ // other steps than those of the prelude
		g = history.NewGenerator(o)
		g.Pools = maps.Clone(t.pools)
		x.r = history.ResumeRunner(o, t.model.Clone(), t.image.Clone(), t.wall.Clone(), over)
	}
	if x.r.Err != nil {
		x.r.Err = x.explained(x.r.Err)
		return x
	}
	g.Weight = history.WriteHeavy()
	for range t.f.Steps {
		st := g.Next(x.r)
		if st.Kind == script.Kill && x.poisoned {
			break
		}
		if !x.step(st) {
			break
		}
	}
	x.close()
	return x
}

func (x *faultRun) met() bool { return x.fault.Met() > 0 }

// step carries a step out that may meet the fault; false when the run is over.
func (x *faultRun) step(st script.Step) bool {
	r := x.r
	r.Script.Steps = append(r.Script.Steps, st)
	err := r.Try(&st)
	switch {
	case err == nil && x.poisoned && changes(&st) && r.Model.Tables[st.Table] != nil:
		err = fmt.Errorf("it succeeds on a poisoned store")
	case err == nil:
		return true
	case !x.met():
	case st.Kind == script.Verify && !x.kind.reads && strings.Contains(err.Error(), "ANCHOR"):
		return true // a slot of which half was written is found until it is written again
	case st.Kind == script.Verify && x.kind.reads:
		if err = r.Try(&st); err == nil { // it has reported what it could not read
			return true
		}
	case reads(&st):
		// A read after all visible timestamps waits for a batch that never commits.
		if st.Read.AsOf && st.Read.At > r.Model.Newest() && errors.Is(err, oribi.ErrPoisoned) {
			return true
		}
		if x.kind.reads && x.explained(err) == nil {
			if err = r.Try(&st); err == nil { // once more
				return true
			}
		}
	case st.Kind == script.Reopen || st.Kind == script.ReadOnly || st.Kind == script.Kill:
		// Whether Close or Open met the fault: the store is not open, or has to be closed once
		// more.
		if err = x.explained(err); err == nil {
			x.close()
			return false
		}
	default:
		if err = x.explained(err); err == nil {
			return x.again(&st)
		}
	}
	r.Err = fmt.Errorf("step %d, %s %s: %w", len(r.Script.Steps), st.Kind, st.Table, err)
	return false
}

// changes reports whether a step must fail on a poisoned store.
func changes(st *script.Step) bool {
	switch st.Kind {
	case script.Create, script.Drop, script.Alter, script.Ingest, script.Flush, script.Compact, script.Deltas, script.Minor, script.Major, script.UndoGC:
		return true
	}
	return false
}

// reads reports whether a step only reads tables.
func reads(st *script.Step) bool {
	switch st.Kind {
	case script.Get, script.Find, script.Count, script.Check, script.Many, script.Versions, script.Diff:
		return true
	}
	return false
}

// explained takes errors that the fault accounts for: those that wrap it, or its consequence.
func (x *faultRun) explained(err error) error {
	switch {
	case !x.met():
		return err
	case errors.Is(err, oribi.ErrPoisoned), x.kind.full() && errors.Is(err, oribi.ErrNoSpace), !x.kind.full() && errors.Is(err, x.cause()):
		x.reported = true
		return nil
	}
	return err
}

func (x *faultRun) cause() error {
	if x.kind.rule.Err != nil {
		return x.kind.rule.Err
	}
	return syscall.EIO
}

// again goes on after a step that failed: on a poisoned store with what is left to do there, else
// with the same step.
func (x *faultRun) again(st *script.Step) bool {
	r := x.r
	for tries := 0; ; tries++ {
		if cause := r.Store.Poisoned(); cause != nil {
			if !x.poisoned {
				x.poisoned = true
				x.counts.Poisoned++
			}
			return true
		}
		x.counts.Refused++
		// Nothing was changed: the batch is not in flight any more, the table is as it was.
		r.State.Lock()
		r.InFlight, r.Unsure, r.Altering = nil, "", nil
		r.State.Unlock()
		if x.kind.ever() {
			return true
		}
		err := r.Try(st)
		if err == nil {
			return true
		}
		if x.explained(err) != nil || tries > 2*fullFor {
			r.Err = fmt.Errorf("step %d, %s, once more: %w", len(r.Script.Steps), st.Kind, err)
			return false
		}
	}
}

// close closes the store and checks that it has released the disk. After the fault its error may be
// any consequence of the fault.
func (x *faultRun) close() {
	r := x.r
	if r.Store != nil {
		err := r.Store.Close()
		if err != nil {
			err = x.explained(err)
		}
		if r.Err == nil && err != nil {
			r.Err = fmt.Errorf("close: %w", err)
		}
		r.Store = nil
	}
	l, err := r.Mem.Lock(filepath.Join(history.Dir, "LOCK"), vfs.LockCreate)
	if err == nil {
		err = l.Close()
	}
	if r.Err == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Err = fmt.Errorf("closed, but %w", err)
	}
}

// recover opens what a kill and what a power cut leaves of the store; and, where a sync lost
// something, what a power cut leaves once a writer has opened it after the kill: by then all that
// it found has to be there.
func (x *faultRun) recover() error {
	if err := x.cutAfterKill(); err != nil {
		return fmt.Errorf("%s, opened, then a power cut: %w", script.Kill, err)
	}
	for _, kind := range []script.Kind{script.Kill, script.Cut} {
		p := x.picture(kind)
		if err := p.Format(); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		r, err := p.Recover()
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if r.Do(script.Step{Kind: script.Verify}); r.Err != nil {
			return fmt.Errorf("%s: %w", kind, r.Err)
		}
		r.Close()
	}
	return nil
}

// loss returns the kind of loss at a sync.
func (x *faultRun) loss() faultfs.Loss {
	if x.kind == nil {
		return faultfs.Kept
	}
	return x.kind.rule.Loss
}

// picture returns the image that a kill or a power cut leaves.
func (x *faultRun) picture(kind script.Kind) *history.Crashed {
	p := x.r.Crashed()
	if p.Image = x.r.Mem.Clone(); kind == script.Cut {
		p.Image = x.r.Mem.Crash()
	}
	if kind == script.Kill && x.loss() != faultfs.Gone { // else the disk has lost batches before the kill
		p.Least = len(p.Model.Commits)
	}
	return p
}

// cutAfterKill cuts the power directly after opening the image of a kill. Closing the store first
// would write the ends of files again.
func (x *faultRun) cutAfterKill() error {
	if x.loss() == faultfs.Kept {
		return nil
	}
	p := x.picture(script.Kill)
	opts := p.Runner().Options(p.Image)
	opts.ErrorIfMissing = true
	var cut *vfs.Mem
	n, _, err := p.Look(opts, p.Model.Moments(p.Least), func(*oribi.Store) error {
		cut = p.Image.Crash()
		return nil
	})
	if errors.Is(err, oribi.ErrNotStore) {
		return nil // its creation was incomplete
	}
	if err != nil {
		return err
	}
	after := x.picture(script.Kill)
	after.Image, after.Least = cut, n
	r, err := after.Recover()
	if err == nil {
		r.Close()
		err = r.Err
	}
	return err
}
