package blockmanager

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

var errDisk = faultfs.ErrIO

// Plan: the n-th operation that changes the disk fails, for each n of a run. The run must end with
// an error, earlier commits must stay readable, nothing may be written after a failure that
// poisons, and the disk must contain a committed state afterwards.
func TestEveryFailureLeavesACommittedState(t *testing.T) {
	r := seedtest.Rand(t)
	seed := r.Uint64()
	stride := seedtest.Stride(7)
	o := testOptions(nil)
	base := formatted(t, o)
	for n := 1; ; n += stride {
		mem := base.Clone()
		disk := faultfs.New(mem)
		fails := disk.Fail(faultfs.Rule{Match: changing, Skip: n - 1})
		s := &script{r: newSeeded(seed), now: newStoreModel()}
		o.FS = disk
		m, err := Open(o)
		must.Do(t, err)
		s.m = m
		if err = m.Writable(); err == nil {
			for i := 0; i < 9 && err == nil; i++ {
				err = s.step()
			}
		}
		failed, ok := fails.First()
		if !ok {
			t.Logf("%d operations", fails.Matched())
			must.Do(t, err)
			return
		}
		// Some failures need not cause an error: a file that could not be removed, a Pebble file
		// written in the background.
		poisoned := m.Poisoned() != nil
		if poisoned {
			must.Fail(t, m.Poisoned(), ErrPoisoned, failed)
			must.Fail(t, m.Commit(Edit{}), ErrPoisoned, failed, "commit after it")
			for id, want := range s.now.blocks {
				if got, err := readBlock(m, id); err != nil || !bytes.Equal(got, want) {
					if s.next == nil || s.next.blocks[id] != nil {
						t.Fatalf("%v: read after it: %v", failed, err)
					}
				}
			}
		}
		if err := m.Close(); poisoned && !errors.Is(err, ErrPoisoned) {
			t.Fatalf("%v: close: %v", failed, err)
		}
		for _, c := range []crashState{{fs: mem.Clone(), name: "kill"}, {fs: mem.Crash(), name: "power cut"}} {
			c.now, c.next, c.maxID = s.now, s.next, uint64(s.maxID)
			o := o
			must.Do(t, must.Err(c.check(t, o)), "failed", failed, "operation", n, "then", c.name)
		}
	}
}

// changing reports whether a call changes the disk, or prepares to.
func changing(c faultfs.Call) bool { return c.Changes() || c.Op == faultfs.Open && c.Exclusive }

func TestFailedSyncPoisonsForGood(t *testing.T) {
	for _, target := range []string{".data", anchorName, "meta/"} {
		t.Run(strings.Trim(target, "/."), func(t *testing.T) {
			o := testOptions(nil)
			mem := formatted(t, o)
			disk := faultfs.New(mem)
			o.FS = disk
			m := openWriter(t, o)
			c := m.NewCreation()
			sink := must.Get(c.Create())(t)
			sink.Write([]byte("some bytes"))
			must.Do(t, c.Finish(sink))
			fails := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Sync}, Match: func(c faultfs.Call) bool {
				return strings.Contains(c.Name, target)
			}})
			disk.Record(true)
			err := c.Sync()
			if err == nil {
				err = m.Commit(Edit{Created: []*Creation{c}, Put: []Row{{[]byte("k"), []byte("v")}}})
			}
			must.Fail(t, err, ErrPoisoned)
			must.Fail(t, err, errDisk, "the cause is lost")
			c.Abort()
			for _, err := range []error{m.Commit(Edit{}), m.Confirm(), m.Close()} {
				must.Fail(t, err, ErrPoisoned, "afterwards")
			}
			failed, _ := fails.First()
			for _, c := range disk.Calls() {
				// Pebble may have a write in flight
				if c.N > failed.N && changing(c) && !strings.Contains(c.Name, "meta/") {
					t.Errorf("after the failure: %v", c)
				}
			}
			o.FS = mem
			again := must.Get(Open(o))(t)
			again.Close()
		})
	}
}

// Pebble does not see failures that make it panic in one of its goroutines, where the panic cannot
// be recovered: an error on closing its log, or, in an open for writing, an error on reading files
// while a flush or compaction already runs.
func TestFailuresThatMakePebblePanicPoison(t *testing.T) {
	for _, rule := range []faultfs.Rule{
		{Ops: []faultfs.Op{faultfs.Close}, Name: "meta/*.log"},
		{Ops: []faultfs.Op{faultfs.List}, Name: "meta", Skip: 1},
		{Ops: []faultfs.Op{faultfs.Close}, Name: "meta/*.dbtmp"},
		{Ops: []faultfs.Op{faultfs.Read}, Name: "meta/*.sst"},
	} {
		t.Run(string(rule.Ops[0])+" "+rule.Name, func(t *testing.T) {
			o := testOptions(nil)
			mem, _ := filled(t, o, 5)
			disk := faultfs.New(mem)
			o.FS = disk
			m, err := Open(o)
			must.Do(t, err)
			late := rule.Name == "meta/*.log" // logs that are read are closed earlier
			if late {
				err = m.Writable()
			}
			fault := disk.Fail(rule)
			if err = errors.Join(err, m.Writable()); err == nil {
				err = errors.Join(m.Commit(Edit{}), m.meta.flush())
			}
			if fault.Failures() == 0 || !errors.Is(err, ErrPoisoned) || !errors.Is(err, errDisk) ||
				m.Poisoned() == nil {
				t.Errorf("%d calls failed: %v", fault.Failures(), err)
			}
			must.Fail(t, m.Close(), ErrPoisoned, "close")
			o.FS = mem
			again := openWriter(t, o)
			must.Do(t, errors.Join(checkVerify(again), again.Close()))
		})
	}
}

