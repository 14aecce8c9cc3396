package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// States runs a history and opens the disk states that crashes at random points of it may leave.
// The states come from vfs/crashfs.
type States struct {
	Settings script.Settings
	Steps    int
	Every    int // average number of disk changes per crash point; 1 = a point at each change
	Limit    int // maximum number of states per point; 0 = all
}

// StateCounts are statistics of a run of States.
type StateCounts struct {
	Steps       int64
	Changes     int64 // changes of the disk
	Points      int64 // changes at which crashes were simulated
	States      int64 // states at these points
	Opened      int64 // states opened; the others equal a state opened before
	Readers     int64 // states also opened read-only
	IgnoredSync int64 // states of a disk that ignored syncs
	Refused     int64 // of IgnoredSync: states that Open, a read or Verify reported as corrupt
	Lost        int64 // missing batches
	InFlight    int64 // unacknowledged batches found
}

// Add adds o to c.
func (c *StateCounts) Add(o StateCounts) {
	c.Steps += o.Steps
	c.Changes += o.Changes
	c.Points += o.Points
	c.States += o.States
	c.Opened += o.Opened
	c.Readers += o.Readers
	c.IgnoredSync += o.IgnoredSync
	c.Refused += o.Refused
	c.Lost += o.Lost
	c.InFlight += o.InFlight
}

// RandomStates returns a history for a seed: synced and unsynced batches over two small tables,
// between all kinds of flushes, compactions and schema alterations. One disk change in 25 is a
// crash point with up to twelve states.
func RandomStates(seed uint64) States {
	return States{Settings: history.TraceSettings(seed), Steps: 1000, Every: 25, Limit: 12}
}

// Run runs the history until end, or to its last step if end is zero.
func (s States) Run(end time.Time) (*script.Script, StateCounts, error) {
	disk := crashfs.New(vfs.NewMem())
	disk.ForgetFlushes = 2
	x := newProbing(disk, history.NewCrashRunner(s.Settings, disk))
	x.every, x.limit, x.until = s.Every, s.Limit, end
	x.watch(x.check)
	g := history.NewTrace(s.Settings)
	for range s.Steps {
		if !x.do(g.Next(x.r)) || x.late() {
			break
		}
	}
	return x.end()
}

// probing runs a history on a crashfs and opens the states that crashes may leave.
type probing struct {
	r    *history.Runner
	disk *crashfs.FS

	every, limit int
	until        time.Time // no state is opened after it; zero = no limit
	// each is called for each state of a point, under mu. watch sets it.
	each func(at *crashfs.Point, s *crashfs.State, p *history.Crashed) error

	mu     sync.Mutex // guards the rest; changes of the disk come from many goroutines
	rng    *rand.Rand
	counts StateCounts
	err    error
	// known has the number of batches of each opened state, by hash, since the last Create, Drop,
	// Alter or Rename.
	known map[[16]byte]int
	olds  []*model.Model // before the last three of these steps, for disks that ignored syncs
}

// newProbing returns a probing of a runner whose store is open on disk. No change of the disk is a
// crash point until watch is called.
func newProbing(disk *crashfs.FS, r *history.Runner) *probing {
	return &probing{r: r, disk: disk, rng: values.NewRand(r.Script.Settings.Seed ^ 0xc4a5), known: map[[16]byte]int{}}
}

// watch makes later changes of the disk crash points and calls each for their states. It must be
// the last step of the setup: the goroutines of the open store change the disk at any time.
func (x *probing) watch(each func(at *crashfs.Point, s *crashfs.State, p *history.Crashed) error) {
	x.each = each
	x.disk.OnOperation(x.point)
}

func (x *probing) late() bool { return !x.until.IsZero() && time.Now().After(x.until) }

// do runs a step.
func (x *probing) do(st script.Step) bool {
	switch st.Kind {
	case script.Create, script.Drop, script.Alter, script.Rename:
		x.mu.Lock()
		if x.olds = append(x.olds, x.r.Model.Clone()); len(x.olds) > 3 {
			x.olds = x.olds[1:]
		}
		x.mu.Unlock()
		defer func() {
			x.mu.Lock()
			clear(x.known)
			x.mu.Unlock()
		}()
	}
	return x.r.Do(st)
}

