// Package crash ends running histories at changes of the disk and compares what is left.
//
// Crashes ends a history by kills and power cuts and continues with what they leave. States opens
// every state that a crash may leave, Recoveries cuts the recovery too, and Sequences runs all
// short histories of one small table. What a crash leaves comes from vfs/crashfs.
package crash

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Crashes kills a running history.
type Crashes struct {
	Settings script.Settings
	Steps    int // of the history
	// Every says at how many of the changes of the disk a picture is taken: one of Every, chosen at
	// random; 1 = at each.
	Every int
	// After is how many steps the store makes after it was recovered, in one of four pictures.
	After int
}

// CrashCounts are how much a run of Crashes did.
type CrashCounts struct {
	Changes  int64 // of the disk, halves of writes counted
	Pictures int64
	Kills    int64
	Cuts     int64
	Torn     int64
	Lost     int64 // batches missing afterwards
	InFlight int64 // unacknowledged batches found afterwards
	Steps    int64 // run after recovery
}

// Add adds o to c.
func (c *CrashCounts) Add(o CrashCounts) {
	c.Changes += o.Changes
	c.Pictures += o.Pictures
	c.Kills += o.Kills
	c.Cuts += o.Cuts
	c.Torn += o.Torn
	c.Lost += o.Lost
	c.InFlight += o.InFlight
	c.Steps += o.Steps
}

// Run carries a history out. Before changes of the disk, and in the middle of writes, it takes a
// picture of what a kill or a power cut would leave, opens that, to read and to write, and
// compares: what was acknowledged is there, the batches are a prefix, a batch in flight is there
// whole or not at all. Plans: clean closes and opens are part of the history, so repair and the
// work of Close are cut as well; the picture is opened while the history stands still at the
// change.
//
// The script is that of the history up to the first error.
func (c Crashes) Run() (*script.Script, CrashCounts, error) {
	x := &crashRun{c: c, rng: values.NewRand(c.Settings.Seed ^ 0xc4a5)}
	disk := crashfs.New(vfs.NewMem())
	disk.Halves = true
	o := c.Settings
	o.NoCrashes = true
	x.r = history.NewCrashRunner(o, disk)
	x.g = history.NewGenerator(o)
	disk.OnOperation(x.picture)
	for range c.Steps {
		if !x.r.Do(x.g.Next(x.r)) {
			break
		}
	}
	x.r.Close()
	x.counts.Changes = int64(disk.Operations())
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return x.r.Script, x.counts, x.err
	}
	return x.r.Script, x.counts, x.r.Err
}

type crashRun struct {
	c Crashes
	r *history.Runner
	g *history.Generator

	mu     sync.Mutex // guards the rest; changes of the disk come from many goroutines
	rng    *rand.Rand
	counts CrashCounts
	err    error
}

var errStop = errors.New("the history ends here")

// picture is called before each change of the disk.
func (x *crashRun) picture(ch crashfs.Operation) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return errStop
	}
	if x.rng.IntN(max(x.c.Every, 1)) != 0 {
		return nil
	}
	x.r.State.Lock()
	defer x.r.State.Unlock()
	kind := []script.Kind{script.Kill, script.Cut, script.Tear}[x.rng.IntN(3)]
	if err := x.compare(ch.Point(), kind, x.rng.Uint64()); err != nil {
		x.err = fmt.Errorf("%s before change %d, %s %s (half done: %v): %w", kind, ch.N, ch.Op, ch.Name, ch.Half, err)
		return errStop
	}
	return nil
}

// compare opens the image of a crash and compares it.
func (x *crashRun) compare(at *crashfs.Point, kind script.Kind, seed uint64) error {
	p := x.r.Crashed()
	x.counts.Pictures++
	switch kind {
	case script.Kill:
		x.counts.Kills++
		p.Image, p.Least = at.Kill(), len(p.Model.Commits)
	case script.Cut:
		x.counts.Cuts++
		p.Image = at.Cut()
	case script.Tear:
		x.counts.Torn++
		p.Image = at.Random(values.NewRand(seed))
	}
	r, err := p.Recover()
	if err != nil {
		return err
	}
	defer r.Close()
	x.counts.Lost += int64(p.Lost)
	if p.Took {
		x.counts.InFlight++
	}
	if values.NewRand(seed).IntN(4) == 0 {
		return x.goOn(r, seed)
	}
	return nil
}

// goOn runs some steps, including crashes, on a recovered store.
func (x *crashRun) goOn(r *history.Runner, seed uint64) error {
	o := r.Script.Settings
	o.NoCrashes, o.Seed = false, seed
	g := history.NewGenerator(o)
	g.Pools = maps.Clone(x.g.Pools)
	for range x.c.After {
		x.counts.Steps++
		r.Do(g.Next(r))
	}
	r.Do(script.Step{Kind: script.Check})
	r.Do(script.Step{Kind: script.Kill})
	r.Do(script.Step{Kind: script.Verify})
	if r.Err != nil {
		return fmt.Errorf("after recovery, %w; its steps:\n%s", r.Err, r.Script)
	}
	return nil
}

// RandomCrashes makes the history of a seed and says how it is cut: one in five is short and cut
// nearly everywhere.
func RandomCrashes(seed uint64) Crashes {
	c := Crashes{Settings: history.SmallSettings(seed), Steps: 80, Every: 40, After: 12}
	if seed%5 == 0 {
		c.Steps, c.Every = 12, 4
	}
	return c
}
