package blockmanager

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// crashState is a state that a crash leaves, and the stores that an open may find in it.
type crashState struct {
	name      string
	fs        *vfs.Mem
	at        *crashfs.Point // of a kill
	now, next *storeModel
	maxID     uint64
}

// disk returns what the next process finds. After a kill not all of it is durable.
func (c *crashState) disk() *crashfs.FS {
	if c.at != nil {
		return c.at.Resume()
	}
	return crashfs.New(c.fs)
}

// recorder records the states that crashes before every sync of a run leave: a kill, a power cut,
// and some states in between.
type recorder struct {
	disk *crashfs.FS

	mu      sync.Mutex // held while a copy is taken, and while the script changes its model
	r       *rand.Rand
	s       *script
	crashes []crashState
	syncs   int
}

func record(o Options, disk *crashfs.FS, r *rand.Rand, now *storeModel) (*recorder, Options) {
	rec := &recorder{disk: disk, r: rand.New(rand.NewPCG(r.Uint64(), 2)), s: &script{r: r, now: now}}
	disk.OnOperation(func(c crashfs.Operation) error {
		if c.Op == "sync" || c.Op == "syncdir" {
			rec.mu.Lock()
			defer rec.mu.Unlock()
			rec.syncs++
			rec.take(c.Point(), fmt.Sprintf("before sync %d, of %s", rec.syncs, c.Name), statesKept)
		}
		return nil
	})
	rec.s.onSet, rec.s.onEnd = rec.mu.Lock, rec.mu.Unlock
	o.FS = disk
	return rec, o
}

// statesKept is the maximum number of recorded states of most points.
const statesKept = 4

// take records at most limit states of a point; 0 = all. The caller holds mu.
func (rec *recorder) take(at *crashfs.Point, name string, limit int) {
	for s := range at.States(rec.r.Uint64(), limit) {
		m := crashState{name: s.Name + ", " + name, fs: s.Image, now: rec.s.now, next: rec.s.next,
			maxID: uint64(rec.s.maxID)}
		if s.Killed {
			m.at = at
		}
		rec.crashes = append(rec.crashes, m)
	}
}

// check opens the state: read-only, for writing, and once more after a commit.
func (c *crashState) check(t *testing.T, o Options) (*storeModel, error) {
	ro := o
	ro.ReadOnly = true
	ro.FS = unwritten(c.fs)
	before := digest(t, c.fs, o.Dir)
	m, err := Open(ro)
	if err != nil {
		return nil, err
	}
	found := c.now
	err = c.now.difference(m)
	if err != nil && c.next != nil {
		if found = c.next; c.next.difference(m) == nil {
			err = nil
		}
	}
	if err = errors.Join(err, checkTorn(m), m.Close()); err != nil {
		return nil, err
	}
	if digest(t, c.fs, o.Dir) != before {
		return nil, errors.New("a read-only open changed something")
	}
	o.FS = c.fs
	if m, err = Open(o); err != nil {
		return nil, err
	}
	if err = m.Writable(); err != nil {
		return nil, err
	}
	if err = found.difference(m); err != nil {
		return nil, fmt.Errorf("after repair: %w", err)
	}
	creation := m.NewCreation()
	sink, err := creation.Create()
	if err != nil {
		return nil, err
	}
	if uint64(sink.ID()) <= c.maxID {
		return nil, fmt.Errorf("id %d comes back, %d was handed out", sink.ID(), c.maxID)
	}
	creation.Abort()
	if err = errors.Join(m.Commit(Edit{Confirm: true}), m.Confirm()); err != nil {
		return nil, err
	}
	if n := m.Stats().DeadBytes; n != 0 {
		return nil, fmt.Errorf("%d dead bytes are not freed", n)
	}
	if err = errors.Join(found.difference(m), checkVerify(m), m.Close()); err != nil {
		return nil, fmt.Errorf("after commit: %w", err)
	}
	return found, nil
}

