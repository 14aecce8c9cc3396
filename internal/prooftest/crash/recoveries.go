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

// Recoveries crashes a history and then the recovery from that crash: Open for writing and the
// following flush are cut at each of their changes of the disk, and the result is recovered again.
type Recoveries struct {
	Settings script.Settings
	Steps    int
	Every    int // of so many changes of the disk one is a point at which the history crashes, by chance
	Limit    int // states of a change of the recovery, at most
	Depth    int // how many recoveries in a row are cut; from the second on only one of the states of the one before
}

// RecoveryCounts are how much a run of Recoveries did.
type RecoveryCounts struct {
	States     StateCounts // of the history and of its recoveries
	Recoveries int64       // cut
	Changes    int64       // that they made of the disk
}

// Add sums two runs up.
func (c *RecoveryCounts) Add(o RecoveryCounts) {
	c.States.Add(o.States)
	c.Recoveries += o.Recoveries
	c.Changes += o.Changes
}

// RandomRecoveries makes the history of a seed and some crashes of it.
func RandomRecoveries(seed uint64) Recoveries {
	return Recoveries{Settings: history.TraceSettings(seed), Steps: 200, Every: 300, Limit: 3, Depth: 3}
}

// Run carries the history out, to an end if one is given.
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
		disk = at.Resume() // and the power goes while it is recovered
	}
	n, err := p.Count()
	if err != nil {
		return err
	}
	if !y.x.uncertain() {
		y.x.known[s.Hash] = n
	}
	c := &cutRecovery{y: y, p: p, disk: disk, rng: values.NewRand(y.x.rng.Uint64()), most: n, least: n, known: map[[16]byte]int{}}
	if s.Killed {
		c.least = y.x.r.Model.Durable
	}
	return c.run(y.Depth)
}

// cutRecovery is a recovery that is cut at each change.
type cutRecovery struct {
	y           *recoveries
	p           *history.Crashed
	disk        *crashfs.FS
	least, most int // batches that may be there afterwards

	mu    sync.Mutex // guards the rest
	rng   *rand.Rand
	known map[[16]byte]int // batches of the states that were opened
	next  *cutRecovery     // that of one of them, for a kill with what is not durable
	seen  int
	err   error
}

// run opens the store and cuts that, and then the recovery from one of the cuts.
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
		return fmt.Errorf("cut, and recovered again: %w", err)
	}
	return nil
}

// flush is the first commit after the recovery. What was found counts as durable from here on.
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

// cut opens the states of a point. The caller holds mu.
func (c *cutRecovery) cut(at *crashfs.Point, least int) error {
	for s := range at.States(c.rng.Uint64(), c.y.Limit) {
		q := *c.p
		if q.Image, q.Least = s.Image, least; s.Killed {
			q.Least = c.most
		}
		again := crashfs.New(s.Image) // to be recovered
		n, ok := c.known[s.Hash]
		if !ok || n < q.Least {
			c.y.x.counts.Opened++
			var err error
			if n, err = q.Count(); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
		if n > c.most {
			return fmt.Errorf("%s: %d batches, there were %d", s.Name, n, c.most)
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
