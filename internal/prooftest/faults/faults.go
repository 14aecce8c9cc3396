// Package faults fails each file system call of a trace in each way in which a disk can fail.
package faults

import (
	"fmt"
	"maps"

	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Kind is one way in which a disk fails.
type Kind struct {
	Name   string
	family string
	rule   faultfs.Rule // but for Skip
	reads  bool         // it is reading that fails
}

func (k *Kind) full() bool {
	return k.rule.Err == faultfs.ErrSpace && k.rule.Ops[0] != faultfs.Sync
}

func (k *Kind) ever() bool { return k.rule.Times == faultfs.Forever }

// takesSpace are the calls that a full disk refuses.
var takesSpace = []faultfs.Op{faultfs.Create, faultfs.Mkdir, faultfs.Write, faultfs.Preallocate, faultfs.LockWrite}

// fullFor is for how many calls a disk is full that is not full for ever.
const fullFor = 3

// Kinds returns all kinds.
func Kinds() []Kind {
	type ops = []faultfs.Op
	return []Kind{
		{Name: "before", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes}},
		{Name: "after", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes, When: faultfs.After}},
		{Name: "middle", family: "middle", rule: faultfs.Rule{Ops: ops{faultfs.Write, faultfs.Truncate, faultfs.Preallocate, faultfs.Punch, faultfs.LockWrite}, When: faultfs.Middle}},
		{Name: "ever", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes, Times: faultfs.Forever}},
		{Name: "full", family: "full", rule: faultfs.Rule{Ops: takesSpace, Times: fullFor, Err: faultfs.ErrSpace}},
		{Name: "full-middle", family: "middle", rule: faultfs.Rule{Ops: ops{faultfs.Write}, When: faultfs.Middle, Err: faultfs.ErrSpace}},
		{Name: "full-ever", family: "full", rule: faultfs.Rule{Ops: takesSpace, Times: faultfs.Forever, Err: faultfs.ErrSpace}},
		{Name: "full-sync", family: "sync", rule: faultfs.Rule{Ops: ops{faultfs.Sync, faultfs.SyncDir}, Err: faultfs.ErrSpace}},
		{Name: "hidden", family: "sync", rule: faultfs.Rule{Ops: ops{faultfs.Sync}, Loss: faultfs.Hidden}},
		{Name: "gone", family: "sync", rule: faultfs.Rule{Ops: ops{faultfs.Sync}, Loss: faultfs.Gone}},
		{Name: "read", family: "read", rule: faultfs.Rule{Ops: ops{faultfs.Read}}, reads: true},
		{Name: "read-middle", family: "read", rule: faultfs.Rule{Ops: ops{faultfs.Read}, When: faultfs.Middle}, reads: true},
		{Name: "look", family: "look", rule: faultfs.Rule{Ops: faultfs.Looks}, reads: true},
		{Name: "close", family: "close", rule: faultfs.Rule{Ops: ops{faultfs.Close, faultfs.Unlock}}, reads: true},
	}
}

// Plan fails calls of the disk, one a run: every call of a trace, in every way.
//
// The trace is Steps steps of a history, beginning behind the first Prelude ones: with the opening
// of what a kill left there, or with the making of the store. It writes more and reads less than
// other histories.
type Plan struct {
	Settings script.Settings
	Prelude  int
	Steps    int
}

// Counts are how much a run of a Trace did.
type Counts struct {
	Runs     int64
	Met      int64 // runs in which a call of the disk failed
	Poisoned int64 // stores that were read-only from the fault on
	Refused  int64 // calls that failed and succeeded when retried
	Unseen   int64 // of those that met it, runs in which no call of the store failed
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Runs += o.Runs
	c.Met += o.Met
	c.Poisoned += o.Poisoned
	c.Refused += o.Refused
	c.Unseen += o.Unseen
}

// Trace is the trace of a Plan, ready to be run again and again.
type Trace struct {
	f     Plan
	image *vfs.Mem // what a kill behind the prelude left; nil = there is no prelude
	model *model.Model
	wall  *history.Wall
	pools map[string][][][]byte
	calls map[string]int // by kind of fault: how many calls of the trace it can hit
}

