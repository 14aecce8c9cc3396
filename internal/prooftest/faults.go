package prooftest

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/vfs"
)

// Faults runs one history again and again, each time with another change of the disk that fails.
type Faults struct {
	Settings Settings
	Steps    int
	// Full makes the disk full: the chosen change and the next few of those that take space fail with ErrNoSpace. Else the chosen
	// change fails with another error, once.
	Full bool
}

// FaultCounts are how much Faults did.
type FaultCounts struct {
	Runs     int64
	Poisoned int64 // stores that were read-only from the fault on
	Refused  int64 // calls that failed and could be made again
	Unseen   int64 // runs in which no call failed
}

// Add sums two up.
func (c *FaultCounts) Add(o FaultCounts) {
	c.Runs += o.Runs
	c.Poisoned += o.Poisoned
	c.Refused += o.Refused
	c.Unseen += o.Unseen
}

// The errors of a broken and of a full disk, as package vfs gives them.
var (
	errInjected error = syscall.EIO
	errFull           = fmt.Errorf("%w: %w", oribi.ErrNoSpace, syscall.ENOSPC)
)

const fullFor = 3 // changes

// Changes is how many changes of the disk the history makes without a fault.
func (f Faults) Changes() (int, error) {
	x := f.run(-1)
	return x.trap.Changes(), x.r.Err
}

// Run fails the n-th change. What must hold: the call that meets the fault says so; reads go on with the right answers; a store that
// is poisoned takes nothing more, another one takes the same call again; all that was acknowledged is there after a reopening,
// at most one batch more, and only the one whose commit failed.
func (f Faults) Run(n int) (*Script, FaultCounts, error) {
	x := f.run(n)
	x.counts.Runs++
	if !x.told {
		x.counts.Unseen++
	}
	if x.r.Err != nil {
		return x.r.Script, x.counts, x.r.Err
	}
	if err := x.recover(); err != nil {
		return x.r.Script, x.counts, fmt.Errorf("after the fault: %w", err)
	}
	return x.r.Script, x.counts, nil
}

type faultRun struct {
	f        Faults
	at       int
	r        *Runner
	mem      *vfs.Mem
	trap     *Trap
	fired    bool
	poisoned bool
	told     bool // a call has failed with the fault
	where    string
	counts   FaultCounts
}

func (f Faults) run(n int) *faultRun {
	x := &faultRun{f: f, at: n, mem: vfs.NewMem()}
	x.trap = &Trap{FS: x.mem, Before: x.fail}
	o := f.Settings
	o.NoCrashes = true
	x.r = newRunner(o, x.mem, func(vfs.FS) vfs.FS { return x.trap })
	if x.r.Err != nil {
		if x.fired {
			x.r.Err = x.explained(x.r.Err)
		}
		return x
	}
	g := NewGenerator(o)
	for range f.Steps {
		st := g.Next(x.r)
		if x.fired && x.r.store == nil || !x.step(st) {
			break
		}
	}
	x.close()
	return x
}

// fail is called before each change of the disk.
func (x *faultRun) fail(c Change) error {
	switch {
	case x.at < 0 || c.N < x.at:
		return nil
	case x.f.Full && c.N < x.at+fullFor && (c.Op == "write" || c.Op == "preallocate" || c.Op == "create" || c.Op == "mkdir"):
		x.fired = true
		x.where = c.Op + " " + c.Name
		return fmt.Errorf("%s: %w", c.Name, errFull)
	case !x.f.Full && c.N == x.at:
		x.fired = true
		x.where = c.Op + " " + c.Name
		return fmt.Errorf("%s: %w", c.Name, errInjected)
	}
	return nil
}

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
	case !x.fired:
	case st.Kind == Get || st.Kind == Find || st.Kind == Count || st.Kind == Check:
		// A read behind all that is visible waits for the batch that will never be.
		if st.Read.AsOf && st.Read.At > r.Model.newest() && errors.Is(err, oribi.ErrPoisoned) {
			return true
		}
	case st.Kind == Reopen || st.Kind == ReadOnly:
		// Whether Close or Open met the fault: the store is not open, or has to be closed once more.
		if err = x.explained(err); err == nil {
			x.close()
			return false
		}
	default:
		if err = x.explained(err); err == nil {
			return x.again(&st)
		}
	}
	r.Err = fmt.Errorf("step %d, %s %s, fault at change %d, %s: %w", len(r.Script.Steps), st.Kind, st.Table, x.at, x.where, err)
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

// explained takes errors that the fault accounts for: those that wrap it, or its consequence.
func (x *faultRun) explained(err error) error {
	cause := errInjected
	if x.f.Full {
		cause = errFull
	}
	if errors.Is(err, cause) || errors.Is(err, oribi.ErrPoisoned) {
		x.told = true
		return nil
	}
	return err
}

// again goes on after a step that failed: on a poisoned store with what is left to do there, else with the same step.
func (x *faultRun) again(st *Step) bool {
	r := x.r
	if cause := r.store.Poisoned(); cause != nil {
		if !x.poisoned {
			x.poisoned = true
			x.counts.Poisoned++
		}
		return true
	}
	x.counts.Refused++
	for tries := 0; ; tries++ {
		// Nothing was changed: the batch is not in flight any more, the table is as it was.
		r.state.Lock()
		r.inFlight, r.unsure, r.altering = nil, "", nil
		r.state.Unlock()
		err := r.try(st)
		if err == nil {
			return true
		}
		if x.explained(err) != nil || tries > 2*fullFor {
			r.Err = fmt.Errorf("step %d, %s, once more after a fault at change %d, %s: %w", len(r.Script.Steps), st.Kind, x.at, x.where, err)
			return false
		}
		if r.store.Poisoned() != nil {
			return x.again(st)
		}
	}
}

// close closes the store. After the fault its error may be anything that the fault accounts for.
func (x *faultRun) close() {
	if x.r.store == nil {
		return
	}
	err := x.r.store.Close()
	if x.fired && err != nil {
		err = x.explained(err)
	}
	if x.r.Err == nil && err != nil {
		x.r.Err = fmt.Errorf("close: %w", err)
	}
	x.r.store = nil
}

// recover opens what a kill and what a power cut leaves of the store.
func (x *faultRun) recover() error {
	for _, kind := range []Kind{Kill, Cut} {
		m := x.r.Model.clone()
		image, least := x.mem.Clone(), len(m.Commits)
		if kind == Cut {
			image, least = x.mem.Crash(), m.Durable
		}
		p := &picture{model: m, image: image, least: least, inFlight: x.r.inFlight.rebase(m), unsure: x.r.unsure, altering: x.r.altering, alteredFrom: x.r.alteredFrom, settings: x.r.Script.Settings, wall: x.r.wall}
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