// Plan: a random run of commits, aborts, reads and confirmations, and the states that a kill, a
// power cut and other crashes before every sync leave. Each state must open read-only without a
// byte written, and show completely the last commit that returned or the one in flight. It must
// open for writing, not reuse an ID, free all dead space, and still show the same.
func TestEveryCrashLeavesACommittedState(t *testing.T) {
	r := seedtest.Rand(t)
	const steps = 8
	for run := range seedtest.Rounds(3, 3) {
		o := testOptions(nil)
		o.BlockSize = []int64{4096, 512, 16384}[run%3]
		rec, ro := record(o, crashfs.New(formatted(t, o)), r, newStoreModel())
		m := openWriter(t, ro)
		rec.s.m = m
		for range steps {
			must.Do(t, rec.s.step())
		}
		must.Do(t, errors.Join(rec.s.now.difference(m), checkVerify(m)))
		must.Do(t, m.Close())
		rec.take(rec.disk.Point(), "after the end", statesKept)
		crashes := rec.crashes
		t.Logf("run %d: %d syncs, %d crashes", run, rec.syncs, len(crashes))
		stride := seedtest.Stride(4)
		for i := r.IntN(stride); i < len(crashes); i += stride {
			must.Do(t, must.Err(crashes[i].check(t, o)), "run", run, crashes[i].name)
		}
	}
}

// The repair during an open for writing may crash too, and so may the next repair.
func TestCrashDuringRepairLeavesTheSameState(t *testing.T) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	rec, ro := record(o, crashfs.New(formatted(t, o)), r, newStoreModel())
	rec.s.m = openWriter(t, ro)
	for range 10 {
		must.Do(t, rec.s.step())
	}
	rounds := seedtest.Rounds(8, 3)
	for range rounds {
		c := rec.crashes[r.IntN(len(rec.crashes))]
		for depth := range 3 {
			copied := c
			copied.fs = c.fs.Clone()
			found, err := copied.check(t, o)
			must.Do(t, err, "depth", depth, c.name)
			again, ao := record(o, c.disk(), r, found)
			again.s.maxID = block.ID(c.maxID)
			if found == c.next {
				// The commit may have been only in the kernel's page cache: until Writable returns
				// a power cut may still undo it.
				again.s.next = c.now
			}
			m := openWriter(t, ao)
			again.s.m = m
			again.s.set(found, nil)
			for range 2 {
				must.Do(t, again.s.step(), "depth", depth, c.name)
			}
			c = again.crashes[r.IntN(len(again.crashes))]
		}
	}
}

// After a kill the newest slot of ANCHOR may be only in the kernel's page cache. The next process
// makes it durable before it overwrites the other slot; otherwise a power cut could leave no valid
// slot.
func TestAnchorSlotIsDurableBeforeTheOtherIsOverwritten(t *testing.T) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	rec, ro := record(o, crashfs.New(formatted(t, o)), r, newStoreModel())
	rec.s.m = openWriter(t, ro)
	must.Do(t, rec.s.commit())
	rec.keepAt(anchorName, 1) // the kills
	for kills := seedtest.Rounds(4, 4); len(rec.crashes) < kills; {
		must.Do(t, rec.s.commit())
	}
	for _, killed := range rec.crashes {
		copied := killed
		copied.fs = killed.fs.Clone()
		found, err := copied.check(t, o)
		must.Do(t, err, killed.name)
		again, ao := record(o, killed.disk(), r, found)
		again.s.maxID = block.ID(killed.maxID)
		again.disk.OnOperation(nil)
		again.s.m = openWriter(t, ao)
		again.keepAt(anchorName, 0)
		again.s.set(found, nil)
		for len(again.crashes) < 6 {
			must.Do(t, again.s.commit())
		}
		for _, cut := range again.crashes {
			must.Do(t, must.Err(cut.check(t, o)), killed.name, "then", cut.name)
		}
	}
}

// keepAt records, from here on, at most limit states before each sync of one file; 0 = all.
func (rec *recorder) keepAt(name string, limit int) {
	rec.crashes = nil
	rec.disk.OnOperation(func(c crashfs.Operation) error {
		if c.Op == "sync" && strings.HasSuffix(c.Name, name) {
			rec.mu.Lock()
			defer rec.mu.Unlock()
			rec.take(c.Point(), "before sync of "+c.Name, limit)
		}
		return nil
	})
}
