package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// build makes a manager of another instance in /copy from a snapshot.
func build(s *Snapshot, fs vfs.FS) (Options, error) {
	o := testOptions(fs)
	o.Dir, o.Instance = "/copy", [16]byte{7}
	b, err := NewBuilder(o, s.Counters)
	if err != nil {
		return o, err
	}
	err = s.Rows(func(k, v []byte) error { return b.AddRow(Row{k, v}) })
	for i := 0; i < s.Len() && err == nil; i++ {
		var r io.ReadCloser
		if r, err = s.ReadBlock(i); err == nil {
			err = errors.Join(b.AddBlock(context.Background(), s.Block(i), r), r.Close())
		}
	}
	if err != nil {
		b.Abort()
		return o, err
	}
	return o, b.Close()
}

func mkdir(t *testing.T, fs vfs.FS, dir string) {
	t.Helper()
	must.Do(t, errors.Join(fs.Mkdir(dir), fs.SyncDir("/")))
}

// Plan: random commits; a snapshot is taken at a random moment; further commits drop blocks, punch
// holes, rewrite and remove containers. The store that is built from the snapshot has the state of
// that moment, with the same IDs, and a writer can continue with it. Verify finds nothing in it.
func TestBuilderCopiesASnapshot(t *testing.T) {
	r := seedtest.Rand(t)
	for range seedtest.Rounds(12, 4) {
		o := testOptions(nil)
		fs := formatted(t, o)
		o.FS = fs
		s := &script{r: r, now: newStoreModel(), m: openWriter(t, o)}
		steps := func(n int) {
			for range n {
				must.Do(t, s.step())
			}
		}
		steps(r.IntN(80))
		snap := must.Get(s.m.Snapshot())(t)
		want := s.now.clone()
		steps(r.IntN(80))
		for len(s.open) > 0 {
			must.Do(t, s.closeOne())
		}
		must.Do(t, errors.Join(s.m.Commit(Edit{Dead: ids(s.m)}), s.m.Confirm()))
		mkdir(t, fs, "/copy")
		co := must.Get(build(snap, fs))(t)
		must.Do(t, errors.Join(snap.Close(), snap.Close()))
		must.Equal(t, s.m.Pinned().Blocks, 0, "blocks are pinned after Close")
		c := openWriter(t, co)
		must.Do(t, errors.Join(want.difference(c), checkVerify(c)))
		if c.Epoch() < snap.Epoch {
			t.Errorf("epoch %d, before %d", c.Epoch(), snap.Epoch)
		}
		if id := add(t, c, []byte("new")); uint64(id) < snap.Mark {
			t.Errorf("ID %d is used again: mark %d", id, snap.Mark)
		}
		must.Do(t, errors.Join(c.Close(), s.m.Close()))
	}
}

// A Builder refuses blocks that differ from their description, and IDs that fall or that were never
// handed out.
func TestBuilderRefusesOtherBytes(t *testing.T) {
	o := testOptions(nil)
	fs := formatted(t, o)
	o.FS = fs
	m := openWriter(t, o)
	defer m.Close()
	add(t, m, bytes.Repeat([]byte("oribi"), 1000))
	snap := must.Get(m.Snapshot())(t)
	defer snap.Close()
	good := snap.Block(0)
	data := bytes.Repeat([]byte("oribi"), 1000)
	for i, c := range []struct {
		info BlockInfo
		data []byte
	}{
		{good, data[1:]},
		{good, append(data[:4999:4999], 'x')},
		{BlockInfo{good.ID, good.Length - 1, good.Sum}, data},
		{BlockInfo{0, good.Length, good.Sum}, data},
		{BlockInfo{1 << 40, good.Length, good.Sum}, data},
		{BlockInfo{good.ID, -1, good.Sum}, data},
	} {
		dir := fmt.Sprintf("/copy%d", i)
		mkdir(t, fs, dir)
		co := testOptions(fs)
		co.Dir = dir
		b := must.Get(NewBuilder(co, snap.Counters))(t)
		must.Fail(t, b.AddBlock(context.Background(), c.info, bytes.NewReader(c.data)), ErrCorrupt, "case", i)
		b.Abort()
	}
	for _, c := range []Counters{{}, {Epoch: 1}, {Mark: 1}, {Epoch: 1 << 63, Mark: 1}, {Epoch: 1, Mark: 1 << 63}} {
		must.Fail(t, must.Err(NewBuilder(testOptions(fs), c)), ErrCorrupt, c)
	}
}