func (x *probing) end() (*script.Script, StateCounts, error) {
	x.r.Close()
	x.disk.OnOperation(nil)
	counts := x.counted()
	if x.err != nil {
		return x.r.Script, counts, x.err
	}
	return x.r.Script, counts, x.r.Err
}

func (x *probing) counted() StateCounts {
	changes := x.disk.Operations() // not under mu: a change of the disk acquires mu
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.counts
	c.Changes, c.Steps = int64(changes), x.r.Counts.Steps
	return c
}

// point is called before each change of the disk.
func (x *probing) point(ch crashfs.Operation) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return errStop
	}
	if x.rng.IntN(max(x.every, 1)) != 0 {
		return nil
	}
	if err := x.crash(ch.Point()); err != nil {
		x.err = fmt.Errorf("crash before change %d, %s %s: %w", ch.N, ch.Op, ch.Name, err)
		return errStop
	}
	return nil
}

// crash opens the states that a crash at a point may leave. The caller holds x.mu.
func (x *probing) crash(at *crashfs.Point) error {
	x.r.State.Lock()
	defer x.r.State.Unlock()
	x.counts.Points++
	var p *history.Crashed
	for s := range at.States(x.rng.Uint64(), x.limit) {
		x.counts.States++
		if s.FlushForgotten {
			x.counts.IgnoredSync++
		}
		if n, ok := x.known[s.Hash]; ok && n >= x.least(&s) && n <= x.highest() && !x.uncertain() {
			continue
		}
		if x.late() {
			return nil
		}
		if p == nil {
			p = x.r.Crashed()
		}
		x.counts.Opened++
		p.Image, p.Least = s.Image, x.least(&s)
		if err := x.each(at, &s, p); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// least returns the minimum number of batches that a state must have.
func (x *probing) least(s *crashfs.State) int {
	switch {
	case s.FlushForgotten:
		return 0
	case s.Killed:
		return len(x.r.Model.Commits)
	}
	return x.r.Model.Durable
}

// highest returns the maximum number of batches that a state may have.
func (x *probing) highest() int {
	if x.r.InFlight != nil {
		return len(x.r.Model.Commits) + 1
	}
	return len(x.r.Model.Commits)
}

// uncertain reports whether a table is being created, dropped, altered or renamed.
func (x *probing) uncertain() bool { return x.r.Unsure != "" || x.r.Altering != nil }

// check opens a state, compares it with the model and runs Verify. One state in eight is first
// opened read-only.
func (x *probing) check(_ *crashfs.Point, s *crashfs.State, p *history.Crashed) error {
	if s.Hash[0]%8 == 0 && !s.FlushForgotten {
		x.counts.Readers++
		if _, err := p.Reader(p.Model.SampleTimestamps(x.rng)); err != nil {
			return err
		}
	}
	n, err := p.Probe(x.rng)
	switch {
	case err == nil:
		if !x.uncertain() {
			x.known[s.Hash] = n
		}
		x.counts.Lost += int64(max(0, len(x.r.Model.Commits)-n))
		x.counts.InFlight += int64(max(0, n-len(x.r.Model.Commits)))
		return nil
	case s.FlushForgotten && errors.Is(err, oribi.ErrCorrupt):
		x.counts.Refused++
		return nil
	case s.FlushForgotten && x.older(s, p):
		return nil
	}
	return err
}

// older reports whether a state of a disk that ignored syncs matches the model before one of the
// last three creations, drops, alterations or renames of a table.
func (x *probing) older(s *crashfs.State, p *history.Crashed) bool {
	for _, m := range x.olds {
		q := &history.Crashed{Model: m.Clone(), Image: s.Image, Settings: p.Settings, Wall: p.Wall}
		if _, err := q.Probe(x.rng); err == nil {
			return true
		}
	}
	return false
}
