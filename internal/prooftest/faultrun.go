package prooftest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// faultRun is one run of a trace.
type faultRun struct {
	kind     *FaultKind // nil = nothing fails
	r        *Runner
	disk     *faultfs.FS
	fault    *faultfs.Fault
	poisoned bool
	told     bool // a call has failed with the fault
	counts   FaultCounts
}

func (t *FaultTrace) run(kind *FaultKind, n int) *faultRun {
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
	g := NewGenerator(o)
	if t.image == nil {
		x.r = newMemRunner(o, mem, over)
	} else {
		o.Seed++ // other steps than those of the prelude
		g = NewGenerator(o)
		g.pools = maps.Clone(t.pools)
		x.r = &Runner{Script: &Script{Settings: o}, Model: t.model.clone(), dir: Dir, mem: t.image.Clone(), front: over, wall: t.wall.clone(), ctx: background}
		x.r.disk = x.r.mem
		x.r.Err = x.r.open()
	}
	if x.r.Err != nil {
		x.r.Err = x.explained(x.r.Err)
		return x
	}
	g.weight = faultWeights()
	for range t.f.Steps {
		st := g.Next(x.r)
		if st.Kind == Kill && x.poisoned {
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
func (x *faultRun) step(st Step) bool {
	r := x.r
	r.Script.Steps = append(r.Script.Steps, st)
	err := r.try(&st)
	switch {
	case err == nil && x.poisoned && changes(&st) && r.Model.Tables[st.Table] != nil:
		err = fmt.Errorf("it succeeds on a poisoned store")
	case err == nil:
		return true
	case !x.met():
	case st.Kind == Verify && !x.kind.reads && strings.Contains(err.Error(), "ANCHOR"):
		return true // a slot of which half was written is found until it is written again
	case st.Kind == Verify && x.kind.reads:
		if err = r.try(&st); err == nil { // it has reported what it could not read
			return true
		}
	case reads(&st):
		// A read behind all that is visible waits for the batch that will never be.
		if st.Read.AsOf && st.Read.At > r.Model.newest() && errors.Is(err, oribi.ErrPoisoned) {
			return true
		}
		if x.kind.reads && x.explained(err) == nil {
			if err = r.try(&st); err == nil { // once more
				return true
			}
		}
	case st.Kind == Reopen || st.Kind == ReadOnly || st.Kind == Kill:
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

// changes tells whether a step has to fail on a poisoned store.
func changes(st *Step) bool {
	switch st.Kind {
	case Create, Drop, Alter, Ingest, Flush, Compact, Deltas, Minor, Major, UndoGC:
		return true
	}
	return false
}

// reads tells whether a step does nothing but read tables.
func reads(st *Step) bool {
	switch st.Kind {
	case Get, Find, Count, Check, Many, Versions, Diff:
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
		x.told = true
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
func (x *faultRun) again(st *Step) bool {
	r := x.r
	for tries := 0; ; tries++ {
		if cause := r.store.Poisoned(); cause != nil {
			if !x.poisoned {
				x.poisoned = true
				x.counts.Poisoned++
			}
			return true
		}
		x.counts.Refused++
		// Nothing was changed: the batch is not in flight any more, the table is as it was.
		r.state.Lock()
		r.inFlight, r.unsure, r.altering = nil, "", nil
		r.state.Unlock()
		if x.kind.ever() {
			return true
		}
		err := r.try(st)
		if err == nil {
			return true
		}
		if x.explained(err) != nil || tries > 2*fullFor {
			r.Err = fmt.Errorf("step %d, %s, once more: %w", len(r.Script.Steps), st.Kind, err)
			return false
		}
	}
}

// close closes the store and looks whether it has let go of the disk. After the fault its error may
// be anything that the fault accounts for.
func (x *faultRun) close() {
	r := x.r
	if r.store != nil {
		err := r.store.Close()
		if err != nil {
			err = x.explained(err)
		}
		if r.Err == nil && err != nil {
			r.Err = fmt.Errorf("close: %w", err)
		}
		r.store = nil
	}
	l, err := r.mem.Lock(filepath.Join(Dir, "LOCK"), vfs.LockCreate)
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
		return fmt.Errorf("%s, opened, then a power cut: %w", Kill, err)
	}
	for _, kind := range []Kind{Kill, Cut} {
		p := x.picture(kind)
		if err := p.format(); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		r, err := p.recover()
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if r.Do(Step{Kind: Verify}); r.Err != nil {
			return fmt.Errorf("%s: %w", kind, r.Err)
		}
		r.Close()
	}
	return nil
}

// loss is what a sync loses.
func (x *faultRun) loss() faultfs.Loss {
	if x.kind == nil {
		return faultfs.Kept
	}
	return x.kind.rule.Loss
}

// picture is what a kill or a power cut leaves of the store.
func (x *faultRun) picture(kind Kind) *picture {
	m := x.r.Model.clone()
	image, least := x.r.mem.Clone(), len(m.Commits)
	if kind == Cut {
		image = x.r.mem.Crash()
	}
	if kind == Cut || x.loss() == faultfs.Gone { // batches that the disk has lost before the kill
		least = m.Durable
	}
	return &picture{model: m, image: image, least: least, inFlight: x.r.inFlight.rebase(m), unsure: x.r.unsure, altering: x.r.altering,
		alteredFrom: x.r.alteredFrom, settings: x.r.Script.Settings, wall: x.r.wall}
}

// cutAfterKill cuts the power right behind the opening of what a kill left. Closing it would write
// the ends of files again.
func (x *faultRun) cutAfterKill() error {
	if x.loss() == faultfs.Kept {
		return nil
	}
	p := x.picture(Kill)
	opts := p.runner().options(p.image)
	opts.ErrorIfMissing = true
	var cut *vfs.Mem
	n, _, err := p.look(opts, p.model.moments(p.least), func(*oribi.Store) error {
		cut = p.image.Crash()
		return nil
	})
	if errors.Is(err, oribi.ErrNotStore) {
		return nil // it was never made to its end
	}
	if err != nil {
		return err
	}
	after := x.picture(Kill)
	after.image, after.least = cut, n
	r, err := after.recover()
	if err == nil {
		r.Close()
		err = r.Err
	}
	return err
}

// format finishes a store whose making met the fault.
func (p *picture) format() error {
	r := &Runner{Script: &Script{Settings: p.settings}, Model: p.model, dir: Dir, disk: p.image, mem: p.image, wall: p.wall, ctx: background}
	opts := r.options(p.image)
	opts.ErrorIfMissing = true
	s, err := oribi.Open(Dir, opts)
	switch {
	case errors.Is(err, oribi.ErrNotStore) && len(p.model.Tables) == 0 && p.model.Durable == 0:
		s, err = oribi.Open(Dir, r.options(p.image))
	}
	if err != nil {
		return err
	}
	return s.Close()
}
