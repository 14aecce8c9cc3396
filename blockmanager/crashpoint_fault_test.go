package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// Row 18: IDs are reserved but not used: they stay unused.
func TestCrashAfterIDReservation(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	must.Do(t, m.Commit(Edit{}))
	mark := m.state.mark
	s.now().each(t, func(t *testing.T, mem *vfs.Mem) {
		m := reopen(t, mem, o, want)
		want := want.clone()
		id := add(t, m, []byte("after the gap"))
		want.blocks[id] = []byte("after the gap")
		must.Equal(t, uint64(id), mark, "id")
		must.Do(t, errors.Join(want.difference(m), m.Close()))
	})
}

// Row 19: a power cut at any time leaves a mark above every assigned ID.
func TestNoIDIsAssignedAboveTheDurableLimit(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c := m.NewCreation()
	defer c.Abort()
	raised := 0
	for mark := m.state.mark; raised < 2; {
		sink := must.Get(c.Create())(t)
		if uint64(sink.ID()) < mark {
			continue
		}
		raised++
		found := checkReader(t, s.mem.Crash(), o, want)
		if mark = found.state.mark; mark <= uint64(sink.ID()) {
			t.Fatalf("id %d is handed out, the durable mark is %d", sink.ID(), mark)
		}
	}
}

// Row 20: the sync of a container fails, the process continues, and then crashes.
func TestCrashAfterFailedSync(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 1)
	finish(t, c, sinks)
	s.fail("sync", ".data", errDisk)
	must.Fail(t, c.Sync(), ErrPoisoned)
	s.fail("", "", nil) // the next sync reports success
	for _, err := range []error{c.Sync(), m.Commit(Edit{Created: []*Creation{c}}), m.Confirm()} {
		must.Fail(t, err, ErrPoisoned, "afterwards")
	}
	c.Abort()
	must.Do(t, want.difference(m))
	s.now().each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
}

// Row 21: the disk becomes full in the middle of a block. Nothing is poisoned; the tail is removed
// with the creation, or after a crash.
func TestCrashOnFullDiskDuringBlock(t *testing.T) {
	for _, op := range []string{"write", "preallocate"} {
		t.Run(op, func(t *testing.T) {
			s, o, m, want := recordedWriter(t)
			c, sinks := writeUnfinished(t, m, 1)
			s.fail(op, ".data", fmt.Errorf("disk is full: %w", fault.ErrNoSpace))
			var err error
			for range 16 { // more than is reserved
				if _, err = sinks[0].Write(make([]byte, sinkBuffer)); err != nil {
					break
				}
			}
			if !errors.Is(err, ErrNoSpace) || m.Poisoned() != nil {
				t.Fatalf("%v, poisoned: %v", err, m.Poisoned())
			}
			s.now().each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
			s.fail("", "", nil)
			c.Abort()
			for _, c := range m.state.containers {
				must.Equal(t, int64(len(readFile(t, s.mem, "/store/data/"+c.name()))), c.row.next,
					"container", c.id, "bytes")
			}
			want.blocks[add(t, m, []byte("again"))] = []byte("again")
			must.Do(t, errors.Join(want.difference(m), checkVerify(m)))
		})
	}
}

// Row 22: the disk becomes full during Pebble's commit. It is unknown whether the commit happened,
// so nothing is written any more; the next open finds the complete state before or after it.
func TestCrashOnFullDiskDuringMetadataBatch(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			s, o, m, want := recordedWriter(t)
			c, sinks := writeUnfinished(t, m, 1)
			finish(t, c, sinks)
			must.Do(t, c.Sync())
			s.fail(op, "meta/", fmt.Errorf("disk is full: %w", fault.ErrNoSpace))
			if err := m.Commit(Edit{Created: []*Creation{c}}); !errors.Is(err, ErrPoisoned) ||
				errors.Is(err, ErrNoSpace) {
				t.Fatalf("%v: want ErrPoisoned, and not that it may be tried again", err)
			}
			s.fail("", "", nil)
			must.Fail(t, m.Commit(Edit{}), ErrPoisoned, "a commit afterwards")
			next := want.clone()
			next.blocks[sinks[0].ID()] = bytes.Repeat([]byte("a"), sinkBuffer+100)
			s.now().each(t, func(t *testing.T, mem *vfs.Mem) {
				left := crashState{fs: mem, now: want, next: next, maxID: uint64(sinks[0].ID())}
				must.Do(t, must.Err(left.check(t, o)))
			})
		})
	}
}

// Row 23: a crash while a tail is removed.
func TestCrashWhileTailIsCut(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	writeUnfinished(t, m, 1)
	again := recordStates(s.now().kill)
	o.FS = again.disk
	m2 := must.Get(Open(o))(t)
	defer m2.Close()
	list := again.during(t, m2.Writable)
	for _, point := range []diskState{list.before(t, "truncate", ".data"), list.after(t, "truncate", ".data")} {
		point.each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
	}
}

// Row 26: the disk has lost data that it acknowledged as durable. The store does not survive that,
// but Verify detects it.
func TestVerifyFindsLostBlocks(t *testing.T) {
	s, o, m, _ := recordedWriter(t)
	id := ids(m)[0]
	b := m.state.blocks[id]
	name := "/store/data/" + b.in.name()
	must.Do(t, m.Close())
	lose := func(change func(f vfs.File) error) Options {
		o := o
		mem := s.mem.Clone()
		f := must.Get(mem.Open(name, true))(t)
		must.Do(t, errors.Join(change(f), f.Close()))
		o.FS = mem
		return o
	}
	must.Fail(t, must.Err(Open(lose(func(f vfs.File) error { return f.Truncate(b.off) }))), ErrCorrupt,
		"the file is too short")
	must.Fail(t, must.Err(Open(lose(func(f vfs.File) error { return f.PunchHole(0, headerLen) }))), ErrCorrupt,
		"the header page is lost")
	for _, length := range []int64{b.length, b.length / 2} {
		m := must.Get(Open(lose(func(f vfs.File) error { return f.PunchHole(b.off, length) })))(t)
		var found []block.ID
		must.Do(t, m.Verify(context.Background(),
			func(_ string, _ int64, id block.ID, _ string) { found = append(found, id) }, nil))
		must.Equal(t, len(found), 1, length, "bytes lost: Verify names blocks")
		must.Equal(t, found[0], id, length, "bytes lost: Verify names blocks")
		m.Close()
	}
}
