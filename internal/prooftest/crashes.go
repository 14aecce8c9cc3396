package prooftest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Crashes kills a running history.
type Crashes struct {
	Settings Settings
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
	Lost     int64 // batches that were not there afterwards
	InFlight int64 // batches that nobody had been told of and that were there
	Steps    int64 // made after recovery
}

// Add sums two runs up.
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
func (c Crashes) Run() (*Script, CrashCounts, error) {
	x := &crashRun{c: c, rng: newRand(c.Settings.Seed ^ 0xc4a5)}
	disk := crashfs.New(vfs.NewMem())
	disk.Halves = true
	o := c.Settings
	o.NoCrashes = true
	x.r = newCrashRunner(o, disk)
	x.g = NewGenerator(o)
	disk.OnChange(x.picture)
	for range c.Steps {
		if !x.r.Do(x.g.Next(x.r)) {
			break
		}
	}
	x.r.Close()
	x.counts.Changes = int64(disk.Changes())
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return x.r.Script, x.counts, x.err
	}
	return x.r.Script, x.counts, x.r.Err
}

type crashRun struct {
	c Crashes
	r *Runner
	g *Generator

	mu     sync.Mutex // guards the rest; changes of the disk come from many goroutines
	rng    *rand.Rand
	counts CrashCounts
	err    error
}

var errStop = errors.New("the history ends here")

// picture is called before each change of the disk.
func (x *crashRun) picture(ch crashfs.Change) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return errStop
	}
	if x.rng.IntN(max(x.c.Every, 1)) != 0 {
		return nil
	}
	x.r.state.Lock()
	defer x.r.state.Unlock()
	kind := []Kind{Kill, Cut, Tear}[x.rng.IntN(3)]
	if err := x.compare(ch.Point(), kind, x.rng.Uint64()); err != nil {
		x.err = fmt.Errorf("%s before change %d, %s %s (half done: %v): %w", kind, ch.N, ch.Op, ch.Name, ch.Half, err)
		return errStop
	}
	return nil
}

// compare opens what a crash leaves.
func (x *crashRun) compare(at *crashfs.Point, kind Kind, seed uint64) error {
	m := x.r.Model.clone()
	var image *vfs.Mem
	least := m.Durable
	x.counts.Pictures++
	switch kind {
	case Kill:
		x.counts.Kills++
		image, least = at.Kill(), len(m.Commits)
	case Cut:
		x.counts.Cuts++
		image = at.Cut()
	case Tear:
		x.counts.Torn++
		image = at.Random(newRand(seed))
	}
	p := &picture{model: m, image: image, least: least, inFlight: x.r.inFlight.rebase(m), unsure: x.r.unsure, altering: x.r.altering, alteredFrom: x.r.alteredFrom, settings: x.r.Script.Settings, wall: x.r.wall}
	r, err := p.recover()
	if err != nil {
		return err
	}
	defer r.Close()
	x.counts.Lost += int64(p.lost)
	if p.took {
		x.counts.InFlight++
	}
	if newRand(seed).IntN(4) == 0 {
		return x.goOn(r, seed)
	}
	return nil
}

// goOn makes some steps on a recovered store, crashes among them.
func (x *crashRun) goOn(r *Runner, seed uint64) error {
	o := r.Script.Settings
	o.NoCrashes, o.Seed = false, seed
	g := NewGenerator(o)
	g.pools = maps.Clone(x.g.pools)
	for range x.c.After {
		x.counts.Steps++
		r.Do(g.Next(r))
	}
	r.Do(Step{Kind: Check})
	r.Do(Step{Kind: Kill})
	r.Do(Step{Kind: Verify})
	if r.Err != nil {
		return fmt.Errorf("after recovery, %w; its steps:\n%s", r.Err, r.Script)
	}
	return nil
}

// picture is what a crash left, and what may be found there.
type picture struct {
	model    *Model
	image    *vfs.Mem
	least    int      // commits that have to be there
	inFlight *outcome // one more that may be
	unsure   string   // a table that may be there or not
	altering *Step    // a change of a schema that may be there or not
	settings Settings
	wall     *wall

	alteredFrom uint32 // the schema version without it
	altered     *Model // with it; nil until somebody asks

	lost int
	took bool // the batch in flight is there
}