// An open for writing on a full disk returns ErrNoSpace, whichever call fails, and the next open
// may succeed.
func TestOpenOnFullDiskMayBeRetried(t *testing.T) {
	for n := 0; ; n++ {
		o := testOptions(nil)
		mem, _ := filled(t, o, 5)
		disk := faultfs.New(mem)
		o.FS = disk
		m := must.Get(Open(o))(t)
		full := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Create, faultfs.Write}, Skip: n,
			Times: faultfs.Forever, Err: faultfs.ErrSpace})
		err := m.Writable()
		failures := full.Failures()
		m.Close()
		if failures == 0 {
			if n < 3 || err != nil {
				t.Errorf("%d calls, then %v", n, err)
			}
			return
		}
		if err != nil && (!errors.Is(err, ErrNoSpace) || errors.Is(err, ErrPoisoned)) {
			t.Errorf("call %d: %v", n, err)
		}
		o.FS = mem
		again := openWriter(t, o)
		must.Do(t, errors.Join(checkVerify(again), again.Close()), "call", n)
	}
}

// A call of Poison by the store stops the manager like its own failures.
func TestPoisonByCaller(t *testing.T) {
	o := testOptions(nil)
	o.FS = formatted(t, o)
	m := openWriter(t, o)
	m.Poison(errDisk)
	m.Poison(errors.New("second"))
	if err := m.Commit(Edit{}); !errors.Is(err, ErrPoisoned) || !errors.Is(err, errDisk) {
		t.Error(err)
	}
	must.Fail(t, m.Close(), errDisk)
}

func TestCommitOnFullDiskMayBeRetried(t *testing.T) {
	for _, where := range []struct {
		op   faultfs.Op
		name string
	}{
		{faultfs.Create, "*.data"}, {faultfs.Write, "*.data"}, {faultfs.Preallocate, "*.data"},
		{faultfs.Write, anchorName},
	} {
		t.Run(string(where.op)+" "+where.name, func(t *testing.T) {
			o := testOptions(nil)
			mem := formatted(t, o)
			disk := faultfs.New(mem)
			o.FS = disk
			m := openWriter(t, o)
			must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("a"), []byte("b")}}}))
			want := newStoreModel()
			want.rows["a"] = "b"
			attempt := func() error {
				c := m.NewCreation()
				defer c.Abort()
				sink, err := c.Create()
				if err != nil {
					return err
				}
				data := bytes.Repeat([]byte("0123456789"), 100000)
				if _, err := sink.Write(data); err != nil {
					return err
				}
				if err := c.Finish(sink); err != nil {
					return err
				}
				if err := c.Sync(); err != nil {
					return err
				}
				if err := m.Commit(Edit{Created: []*Creation{c}}); err != nil {
					return err
				}
				want.blocks[sink.ID()] = data
				return nil
			}
			disk.Fail(faultfs.Rule{Ops: []faultfs.Op{where.op}, Name: where.name, Times: faultfs.Forever,
				Err: faultfs.ErrSpace})
			for range 3 {
				if err := attempt(); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrPoisoned) {
					t.Fatal(err)
				}
			}
			must.Do(t, errors.Join(m.Poisoned(), want.difference(m)))
			disk.Heal()
			must.Do(t, errors.Join(attempt(), want.difference(m), checkVerify(m), m.Close()))
			o.FS = mem
			again := openWriter(t, o)
			must.Do(t, errors.Join(want.difference(again), again.Close()))
		})
	}
}

// unpunchable is a file system without hole punching.
type unpunchable struct{ vfs.FS }

func (u unpunchable) Create(name string) (vfs.File, error) {
	f, err := u.FS.Create(name)
	return unpunchableFile{f}, err
}

func (u unpunchable) Open(name string, write bool) (vfs.File, error) {
	f, err := u.FS.Open(name, write)
	return unpunchableFile{f}, err
}

type unpunchableFile struct{ vfs.File }

func (unpunchableFile) PunchHole(int64, int64) error { return fault.Unsupportedf("punch hole") }

// Without hole punching dead space is kept, counted, and freed with its container.
func TestDeadSpaceWithoutHolePunching(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = unpunchable{mem}
	m := openWriter(t, o)
	var before []string
	for i := range 3 {
		c := m.NewCreation()
		sink := must.Get(c.Create())(t)
		sink.Write(make([]byte, 60<<10))
		must.Do(t, errors.Join(c.Finish(sink), c.Sync(), m.Commit(Edit{Created: []*Creation{c}})))
		if i == 1 {
			before, _ = mem.List("/store/data") // one full container
		}
	}
	must.Do(t, errors.Join(m.Commit(Edit{Dead: ids(m)[:1]}), m.Confirm()))
	must.Equal(t, m.Stats().DeadBytes, 60<<10, "dead bytes")
	must.Do(t, errors.Join(m.Commit(Edit{Dead: ids(m)[:1]}), m.Confirm(), m.Commit(Edit{})))
	if s := m.Stats(); s.DeadBytes != 0 || s.Blocks != 1 || s.Containers != 1 {
		t.Errorf("%+v", s)
	}
	after, _ := mem.List("/store/data")
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("containers %v, then %v", before, after)
	}
	must.Do(t, errors.Join(checkVerify(m), m.Close()))
}
