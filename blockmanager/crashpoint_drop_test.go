package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// writerBeforeDrop returns a writer with two blocks, the first of which is about to be dropped, and
// the model after the drop.
func writerBeforeDrop(t *testing.T) (s *stateRecorder, o Options, m *Manager, id block.ID, want, next *storeModel) {
	t.Helper()
	s, o, m, want = recordedWriter(t)
	id = ids(m)[0]
	data := bytes.Repeat([]byte("second "), 3000)
	want.blocks[add(t, m, data)] = data
	must.Do(t, m.Confirm())
	next = want.clone()
	delete(next.blocks, id)
	return s, o, m, id, want, next
}

// checkReclaim checks a diskState in which the metadata has a dead range that still occupies space:
// a writer frees it, and the next commit removes its row.
func checkReclaim(t *testing.T, mem *vfs.Mem, o Options, want *storeModel) {
	t.Helper()
	found := checkReader(t, mem, o, want)
	must.Equal(t, len(found.state.dead), 1, "dead ranges")
	m := reopen(t, mem, o, want)
	must.Equal(t, m.Repaired().Reclaimed, 1)
	must.Equal(t, m.Stats().DeadBytes, 0, "dead bytes")
	for _, d := range m.state.dead {
		b := readFile(t, mem, "/store/data/"+d.in.name())
		must.Equal(t, allZero(b[d.off:d.off+d.length]), true, d, "is not freed")
	}
	must.Do(t, m.Commit(Edit{}))
	must.Equal(t, len(m.state.dead), 0, "dead ranges after a commit")
	must.Do(t, errors.Join(want.difference(m), checkVerify(m), m.Close()))
	checkReader(t, mem, o, want)
}

// Row 10: the drop is written but not synced. A power cut undoes it, so the block must be complete;
// no hole is punched before the drop is durable and the anchor confirms it.
func TestCrashBeforeDropIsDurable(t *testing.T) {
	s, o, m, id, want, next := writerBeforeDrop(t)
	list := s.during(t, func() error { return errors.Join(m.Commit(Edit{Dead: []block.ID{id}}), m.Commit(Edit{})) })
	checkReader(t, list.before(t, "sync", "meta/").cut.Clone(), o, want)
	reopen(t, list.before(t, "sync", "meta/").cut.Clone(), o, want)
	punched, synced := false, 0
	for _, s := range list {
		switch {
		case !s.after && s.op == "punch":
			if punched = true; synced < 3 {
				t.Errorf("punched after %d of 3 syncs (intent, batch, next intent)", synced)
			}
		case punched:
		case s.after && s.op == "sync" && (strings.Contains(s.name, anchorName) || strings.Contains(s.name, "meta/")):
			synced++
		}
	}
	must.Equal(t, punched, true, "nothing was punched")
	for _, s := range list {
		for _, mem := range []*vfs.Mem{s.kill, s.cut} {
			c := crashState{fs: mem.Clone(), now: want, next: next, maxID: uint64(slices.Max(ids(m)))}
			must.Do(t, must.Err(c.check(t, o)), s.op, "of", s.name, "after", s.after)
		}
	}
}

// Row 11: the drop is durable and confirmed, but the range is not punched.
func TestCrashBeforePunch(t *testing.T) {
	s, o, m, id, _, next := writerBeforeDrop(t)
	list := s.during(t, func() error { return m.Commit(Edit{Dead: []block.ID{id}, Confirm: true}) })
	list.before(t, "punch", ".data").each(t, func(t *testing.T, mem *vfs.Mem) {
		for _, d := range checkReader(t, mem, o, next).state.dead {
			if b := readFile(t, mem, "/store/data/"+d.in.name()); allZero(b[d.off : d.off+d.length]) {
				t.Errorf("%v is already freed", d)
			}
		}
		checkReclaim(t, mem, o, next)
	})
}

// Row 12: part of the range is zero.
func TestCrashDuringPunch(t *testing.T) {
	s, o, m, id, _, next := writerBeforeDrop(t)
	b := m.state.blocks[id]
	list := s.during(t, func() error { return m.Commit(Edit{Dead: []block.ID{id}, Confirm: true}) })
	list.before(t, "punch", ".data").each(t, func(t *testing.T, mem *vfs.Mem) {
		f := must.Get(mem.Open("/store/data/"+b.in.name(), true))(t)
		must.Do(t, errors.Join(f.PunchHole(b.off, 4096), f.Sync(), f.Close()))
		checkReclaim(t, mem, o, next)
	})
}

// Row 13: the range is punched, but its row still exists.
func TestCrashAfterPunch(t *testing.T) {
	s, o, m, id, _, next := writerBeforeDrop(t)
	list := s.during(t, func() error { return m.Commit(Edit{Dead: []block.ID{id}, Confirm: true}) })
	for _, point := range []diskState{list.after(t, "punch", ".data"), list.after(t, "sync", ".data")} {
		point.each(t, func(t *testing.T, mem *vfs.Mem) { checkReclaim(t, mem, o, next) })
	}
}

// Row 14: a reader has the dropped block open.
func TestCrashWhileDroppedBlockIsOpen(t *testing.T) {
	s, o, m, id, want, next := writerBeforeDrop(t)
	src := must.Get(m.OpenBlock(id))(t)
	defer src.Close()
	must.Do(t, m.Commit(Edit{Dead: []block.ID{id}, Confirm: true}))
	got := make([]byte, src.Size())
	if _, err := src.ReadAt(got, 0); err != nil || !bytes.Equal(got, want.blocks[id]) {
		t.Errorf("the reader: %v", err)
	}
	s.now().each(t, func(t *testing.T, mem *vfs.Mem) { checkReclaim(t, mem, o, next) })
}

