package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// sparseManager returns a manager with a full container of eight blocks, all but the first three
// dropped.
func sparseManager(t *testing.T, fs func(*vfs.Mem) vfs.FS) (m *Manager, mem *vfs.Mem, blocks map[block.ID][]byte) {
	t.Helper()
	o := testOptions(nil)
	mem = formatted(t, o)
	o.FS = fs(mem)
	m = openWriter(t, o)
	c := m.NewCreation()
	blocks = map[block.ID][]byte{}
	for n := range 8 {
		sink := must.Get(c.Create())(t)
		data := bytes.Repeat([]byte{byte('a' + n)}, 11_000)
		sink.Write(data)
		blocks[sink.ID()] = data
		must.Do(t, c.Finish(sink))
	}
	must.Do(t, errors.Join(c.Sync(), m.Commit(Edit{Created: []*Creation{c}})))
	dead := ids(m)[3:]
	for _, id := range dead {
		delete(blocks, id)
	}
	must.Do(t, errors.Join(m.Commit(Edit{Dead: dead}), m.Confirm()))
	return m, mem, blocks
}

func containerNames(t *testing.T, mem *vfs.Mem) []string {
	t.Helper()
	return must.Get(mem.List("/store/data"))(t)
}

// If holes cannot be punched, a sparse container is emptied into another and unlinked. Blocks keep
// their IDs, and open sources stay readable.
func TestSparseContainerIsEmptiedAndUnlinked(t *testing.T) {
	m, mem, blocks := sparseManager(t, func(mem *vfs.Mem) vfs.FS { return unpunchable{mem} })
	first := ids(m)[0]
	sparse := m.state.blocks[first].in.name()
	src := must.Get(m.OpenBlock(first))(t)
	for want := range []int{1, 0} {
		must.Equal(t, must.Get(m.Rewrite(context.Background()))(t), 1-want, "containers that Rewrite rewrote")
	}
	must.Do(t, m.Confirm())
	if names := containerNames(t, mem); !slices.Contains(names, sparse) {
		t.Errorf("containers %v while a block of %s is open", names, sparse)
	}
	must.Equal(t, must.Get(io.ReadAll(io.NewSectionReader(src, 0, src.Size())))(t), blocks[first],
		"the open block bytes")
	src.Close()
	must.Do(t, m.Confirm())
	if names := containerNames(t, mem); len(names) != 1 || names[0] == sparse {
		t.Errorf("containers %v, the sparse one was %s", names, sparse)
	}
	checkBlocks(t, m, blocks)
	must.Do(t, errors.Join(checkVerify(m), m.Close()))
}

func checkBlocks(t *testing.T, m *Manager, blocks map[block.ID][]byte) {
	t.Helper()
	if got := ids(m); len(got) != len(blocks) {
		t.Errorf("blocks %v, want %d", got, len(blocks))
	}
	for id, want := range blocks {
		must.Equal(t, must.Get(readBlock(m, id))(t), want, "block", id, "bytes")
	}
}

// A block that is dropped while its container is rewritten stays dropped, and the space of its copy
// becomes dead.
func TestBlockDroppedDuringRewriteStaysDropped(t *testing.T) {
	m, _, blocks := sparseManager(t, func(mem *vfs.Mem) vfs.FS { return unpunchable{mem} })
	dropped := ids(m)[1]
	delete(blocks, dropped)
	c, list := m.takeSparse()
	creation := m.NewCreation()
	must.Do(t, errors.Join(m.copyBlocks(context.Background(), creation, list), creation.Sync(),
		m.Commit(Edit{Dead: []block.ID{dropped}}), m.commitRewrite(creation, c)))
	checkBlocks(t, m, blocks)
	if s := m.Stats(); s.DeadBytes != 11_000 || c.row.state != containerDead {
		t.Errorf("%+v: want the copy of the dropped block dead, and the source", s)
	}
	o := m.o
	must.Do(t, errors.Join(checkVerify(m), m.Close()))
	m = openWriter(t, o)
	checkBlocks(t, m, blocks)
	must.Do(t, errors.Join(checkVerify(m), m.Close()))
}

// A damaged block is not copied, and does not prevent the rewriting of other containers.
func TestRewriteRefusesDamagedBlock(t *testing.T) {
	m, mem, _ := sparseManager(t, func(mem *vfs.Mem) vfs.FS { return unpunchable{mem} })
	b := m.state.blocks[ids(m)[0]]
	flip(t, mem, "/store/data/"+b.in.name(), b.off+100)
	if n, err := m.Rewrite(context.Background()); !errors.Is(err, ErrCorrupt) || n != 0 {
		t.Errorf("Rewrite: %d, %v; want ErrCorrupt", n, err)
	}
	if m.state.blocks[b.id] != b || m.Poisoned() != nil {
		t.Errorf("the block was moved, or the manager is poisoned: %v", m.Poisoned())
	}
	first, second := add(t, m, make([]byte, 33_000)), add(t, m, make([]byte, 33_000))
	add(t, m, make([]byte, 9_000), first, second)
	for want := range []int{1, 0} {
		must.Equal(t, must.Get(m.Rewrite(context.Background()))(t), 1-want, "Rewrite of another container")
	}
	m.Close()
}
