package prooftest

import (
	"fmt"
	"maps"

	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// FaultKind is one way in which a disk fails.
type FaultKind struct {
	Name   string
	family string
	rule   faultfs.Rule // but for Skip
	reads  bool         // it is reading that fails
}

func (k *FaultKind) full() bool {
	return k.rule.Err == faultfs.ErrSpace && k.rule.Ops[0] != faultfs.Sync
}
func (k *FaultKind) ever() bool { return k.rule.Times == faultfs.Forever }

// takesSpace lists the calls that a full disk refuses.
var takesSpace = []faultfs.Op{faultfs.Create, faultfs.Mkdir, faultfs.Write, faultfs.Preallocate, faultfs.LockWrite}

// fullFor is for how many calls a disk is full that is not full for ever.
const fullFor = 3

// FaultKinds are all of them.
func FaultKinds() []FaultKind {
	type ops = []faultfs.Op
	return []FaultKind{
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

// Faults fails calls of the disk, one a run: every call of a trace, in every way.
//
// The trace is Steps steps of a history, beginning behind the first Prelude ones: with the opening
// of what a kill left there, or with the making of the store. It writes more and reads less than
// other histories.
type Faults struct {
	Settings Settings
	Prelude  int
	Steps    int
}

// FaultCounts are how much Faults did.
type FaultCounts struct {
	Runs     int64
	Met      int64 // runs in which a call of the disk failed
	Poisoned int64 // stores that were read-only from the fault on
	Refused  int64 // calls that failed and could be made again
	Unseen   int64 // of those that met it, runs in which no call of the store failed
}

// Add sums two up.
func (c *FaultCounts) Add(o FaultCounts) {
	c.Runs += o.Runs
	c.Met += o.Met
	c.Poisoned += o.Poisoned
	c.Refused += o.Refused
	c.Unseen += o.Unseen
}

// FaultTrace is the trace of Faults, ready to be run again and again.
type FaultTrace struct {
	f     Faults
	image *vfs.Mem // what a kill behind the prelude left; nil = there is no prelude
	model *Model
	wall  *wall
	pools map[string][][][]byte
	calls map[string]int // by kind of fault: how many calls of the trace it can hit
}

// faultWeights are those of a history that meets each kind of write often.
func faultWeights() []weighted {
	return []weighted{{Write, 40}, {Ingest, 4}, {Get, 4}, {Find, 5}, {Count, 1}, {Flush, 8}, {Merge, 4}, {Compact, 2}, {Deltas, 4}, {Minor, 2}, {Major, 3},
		{UndoGC, 1}, {Check, 1}, {Verify, 1}, {Reopen, 2}, {ReadOnly, 1}, {Kill, 2}, {Create, 1}, {Drop, 1}, {Alter, 3}}
}

// Trace makes the prelude, runs the trace once without a fault, and counts.
func (f Faults) Trace() (*FaultTrace, error) {
	t := &FaultTrace{f: f, wall: newWall(), calls: map[string]int{}}
	if f.Prelude > 0 {
		if err := t.prelude(); err != nil {
			return nil, fmt.Errorf("before the trace: %w", err)
		}
	}
	x := t.run(nil, 0)
	if x.r.Err != nil {
		return nil, fmt.Errorf("without a fault: %w", x.r.Err)
	}
	for _, k := range FaultKinds() {
		t.calls[k.Name] = x.disk.Count(k.rule.Ops...)
	}
	return t, nil
}

func (t *FaultTrace) prelude() error {
	o := t.f.Settings
	o.NoCrashes = true
	r := NewRunner(o)
	g := NewGenerator(o)
	g.weight = faultWeights()
	for range t.f.Prelude {
		if !r.Do(g.Next(r)) {
			return r.Err
		}
	}
	t.image, t.model, t.wall, t.pools = r.written(), r.Model.clone(), r.wall.clone(), maps.Clone(g.pools)
	r.Close()
	return r.Err
}

// Fault is one fault in a trace: the n-th call that the kind can hit.
type Fault struct {
	Kind FaultKind
	N    int
}

func (f Fault) String() string { return fmt.Sprintf("%s %d", f.Kind.Name, f.N) }

// All are all faults that the trace can meet.
func (t *FaultTrace) All() (all []Fault) {
	for _, k := range FaultKinds() {
		for n := range t.calls[k.Name] {
			all = append(all, Fault{k, n})
		}
	}
	return all
}

// Rotated are as many of them as hit every call with one kind of each family: of those that fail
// all changes, of those of a full disk, of lost syncs, of reads, the kinds take turns.
func (t *FaultTrace) Rotated(turn uint64) (some []Fault) {
	size := map[string]uint64{}
	place := map[string]uint64{}
	for _, k := range FaultKinds() {
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
func (t *FaultTrace) Run(f Fault) (*Script, FaultCounts, error) {
	x := t.run(&f.Kind, f.N)
	x.counts.Runs++
	if x.met() {
		x.counts.Met++
		if !x.told {
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