// dropContainer runs the commits by which a container is dropped and removed, and returns their
// diskStates and the model afterwards.
func dropContainer(t *testing.T, commits ...Edit) (list diskStates, o Options, name string, before diskState,
	next *storeModel) {
	t.Helper()
	s, o, m, want := recordedWriter(t)
	next = want.clone()
	data := bytes.Repeat([]byte("x"), int(o.ContainerBytes))
	m.mu.Lock()
	m.pool = nil // use a new container
	m.mu.Unlock()
	id := add(t, m, data)
	must.Do(t, m.Confirm())
	name, before = m.state.blocks[id].in.name(), s.now()
	list = s.during(t, func() error {
		for i, e := range commits {
			if i == 0 {
				e.Dead = []block.ID{id}
			}
			if err := m.Commit(e); err != nil {
				return err
			}
		}
		return nil
	})
	return list, o, name, before, next
}

// checkDeadContainer checks a diskState in which a container is dead: a writer removes its file,
// and the next commit removes its row.
func checkDeadContainer(t *testing.T, mem *vfs.Mem, o Options, name string, there bool, want *storeModel) {
	t.Helper()
	id, _ := containerName(name)
	found := checkReader(t, mem, o, want)
	if c := found.state.containers[id]; c == nil || c.row.state != containerDead {
		t.Fatalf("container %s is not dead: %+v", id, c)
	}
	must.Equal(t, slices.Contains(containerNames(t, mem), name), there, "file of the dead container")
	m := reopen(t, mem, o, want)
	if slices.Contains(containerNames(t, mem), name) {
		t.Error("the file of the dead container is still there")
	}
	must.Do(t, m.Commit(Edit{}))
	must.Equal(t, m.state.containers[id], nil, "the row of the dead container is still there")
	must.Do(t, errors.Join(want.difference(m), checkVerify(m), m.Close()))
	checkReader(t, mem, o, want)
}

// Row 15: a container is marked dead, but its file still exists.
func TestCrashBeforeUnlink(t *testing.T) {
	list, o, name, _, next := dropContainer(t, Edit{Confirm: true})
	list.before(t, "remove", name).each(t, func(t *testing.T, mem *vfs.Mem) {
		checkDeadContainer(t, mem, o, name, true, next)
	})
}

// Row 16: the file is removed, or reappears after a power cut; the row still exists.
func TestCrashAfterUnlink(t *testing.T) {
	list, o, name, _, next := dropContainer(t, Edit{Confirm: true})
	point := list.after(t, "remove", name)
	checkDeadContainer(t, point.kill.Clone(), o, name, false, next)
	checkDeadContainer(t, point.cut.Clone(), o, name, true, next)
}

// Row 17: the unlinking is durable. The commit that marked the container dead is then durable too,
// since it was synced and confirmed first: no state that the anchor accepts has the container
// without its file. Open refuses such a state.
func TestContainerIsUnlinkedAfterItsDropIsDurable(t *testing.T) {
	list, o, name, before, next := dropContainer(t, Edit{Confirm: true})
	mem := list.after(t, "remove", name).kill.Clone()
	must.Do(t, mem.SyncDir("/store/data"))
	checkDeadContainer(t, mem.Crash(), o, name, false, next)
	list, _, second, _, _ := dropContainer(t, Edit{}, Edit{})
	synced := 0
	for _, s := range list {
		switch {
		case !s.after && s.op == "remove" && strings.Contains(s.name, second):
			if synced < 3 {
				t.Errorf("unlinked after %d of 3 syncs (intent, batch, next intent)", synced)
			}
			synced = -1 << 20
		case s.after && s.op == "sync" && (strings.Contains(s.name, anchorName) || strings.Contains(s.name, "meta/")):
			synced++
		}
	}
	if synced > 0 {
		t.Error("nothing was unlinked")
	}
	lost := before.kill.Clone()
	must.Do(t, lost.Remove("/store/data/"+name))
	o.FS = lost
	must.Fail(t, must.Err(Open(o)), ErrCorrupt, "a container with blocks and without a file")
}

// recordedSparseWriter returns a writer with one sparse container, on a file system without hole
// punching that keeps diskStates.
func recordedSparseWriter(t *testing.T) (s *stateRecorder, o Options, m *Manager, want *storeModel) {
	t.Helper()
	m, _, blocks := sparseManager(t, func(mem *vfs.Mem) vfs.FS {
		s = recordStates(mem)
		return unpunchable{s.disk}
	})
	t.Cleanup(func() { m.Close() })
	want = newStoreModel()
	want.blocks = blocks
	return s, m.o, m, want
}

// Row 24: the blocks of a sparse container are copied, but no commit refers to the copies.
func TestCrashBeforeCommitOfCopies(t *testing.T) {
	s, o, m, want := recordedSparseWriter(t)
	list := s.during(t, func() error { _, err := m.Rewrite(context.Background()); return err })
	list.before(t, "write", anchorName).each(t, func(t *testing.T, mem *vfs.Mem) {
		must.Equal(t, len(containerNames(t, mem)), 2,
			"containers, want the sparse container and the container of the copies")
		checkTailIsFree(t, mem, o, want)
	})
}

// Row 25: the copies are committed, and the old container still exists.
func TestCrashAfterCommitOfCopies(t *testing.T) {
	s, o, m, want := recordedSparseWriter(t)
	source := m.state.blocks[ids(m)[0]].in.name()
	list := s.during(t, func() error {
		_, err := m.Rewrite(context.Background())
		return errors.Join(err, m.Confirm())
	})
	list.before(t, "remove", source).each(t, func(t *testing.T, mem *vfs.Mem) {
		must.Equal(t, len(containerNames(t, mem)), 2, "containers, want the source and the container of the copies")
		checkDeadContainer(t, mem, o, source, true, want)
	})
}
