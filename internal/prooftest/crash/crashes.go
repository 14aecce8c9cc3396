// Package crash simulates crashes in random histories, opens the stores that the crashes leave, and
// compares them with a model.
//
// Crashes simulates kills and power cuts and continues some histories on the recovered stores.
// States opens many of the disk states that one crash may leave. Recoveries also crashes the
// recovery from a crash. Sequences runs all short histories of one small table. The disk states
// come from vfs/crashfs, which calls each change of the disk an operation.
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

// Crashes is a random history with simulated crashes.
type Crashes struct {
	Settings script.Settings
	Steps    int // of the history
	// Every is the average number of disk changes per simulated crash; 1 = a crash at each change.
	Every int
	// Inside makes flushes run inside compactions of the same table.
	Inside bool
	// After is the number of steps that run on a recovered store. They run after one crash in four.
	After int
}

// CrashCounts are statistics of a run of Crashes.
type CrashCounts struct {
	Changes  int64 // changes of the disk; the middle of a write counts as one
	Pictures int64 // simulated crashes: Kills, Cuts and Torn
	Kills    int64 // process kills
	Cuts     int64 // power cuts that keep only synced data
	Torn     int64 // power cuts that keep a random part of the unsynced data
	Lost     int64 // batches missing after recovery
	InFlight int64 // unacknowledged batches found after recovery
	Steps    int64 // run after recovery
	Inside   int64 // flushes inside compactions
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
	c.Inside += o.Inside
}

// Run runs the history. Before some changes of the disk, and in the middle of some writes, it takes
// an image of the disk as a kill or a power cut would leave it. It opens that image, read-only and
// for writing, and checks that
//
//   - the store contains all batches that must survive this kind of crash,
//   - the batches that it contains are a prefix of those committed,
//   - the batch in flight is present in full or not at all.
//
// The history waits at the change while the image is checked. It includes clean closes and opens,
// so crashes also occur during recovery and during Close.
//
// The script has the steps up to the first error.
func (c Crashes) Run() (*script.Script, CrashCounts, error) {
	x := &crashRun{c: c, rng: values.NewRand(c.Settings.Seed ^ 0xc4a5)}
	disk := crashfs.New(vfs.NewMem())
	disk.Halves = true
	o := c.Settings
	o.NoCrashes = true
	x.r = history.NewCrashRunner(o, disk)
	x.g = c.generator(o)
	disk.OnOperation(x.picture)
	for range c.Steps {
		if !x.r.Do(x.g.Next(x.r)) {
			break
		}
	}
	x.r.Close()
	x.counts.Changes, x.counts.Inside = int64(disk.Operations()), x.r.Counts.Inside
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return x.r.Script, x.counts, x.err
	}
	return x.r.Script, x.counts, x.r.Err
}

func (c *Crashes) generator(o script.Settings) *history.Generator {
	if c.Inside {
		return history.NewInside(o)
	}
	return history.NewGenerator(o)
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

var errStop = errors.New("history stopped")

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
	g := x.c.generator(o)
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

// RandomCrashes returns a history for a seed. One history in five is short, with a crash at one
// change in four.
func RandomCrashes(seed uint64) Crashes {
	c := Crashes{Settings: history.SmallSettings(seed), Steps: 80, Every: 40, After: 12}
	if seed%5 == 0 {
		c.Steps, c.Every = 12, 4
	}
	return c
}

// RandomInside returns a history for a seed in which flushes run inside compactions. One disk
// change in ten is a crash.
func RandomInside(seed uint64) Crashes {
	return Crashes{Settings: history.InsideSettings(seed), Steps: 120, Every: 10, After: 12, Inside: true}
}