// A failed build changes nothing in the manager whose snapshot it copies, and reports the failure.
// A build that a failure did not end is complete.
func TestFailedBuildLeavesTheSourceAlone(t *testing.T) {
	o := testOptions(nil)
	disk := faultfs.New(formatted(t, o))
	o.FS = disk
	m := openWriter(t, o)
	defer m.Close()
	r := newSeeded(1)
	for range 3 {
		add(t, m, randomBytes(r, 70_000))
	}
	snap := must.Get(m.Snapshot())(t)
	defer snap.Close()
	failures := 0
	for n := 0; ; n++ {
		mkdir(t, disk, "/copy")
		fails := disk.Fail(faultfs.Rule{Match: changing, Skip: n})
		co, err := build(snap, disk)
		_, failed := fails.First()
		disk.Heal()
		must.Do(t, errors.Join(m.Poisoned(), checkVerify(m)), "call", n)
		if err == nil {
			c := openWriter(t, co)
			must.Do(t, errors.Join(checkVerify(c), c.Close()))
			must.Equal(t, c.Stats().Blocks, 3, "call", n, "blocks")
		} else {
			failures++
		}
		if !failed {
			break
		}
		must.Do(t, vfs.RemoveAll(disk, "/copy"))
	}
	if failures < 20 {
		t.Errorf("only %d builds failed", failures)
	}
}

// A block whose bytes have changed is read with ErrCorrupt, wherever the change is.
func TestSnapshotReadsNoDamagedBlock(t *testing.T) {
	o := testOptions(nil)
	fs := formatted(t, o)
	o.FS = fs
	m := openWriter(t, o)
	defer m.Close()
	id := add(t, m, randomBytes(newSeeded(1), 50_000))
	b := m.state.blocks[id]
	snap := must.Get(m.Snapshot())(t)
	defer snap.Close()
	read := func() error {
		r, err := snap.ReadBlock(0)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, struct{ io.Reader }{r})
		return errors.Join(err, r.Close())
	}
	must.Do(t, read())
	f := must.Get(fs.Open("/store/data/"+b.in.name(), true))(t)
	defer f.Close()
	for _, off := range []int64{0, 25_000, 49_999} {
		var old [1]byte
		f.ReadAt(old[:], b.off+off)
		f.WriteAt([]byte{old[0] ^ 1}, b.off+off)
		must.Fail(t, read(), ErrCorrupt, "byte", off)
		f.WriteAt(old[:], b.off+off)
	}
}

// Where the file system can, a large block shares its bytes with the copy and is not read, so the
// copy has the damage that the source has, and Verify reports it. Elsewhere it is read, and
// refused.
func TestBuilderClonesLargeBlocks(t *testing.T) {
	for _, clones := range []bool{true, false} {
		o := testOptions(nil)
		mem := formatted(t, o)
		o.FS = mem
		if !clones {
			o.FS = faultfs.New(mem)
		}
		m := openWriter(t, o)
		r := newSeeded(1)
		small := add(t, m, randomBytes(r, cloneBytes-1))
		large := add(t, m, randomBytes(r, cloneBytes+5))
		damage := func(id block.ID) {
			b := m.state.blocks[id]
			f := must.Get(mem.Open("/store/data/"+b.in.name(), true))(t)
			var old [1]byte
			f.ReadAt(old[:], b.off+10)
			f.WriteAt([]byte{old[0] ^ 1}, b.off+10)
			f.Close()
		}
		snap := must.Get(m.Snapshot())(t)
		mkdir(t, o.FS, "/copy")
		damage(large)
		co, err := build(snap, o.FS)
		if clones {
			must.Do(t, err)
			c := openWriter(t, co)
			if err := checkVerify(c); err == nil || !strings.Contains(err.Error(), "checksum") {
				t.Errorf("verify: %v", err)
			}
			must.Do(t, c.Close())
		} else if !errors.Is(err, ErrCorrupt) {
			t.Errorf("a damaged block is copied: %v", err)
		}
		must.Do(t, vfs.RemoveAll(mem, "/copy"))
		mkdir(t, o.FS, "/copy")
		damage(large) // repaired
		damage(small)
		must.Fail(t, must.Err(build(snap, o.FS)), ErrCorrupt, "clones", clones, "a damaged small block is copied")
		must.Do(t, errors.Join(snap.Close(), m.Close()))
	}
}
