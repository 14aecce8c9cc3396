package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Recoveries simulates crashes in a history and in the recoveries from them. A recovery is Open for
// writing and one flush. It is crashed at each change that it makes to the disk, and each result is
// recovered again.
type Recoveries struct {
	Settings script.Settings
	Steps    int
	Every    int // average number of disk changes per crash of the history
	Limit    int // maximum number of states per change of a recovery
	// number of recoveries in a row that are crashed; each later one starts from a random state
	// that the one before left
	Depth int
}

// RecoveryCounts are statistics of a run of Recoveries.
type RecoveryCounts struct {
	States     StateCounts // of the history and of its recoveries
	Recoveries int64       // recoveries that were crashed
	Changes    int64       // disk changes of these recoveries
}

// Add adds o to c.
func (c *RecoveryCounts) Add(o RecoveryCounts) {
	c.States.Add(o.States)
	c.Recoveries += o.Recoveries
	c.Changes += o.Changes
}

// RandomRecoveries returns a history for a seed, with crashes of its recoveries.
func RandomRecoveries(seed uint64) Recoveries {
	return Recoveries{Settings: history.TraceSettings(seed), Steps: 200, Every: 300, Limit: 3, Depth: 3}
}

// Run runs the history until end, or to its last step if end is zero.
func (c Recoveries) Run(end time.Time) (*script.Script, RecoveryCounts, error) {
	disk := crashfs.New(vfs.NewMem())
	x := newProbing(disk, history.NewCrashRunner(c.Settings, disk))
	x.every, x.limit, x.until = c.Every, 3, end
	y := &recoveries{Recoveries: c, x: x}
	x.watch(y.state)
	g := history.NewTrace(c.Settings)
	for range c.Steps {
		if !x.do(g.Next(x.r)) || x.late() {
			break
		}
	}
	script, _, err := x.end()
	return script, y.counted(), err
}

type recoveries struct {
	Recoveries
	x      *probing
	counts RecoveryCounts // guarded by x.mu
}

func (y *recoveries) counted() RecoveryCounts {
	states := y.x.counted()
	y.x.mu.Lock()
	defer y.x.mu.Unlock()
	c := y.counts
	c.States = states
	return c
}

// state recovers one state of the history. It is called under x.mu.
func (y *recoveries) state(at *crashfs.Point, s *crashfs.State, p *history.Crashed) error {
	disk := crashfs.New(s.Image)
	if s.Killed {
		disk = at.Resume() // unsynced data survives the kill; a power cut in the recovery may lose it
	}
	n, err := p.Count()
	if err != nil {
		return err
	}
	if !y.x.uncertain() {
		y.x.known[s.Hash] = n
	}
	c := &cutRecovery{y: y, p: p, disk: disk, rng: values.NewRand(y.x.rng.Uint64()), most: n,
		least: n, known: map[[16]byte]int{}}
	if s.Killed {
		c.least = y.x.r.Model.Durable
	}
	return c.run(y.Depth)
}

// cutRecovery is a recovery that is crashed at each of its disk changes.
type cutRecovery struct {
	y           *recoveries
	p           *history.Crashed
	disk        *crashfs.FS
	least, most int // bounds on the number of batches after the next recovery

	mu    sync.Mutex // guards the rest
	rng   *rand.Rand
	known map[[16]byte]int // number of batches in each opened state, by hash
	next  *cutRecovery     // the recovery of one random state; after a kill, with its unsynced data
	seen  int              // states seen
	err   error
}

// run crashes the recovery, then the recovery from one of these crashes, up to depth recoveries.
func (c *cutRecovery) run(depth int) error {
	disk := c.disk
	c.y.counts.Recoveries++
	disk.OnOperation(func(ch crashfs.Operation) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err == nil {
			c.err = c.cut(ch.Point(), c.least)
		}
		if c.err != nil {
			c.err = fmt.Errorf("change %d of the recovery, %s %s: %w", ch.N, ch.Op, ch.Name, c.err)
			return errStop
		}
		return nil
	})
	r := c.p.Runner()
	err := r.OpenOn(disk)
	if err == nil {
		err = c.flush(r.Store)
	}
	disk.OnOperation(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Store != nil {
		defer r.Store.Close()
	}
	c.y.counts.Changes += int64(disk.Operations())
	switch {
	case c.err != nil:
		return c.err
	case err != nil:
		return err
	}
	if err := c.cut(disk.Point(), c.least); err != nil {
		return fmt.Errorf("after the recovery: %w", err)
	}
	if depth <= 1 || c.next == nil || c.y.x.late() {
		return nil
	}
	if err := c.next.run(depth - 1); err != nil {
		return fmt.Errorf("recovery of a crashed recovery: %w", err)
	}
	return nil
}

// flush makes the first metadata commit after the recovery. From here on, all batches found by the
// recovery are durable.
func (c *cutRecovery) flush(s *oribi.Store) error {
	c.mu.Lock()
	c.least = c.most
	c.mu.Unlock()
	tables := s.Tables()
	if len(tables) == 0 {
		return nil
	}
	return tables[0].Flush(context.Background())
}

// cut opens and compares the states that a crash at a point may leave. The caller holds mu.
func (c *cutRecovery) cut(at *crashfs.Point, least int) error {
	for s := range at.States(c.rng.Uint64(), c.y.Limit) {
		q := *c.p
		if q.Image, q.Least = s.Image, least; s.Killed {
			q.Least = c.most
		}
		again := crashfs.New(s.Image) // the disk of the next recovery
		n, ok := c.known[s.Hash]
		if !ok || n < q.Least {
			c.y.x.counts.Opened++
			var err error
			if n, err = q.Count(); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		if n > c.most {
			return fmt.Errorf("%s: %d batches, want at most %d", s.Name, n, c.most)
		}
		c.known[s.Hash] = n
		if c.seen++; c.rng.IntN(c.seen) > 0 {
			continue
		}
		if c.next = (&cutRecovery{y: c.y, p: c.p, rng: c.rng, known: c.known, least: n, most: n}); s.Killed {
			again, c.next.least = at.Resume(), least
		}
		c.next.disk = again
	}
	return nil
}