// Trace makes the prelude, runs the trace once without a fault, and counts.
func (f Plan) Trace() (*Trace, error) {
	t := &Trace{f: f, wall: history.NewWall(), calls: map[string]int{}}
	if f.Prelude > 0 {
		if err := t.prelude(); err != nil {
			return nil, fmt.Errorf("before the trace: %w", err)
		}
	}
	x := t.run(nil, 0)
	if x.r.Err != nil {
		return nil, fmt.Errorf("without a fault: %w", x.r.Err)
	}
	for _, k := range Kinds() {
		t.calls[k.Name] = x.disk.Count(k.rule.Ops...)
	}
	return t, nil
}

func (t *Trace) prelude() error {
	o := t.f.Settings
	o.NoCrashes = true
	r := history.NewRunner(o)
	g := history.NewGenerator(o)
	g.Weight = history.WriteHeavy()
	for range t.f.Prelude {
		if !r.Do(g.Next(r)) {
			return r.Err
		}
	}
	t.image, t.model, t.wall, t.pools = r.Written(), r.Model.Clone(), r.Wall.Clone(), maps.Clone(g.Pools)
	r.Close()
	return r.Err
}

// Fault is one fault in a trace: the n-th call that the kind can hit.
type Fault struct {
	Kind Kind
	N    int
}

func (f Fault) String() string { return fmt.Sprintf("%s %d", f.Kind.Name, f.N) }

// All returns all faults that the trace can meet.
func (t *Trace) All() (all []Fault) {
	for _, k := range Kinds() {
		for n := range t.calls[k.Name] {
			all = append(all, Fault{k, n})
		}
	}
	return all
}

// Rotated are as many of them as hit every call with one kind of each family: of those that fail
// all changes, of those of a full disk, of lost syncs, of reads, the kinds take turns.
func (t *Trace) Rotated(turn uint64) (some []Fault) {
	size := map[string]uint64{}
	place := map[string]uint64{}
	for _, k := range Kinds() {
		place[k.Name] = size[k.family]
		size[k.family]++
	}
	for _, f := range t.All() {
		if family := f.Kind.family; (uint64(f.N)+turn)%size[family] == place[f.Kind.Name] {
			some = append(some, f)
		}
	}
	return some
}

// Run fails the n-th call that a kind of fault can hit. What must hold: whatever call of the store
// meets the fault says so, or nothing is lost by it; reads go on with the right answers; a store
// that is poisoned takes nothing more, another one takes the same call again; when it is closed no
// file of it is open; all that was acknowledged is there after a kill and a power cut, at most one
// batch more, and only the one whose commit failed; and what is found after the kill a power cut
// does not take.
func (t *Trace) Run(f Fault) (*script.Script, Counts, error) {
	x := t.run(&f.Kind, f.N)
	x.counts.Runs++
	if x.met() {
		x.counts.Met++
		if !x.reported {
			x.counts.Unseen++
		}
	}
	if x.r.Err == nil {
		if err := x.recover(); err != nil {
			x.r.Err = fmt.Errorf("after the fault: %w", err)
		}
	}
	if x.r.Err != nil {
		c, _ := x.fault.First()
		return x.r.Script, x.counts, fmt.Errorf("fault %v, %s %s: %w", f, c.Op, c.Name, x.r.Err)
	}
	return x.r.Script, x.counts, nil
}

// Small makes a trace of a seed that is quickly gone through: the making of a store and its
// first steps, or those of a young one.
func Small(seed uint64) Plan {
	f := Plan{Settings: history.SmallSettings(seed), Steps: 10}
	f.Settings.Batch = 0
	if seed%3 > 0 {
		f.Prelude = 30
	}
	return f
}

// Random makes the trace of a seed: some steps anywhere in a history of a thousand.
func Random(seed uint64) Plan {
	f := Plan{Settings: history.SmallSettings(seed), Steps: 14}
	if r := values.NewRand(seed ^ 0xfa17); r.IntN(4) > 0 {
		f.Prelude = r.IntN(1000)
	}
	return f
}
