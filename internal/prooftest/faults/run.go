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
	kind     *Kind // nil = no fault
	r        *history.Runner
	disk     *faultfs.FS
	fault    *faultfs.Fault
	poisoned bool
	reported bool // a call of the store returned the fault's error, or a consequence
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
	over := func(base vfs.FS) vfs.FS {
		x.disk.SetBase(base)
		return x.disk
	}
	g := history.NewGenerator(o)
	if t.image == nil {
		x.r = history.NewMemRunner(o, mem, over)
	} else {
		o.Seed++ // steps different from the prelude's
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

func (x *faultRun) met() bool { return x.fault.Failures() > 0 }

// step runs a step, which the fault may fail. It reports whether the run continues.
func (x *faultRun) step(st script.Step) bool {
	r := x.r
	r.Script.Steps = append(r.Script.Steps, st)
	exclusive := r.Exclusive(&st)
	err := r.Try(&st)
	switch {
	case err == nil && x.poisoned && changes(&st) && r.Model.Tables[st.Table] != nil:
		err = fmt.Errorf("succeeded on a poisoned store")
	case err == nil:
		return true
	case !x.met():
	case st.Kind == script.Verify && !x.kind.reads && strings.Contains(err.Error(), "ANCHOR"):
		return true // Verify reports a half-written slot until the store writes it again
	case st.Kind == script.Verify && x.kind.reads:
		if err = r.Try(&st); err == nil { // the failed attempt reported the unreadable file
			return true
		}
	case reads(&st):
		// A read after all visible timestamps, or the first one of an exclusive attempt in a table, waits for
		// a batch that never commits.
		if (exclusive || st.Read.AsOf && st.Read.At > r.Model.Newest()) && errors.Is(err, oribi.ErrPoisoned) {
			return true
		}
		if x.kind.reads && x.explained(err) == nil {
			if err = r.Try(&st); err == nil { // a retry succeeds
				return true
			}
		}
	case st.Kind == script.Reopen || st.Kind == script.ReadOnly || st.Kind == script.Kill:
		// Close or Open met the fault. Either the store is not open, or it must be closed again.
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
	case script.Create, script.Drop, script.Alter, script.Rename, script.UpdateWhere, script.DeleteWhere,
		script.DeleteRange, script.Truncate, script.Restore, script.Ingest, script.Flush, script.Compact, script.Deltas,
		script.Minor, script.Major, script.Recompress, script.UndoGC:
		return true
	}
	return false
}

// reads reports whether a step only reads tables.
func reads(st *script.Step) bool {
	switch st.Kind {
	case script.Get, script.Find, script.Count, script.Check, script.Many, script.Versions,
		script.Diff, script.TxGet, script.TxScan:
		return true
	}
	return false
}

// explained returns nil if the fault explains err, that is, if err wraps the fault's error or that
// of a poisoned store. Otherwise it returns err.
func (x *faultRun) explained(err error) error {
	switch {
	case !x.met():
		return err
	case errors.Is(err, oribi.ErrPoisoned), x.kind.full() && errors.Is(err, oribi.ErrNoSpace),
		!x.kind.full() && errors.Is(err, x.cause()):
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

// again handles a step that failed because of the fault. If the store is not poisoned, it retries
// the step, unless the fault is permanent. It reports whether the run continues.
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
		// The step changed nothing: no batch is in flight, and the table is unchanged.
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
			r.Err = fmt.Errorf("step %d, %s, retried: %w", len(r.Script.Steps), st.Kind, err)
			return false
		}
	}
}

// close closes the store and checks that it has released its lock. The fault may explain an error
// of Close.
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
		r.Err = fmt.Errorf("lock of the closed store: %w", err)
	}
}

// recover opens and compares the images that a kill and a power cut leave of the store. Where the
// fault made a sync lose data, it also cuts the power after a writer has opened the image of the
// kill: everything that the writer found must survive.
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
	n, _, err := p.Look(opts, p.Model.SurveyTimestamps(p.Least), func(*oribi.Store) error {
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
