// Package faults runs a trace of operations on a store many times. Each run injects one disk fault
// into one file system call, so that the runs cover each call and each kind of fault.
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

// Kind is a kind of disk fault.
type Kind struct {
	Name   string
	family string       // kinds of one family take turns in Rotated
	rule   faultfs.Rule // without Skip
	reads  bool         // the fault changes nothing on disk: a failed read, look, or close
}

func (k *Kind) full() bool {
	return k.rule.Err == faultfs.ErrSpace && k.rule.Ops[0] != faultfs.Sync
}

func (k *Kind) ever() bool { return k.rule.Times == faultfs.Forever }

// takesSpace lists the calls that fail on a full disk; Copy does on file systems that copy on
// write.
var takesSpace = []faultfs.Op{faultfs.Create, faultfs.Mkdir, faultfs.Write, faultfs.Copy,
	faultfs.Preallocate, faultfs.LockWrite}

// fullFor is the number of calls that fail on a disk that is full temporarily.
const fullFor = 3

// Kinds returns all kinds.
func Kinds() []Kind {
	type ops = []faultfs.Op
	return []Kind{
		{Name: "before", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes}},
		{Name: "after", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes, When: faultfs.After}},
		{Name: "middle", family: "middle",
			rule: faultfs.Rule{Ops: ops{faultfs.Write, faultfs.Copy, faultfs.Truncate, faultfs.Preallocate,
				faultfs.Punch, faultfs.LockWrite}, When: faultfs.Middle}},
		{Name: "ever", family: "change", rule: faultfs.Rule{Ops: faultfs.Changes, Times: faultfs.Forever}},
		{Name: "full", family: "full", rule: faultfs.Rule{Ops: takesSpace, Times: fullFor, Err: faultfs.ErrSpace}},
		{Name: "full-middle", family: "middle",
			rule: faultfs.Rule{Ops: ops{faultfs.Write}, When: faultfs.Middle, Err: faultfs.ErrSpace}},
		{Name: "full-ever", family: "full",
			rule: faultfs.Rule{Ops: takesSpace, Times: faultfs.Forever, Err: faultfs.ErrSpace}},
		{Name: "full-sync", family: "sync",
			rule: faultfs.Rule{Ops: ops{faultfs.Sync, faultfs.SyncDir}, Err: faultfs.ErrSpace}},
		{Name: "hidden", family: "sync", rule: faultfs.Rule{Ops: ops{faultfs.Sync}, Loss: faultfs.Hidden}},
		{Name: "gone", family: "sync", rule: faultfs.Rule{Ops: ops{faultfs.Sync}, Loss: faultfs.Gone}},
		{Name: "read", family: "read", rule: faultfs.Rule{Ops: ops{faultfs.Read}}, reads: true},
		{Name: "read-middle", family: "read",
			rule: faultfs.Rule{Ops: ops{faultfs.Read}, When: faultfs.Middle}, reads: true},
		{Name: "look", family: "look", rule: faultfs.Rule{Ops: faultfs.Looks}, reads: true},
		{Name: "close", family: "close", rule: faultfs.Rule{Ops: ops{faultfs.Close, faultfs.Unlock}}, reads: true},
	}
}

// Plan describes a trace: a random history that writes more and reads less than other histories.
//
// A prelude of Prelude steps, without faults, ends in a kill. The trace opens the store that the
// kill leaves and runs Steps further steps. If Prelude is 0, the trace begins by creating the
// store.
type Plan struct {
	Settings script.Settings
	Prelude  int // steps before the trace
	Steps    int // steps of the trace
}

// Counts are statistics of the runs of a Trace.
type Counts struct {
	Runs     int64
	Met      int64 // runs in which the fault occurred
	Poisoned int64 // stores that the fault made read-only
	Refused  int64 // failed attempts of a step on a store that the fault did not poison
	Unseen   int64 // runs in which the fault occurred but no call of the store failed
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Runs += o.Runs
	c.Met += o.Met
	c.Poisoned += o.Poisoned
	c.Refused += o.Refused
	c.Unseen += o.Unseen
}

// Trace is the trace of a Plan. It can run many times.
type Trace struct {
	f     Plan
	image *vfs.Mem // the disk after the prelude and the kill; nil = no prelude
	model *model.Model
	wall  *history.Wall
	pools map[string][][][]byte
	calls map[string]int // by name of a kind: number of calls in the trace that it can fail
}

// Trace runs the prelude, then the trace once without a fault to count the calls that can fail.
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

// Fault is one fault in a trace: call N, counted from 0, of those that Kind can fail.
type Fault struct {
	Kind Kind
	N    int
}

func (f Fault) String() string { return fmt.Sprintf("%s %d", f.Kind.Name, f.N) }

// All returns every fault that can occur in the trace.
func (t *Trace) All() (all []Fault) {
	for _, k := range Kinds() {
		for n := range t.calls[k.Name] {
			all = append(all, Fault{k, n})
		}
	}
	return all
}

// Rotated returns a subset of All that fails every call once for each family of kinds. The kinds of
// a family take turns from call to call; turn sets which of them begins.
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

// Run runs the trace with one fault and returns an error unless all of these conditions are met:
//
//   - The store call that meets the fault returns an error, or the fault loses nothing.
//   - Later reads return correct answers.
//   - A poisoned store refuses all further writes. A store that is not poisoned accepts the failed
//     call when it is retried.
//   - A closed store has released its lock.
//   - After a kill, and after a power cut, every acknowledged batch exists, and at most one other:
//     the one whose commit failed.
//   - If a sync lost data, a power cut after the recovery from the kill removes no batch that this
//     recovery found.
//
// The script has the steps up to the first error.
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

// Small returns a plan for a seed whose faults take little time to cover. For one seed in three the
// trace creates the store and runs its first steps; for the others it follows a short prelude.
func Small(seed uint64) Plan {
	f := Plan{Settings: history.SmallSettings(seed), Steps: 10}
	f.Settings.Batch = 0
	if seed%3 > 0 {
		f.Prelude = 30
	}
	return f
}

// Random returns a plan for a seed: 14 steps. For three seeds in four they follow up to a thousand
// other steps of a history, else they are its first ones.
func Random(seed uint64) Plan {
	f := Plan{Settings: history.SmallSettings(seed), Steps: 14}
	if r := values.NewRand(seed ^ 0xfa17); r.IntN(4) > 0 {
		f.Prelude = r.IntN(1000)
	}
	return f
}