// runner is a runner that has not opened the picture yet.
func (p *picture) runner() *Runner {
	return &Runner{Script: &Script{Settings: p.settings}, Model: p.model, dir: Dir, disk: p.image, wall: p.wall.clone(), ctx: background}
}

// recover opens the picture to read, and to write, twice, compares each time, and goes on with the
// model that fits.
func (p *picture) recover() (*Runner, error) {
	moments := p.model.moments(p.least)
	first, err := p.reader(moments)
	if err != nil {
		return nil, err
	}
	r := p.runner()
	n, m, err := p.look(r.options(p.image), moments, nil)
	if err != nil {
		return nil, err
	}
	if n != first {
		return nil, fmt.Errorf("a reader finds %d batches, a writer %d", first, n)
	}
	p.model, r.Model = m, m
	r.crashes = crashfs.New(p.image)
	r.disk = r.crashes
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("a second time: %w", err)
	}
	return r, p.adopt(r, n)
}

// reader opens the picture to read, sees that nothing was written, and tells how many batches there
// are.
func (p *picture) reader(moments []mvcc.Timestamp) (n int, err error) {
	before, err := Fingerprint(p.image, Dir)
	if err != nil {
		return 0, err
	}
	opts := p.runner().options(unchanging(p.image))
	opts.ReadOnly = true
	if n, _, err = p.look(opts, moments, nil); err != nil {
		return 0, fmt.Errorf("read-only: %w", err)
	}
	if after, err := Fingerprint(p.image, Dir); err != nil || before != after {
		return 0, fmt.Errorf("read-only: the files have changed (%v)", err)
	}
	return n, nil
}

// look opens the store, finds out which model it shows, and how many batches of that, at the
// moments, calls then, unless it is nil, and closes it.
func (p *picture) look(opts *oribi.Options, moments []mvcc.Timestamp, then func(*oribi.Store) error) (n int, m *Model, err error) {
	s, err := oribi.Open(Dir, opts)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if closeErr := s.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
	}()
	m = p.shown(s)
	v, err := surveyStore(s, moments)
	if err == nil {
		n, err = m.survivors(v, p.least, p.inFlight, p.unsure)
	}
	if err == nil && then != nil {
		err = then(s)
	}
	return n, m, err
}

// shown is the model that a store shows: the one before or behind the change of a schema that was
// under way.
func (p *picture) shown(s *oribi.Store) *Model {
	if p.altering == nil {
		return p.model
	}
	t, err := s.Table(p.altering.Table)
	if err != nil || t.Properties().SchemaVersion <= p.alteredFrom {
		return p.model
	}
	if p.altered == nil {
		p.altered = p.model.clone()
		p.altered.alter(p.altering)
	}
	return p.altered
}

// adopt makes the model what the open store is.
func (p *picture) adopt(r *Runner, n int) error {
	if p.unsure != "" {
		_, err := r.store.Table(p.unsure)
		switch there := err == nil; {
		case there && r.Model.Tables[p.unsure] == nil:
			if err := r.store.DropTable(p.unsure); err != nil {
				return err
			}
		case !there && r.Model.Tables[p.unsure] != nil:
			r.Model.Drop(p.unsure)
		}
	}
	if p.took = n > len(r.Model.Commits); p.took {
		ts := r.store.Visible()
		if ts <= r.Model.newest() {
			return fmt.Errorf("a batch is there, but timestamp %d is visible, and was before", uint64(ts))
		}
		p.model.commit(p.inFlight, ts)
	}
	p.lost = len(r.Model.Commits) - n
	r.wall.pass(r.Model.newest()) // read, though the crash may have taken it
	r.Model.truncate(n)
	r.Model.Durable = n
	r.passed = r.Model.newest()
	return nil
}

// rebase makes an outcome of one model that of its clone.
func (o *outcome) rebase(m *Model) *outcome {
	if o == nil {
		return nil
	}
	out := &outcome{refused: o.refused}
	for _, ch := range o.changes {
		if ch.table = m.Tables[ch.table.Name]; ch.table != nil {
			out.changes = append(out.changes, ch)
		}
	}
	return out
}
