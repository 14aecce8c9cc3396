package blockmanager

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Writable determines whether holes can be punched, even if no block was ever dropped. It changes
// no byte, and an error of the probe does not fail Writable.
func TestWritableDeterminesWhetherHolesCanBePunched(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	want := newStoreModel()
	data := bytes.Repeat([]byte("block "), 3000)
	want.blocks[add(t, m, data)] = data
	must.Do(t, m.Close())
	before := digest(t, mem, "/store/data")
	for _, c := range []struct {
		name string
		fs   func(*vfs.Mem) vfs.FS
		can  bool
	}{
		{"can", func(mem *vfs.Mem) vfs.FS { return mem }, true},
		{"cannot", func(mem *vfs.Mem) vfs.FS { return unpunchable{mem} }, false},
		{"fails", func(mem *vfs.Mem) vfs.FS {
			s := recordStates(mem)
			s.fail("punch", ".data", errDisk)
			return s.disk
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := mem.Clone()
			o := o
			o.FS = c.fs(mem)
			m := openWriter(t, o)
			if m.canPunch != c.can || m.Poisoned() != nil {
				t.Errorf("canPunch %v, want %v; poisoned: %v", m.canPunch, c.can, m.Poisoned())
			}
			must.Equal(t, digest(t, mem, "/store/data"), before, "asking has changed something")
			must.Do(t, errors.Join(want.difference(m), checkVerify(m), m.Close()))
		})
	}
}

// An open for writing that fails has punched no holes.
func TestFailedWritableOpenPunchesNoHoles(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	old := mem.Clone()
	disk := faultfs.New(mem)
	o.FS = disk
	m := openWriter(t, o)
	add(t, m, []byte("block"))
	must.Do(t, m.Close())
	m = must.Get(Open(o))(t)
	copyDir(t, mem, old, "/store/meta")
	if err := m.Writable(); !errors.Is(err, ErrCorrupt) || disk.Count(faultfs.Punch) > 0 {
		t.Errorf("%v, punched %d times", err, disk.Count(faultfs.Punch))
	}
	m.Close()
}

// diskUse returns the space of the containers of a store in memory if nothing can be punched.
func diskUse(t *testing.T, mem *vfs.Mem) (bytes int64) {
	t.Helper()
	for _, name := range containerNames(t, mem) {
		info := must.Get(mem.Stat("/store/data/" + name))(t)
		bytes += info.Size()
	}
	return bytes
}

// emptySparse rewrites sparse containers as the background does.
func emptySparse(t *testing.T, m *Manager) (emptied int) {
	t.Helper()
	for n := 1; n > 0; emptied += n {
		var err error
		n, err = m.Rewrite(context.Background())
		must.Do(t, err)
	}
	must.Do(t, m.Confirm())
	return emptied
}

// dropOrder returns the blocks in the order in which they are dropped: oldest first, newest first,
// at random, or so that one in eight lives long, which leaves a little in every container.
func dropOrder(r *rand.Rand, mode int, list []block.ID) []block.ID {
	switch mode {
	case 1:
		slices.Reverse(list)
	case 2:
		r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	case 3:
		stays := func(id block.ID) int {
			if id%8 == 0 {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(list, func(a, b block.ID) int { return cmp.Compare(stays(a), stays(b)) })
	}
	return list
}

// Plan: many blocks are created and dropped on a file system without hole punching, in several
// orders, one after another, while sparse containers are rewritten as in the background. Far more
// is written than is ever live, and the files never have more than three times the live bytes.
func TestDiskUseStaysBoundedWithoutHolePunching(t *testing.T) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = unpunchable{mem}
	m := openWriter(t, o)
	defer func() { m.Close() }()
	const target = 512 << 10
	rounds := seedtest.Needed(1600, 320)
	var written, most int64
	rewritten := 0
	for round := range rounds {
		c := m.NewCreation()
		for range 1 + r.IntN(8) {
			n := 1 + r.IntN(20_000)
			if r.IntN(100) == 0 {
				n += sinkBuffer
			}
			sink, err := c.Create()
			if err == nil {
				_, err = sink.Write(make([]byte, n))
			}
			must.Do(t, errors.Join(err, c.Finish(sink)))
			written += int64(n)
		}
		var dead []block.ID
		live := m.Stats().LiveBytes
		for _, id := range dropOrder(r, round/80%4, ids(m)) {
			if live <= target {
				break
			}
			dead = append(dead, id)
			live -= m.state.blocks[id].length
		}
		must.Do(t, errors.Join(c.Sync(), m.Commit(Edit{Created: []*Creation{c}, Dead: dead})))
		rewritten += emptySparse(t, m)
		live = m.Stats().LiveBytes
		if use := diskUse(t, mem); live > target/2 {
			if most = max(most, 100*use/live); use > 3*live {
				t.Fatalf("round %d: %d bytes on the disk, %d are live", round, use, live)
			}
		}
		if r.IntN(40) == 0 {
			must.Do(t, m.Close())
			m = openWriter(t, o)
		}
	}
	t.Logf("%d bytes written, %d containers emptied, at most %d %% of the live bytes on the disk", written,
		rewritten, most)
	if written < 15*target || rewritten == 0 {
		t.Error("too little has happened for this test to say anything")
	}
	must.Do(t, checkVerify(m))
}

// A container without live blocks is unlinked whatever its size, since there is nothing to copy.
func TestContainerWithoutBlocksIsUnlinkedWithoutHolePunching(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = unpunchable{mem}
	m := openWriter(t, o)
	defer m.Close()
	id := add(t, m, []byte("block"))
	if err := errors.Join(m.Commit(Edit{Dead: []block.ID{id}}), m.Confirm()); err != nil { // which tries to punch holes
		t.Fatal(err)
	}
	must.Equal(t, emptySparse(t, m), 1, "containers emptied")
	must.Equal(t, diskUse(t, mem), 0, "bytes on the disk for nothing")
	must.Do(t, errors.Join(newStoreModel().difference(m), checkVerify(m)))
}
