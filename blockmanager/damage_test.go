package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// filled returns a closed store with blocks, and its model.
func filled(t *testing.T, o Options, steps int) (*vfs.Mem, *storeModel) {
	t.Helper()
	mem := formatted(t, o)
	o.FS = mem
	s := &script{m: openWriter(t, o), r: seedtest.Rand(t), now: newStoreModel()}
	for range steps {
		must.Do(t, s.step())
	}
	for len(s.now.blocks) < 2 {
		must.Do(t, s.commit())
	}
	must.Do(t, s.m.Close())
	return mem, s.now
}

func writeFile(t *testing.T, f vfs.FS, name string, off int64, b []byte) {
	t.Helper()
	file := must.Get(f.Open(name, true))(t)
	defer file.Close()
	must.Get(file.WriteAt(b, off))(t)
}

func flip(t *testing.T, f vfs.FS, name string, off int64) {
	t.Helper()
	b := readFile(t, f, name)
	writeFile(t, f, name, off, []byte{b[off] ^ 0x20})
}

// With one damaged slot the store opens in the correct state, and Verify reports the slot. With two
// it does not open.
func TestOneDamagedAnchorSlotIsRepaired(t *testing.T) {
	o := testOptions(nil)
	mem, want := filled(t, o, 6)
	stride := seedtest.Stride(97)
	for off := int64(0); off < 2*slotLen; off += int64(stride) {
		f := mem.Clone()
		flip(t, f, "/store/"+anchorName, off)
		if off%512 != 0 { // only read in most cases
			a, err := readAnchor(&Options{FS: f, Dir: "/store", Instance: testInstance})
			if err != nil || a.problems[off/slotLen] == nil || a.problems[1-off/slotLen] != nil {
				t.Fatalf("byte %d: %v", off, err)
			}
			continue
		}
		o.FS = f
		m, err := Open(o)
		must.Do(t, err, "byte", off)
		must.Do(t, want.difference(m), "byte", off)
		must.Refuse(t, checkVerify(m), "byte", off, "Verify finds nothing")
		m.Close()
		flip(t, f, "/store/"+anchorName, (off+slotLen)%(2*slotLen))
		before := digest(t, f, "/store")
		m, err = Open(o)
		must.Fail(t, err, ErrCorrupt, "byte", off, "in both slots", m)
		must.Equal(t, digest(t, f, "/store"), before, "byte", off, "a refused open changed something")
	}
}

func TestOpenRefusesForeignAnchor(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 3)
	for name, change := range map[string]func(f *vfs.Mem){
		"missing": func(f *vfs.Mem) { f.Remove("/store/" + anchorName) },
		"longer":  func(f *vfs.Mem) { writeFile(t, f, "/store/"+anchorName, 2*slotLen, []byte{0}) },
		"other":   func(f *vfs.Mem) { o.Instance[3] = 9 },
	} {
		f := mem.Clone()
		o = testOptions(f)
		change(f)
		must.Fail(t, must.Err(Open(o)), ErrCorrupt, name)
	}
}

// copyDir replaces the files of a directory by the files that it has in another file system.
func copyDir(t *testing.T, to, from vfs.FS, dir string) {
	t.Helper()
	must.Do(t, vfs.RemoveAll(to, dir))
	must.Do(t, to.Mkdir(dir))
	names := must.Get(from.List(dir))(t)
	for _, n := range names {
		name := filepath.Join(dir, n)
		f := must.Get(to.Create(name))(t)
		must.Get(f.WriteAt(readFile(t, from, name), 0))(t)
		f.Close()
	}
}

// Metadata restored from an older state is consistent; only the anchor shows that it is old.
func TestOpenRefusesOlderMetadata(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	var old []*vfs.Mem
	for i := range 4 {
		old = append(old, mem.Clone())
		m := openWriter(t, o)
		for n := range 2 {
			must.Do(t, m.Commit(Edit{Put: []Row{{[]byte{'k'}, []byte{byte(i), byte(n)}}}}))
		}
		must.Do(t, m.Close())
	}
	for i, from := range old {
		f := mem.Clone()
		copyDir(t, f, from, "/store/meta")
		before := digest(t, f, "/store")
		o.FS = f
		must.Fail(t, must.Err(Open(o)), ErrCorrupt, "metadata of open", i)
		must.Equal(t, digest(t, f, "/store"), before, "metadata of open", i, "a refused open changed something")
	}
	// An older anchor is safe: the metadata is ahead of it and is accepted.
	f := mem.Clone()
	writeFile(t, f, "/store/"+anchorName, 0, readFile(t, old[2], "/store/"+anchorName))
	o.FS = f
	m := must.Get(Open(o))(t)
	must.Equal(t, m.ConfirmedLogStart(), 0, "confirmed log_start though nothing is confirmed")
	must.Do(t, errors.Join(m.Writable(), m.Confirm(), m.Close()))
}

func TestOpenRefusesMetadataOfAnotherStore(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 1)
	other := o
	other.Instance = [16]byte{7}
	from := formatted(t, other)
	other.FS = from
	m := openWriter(t, other)
	for range 100 { // far ahead of the other store's anchor
		must.Do(t, m.Commit(Edit{}))
	}
	must.Do(t, m.Close())
	copyDir(t, mem, from, "/store/meta")
	o.FS = mem
	must.Fail(t, must.Err(Open(o)), ErrCorrupt)
}

func TestOpenRefusesMissingFiles(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 4)
	for _, name := range []string{"meta", "data"} {
		f := mem.Clone()
		must.Do(t, vfs.RemoveAll(f, "/store/"+name))
		o.FS = f
		must.Fail(t, must.Err(Open(o)), ErrCorrupt, name, "missing")
		f.Mkdir("/store/" + name)
		must.Fail(t, must.Err(Open(o)), ErrCorrupt, name, "empty")
	}
}

// Plan: one bit of one of Pebble's files is flipped. Opening it, read-only and for writing, must
// return an error or exactly the committed state. It must not panic.
func TestFlippedMetadataBitIsRefusedOrHarmless(t *testing.T) {
	o := testOptions(nil)
	mem, want := filled(t, o, 8)
	names := must.Get(mem.List("/store/meta"))(t)
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(400, 60)
	refused := 0
	for range rounds {
		f := mem.Clone()
		name := "/store/meta/" + names[r.IntN(len(names))]
		b := readFile(t, f, name)
		if len(b) == 0 {
			continue
		}
		off := r.IntN(len(b))
		b[off] ^= 1 << r.IntN(8)
		writeFile(t, f, name, int64(off), b[off:off+1])
		before := digest(t, f, "/store")
		o.FS = f
		m, err := Open(o)
		if err == nil {
			err = errors.Join(want.difference(m), m.Writable(), want.difference(m), m.Close())
			must.Do(t, err, name, "byte", off, "opens, but")
			continue
		}
		refused++
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("%s, byte %d: %v", name, off, err)
		}
		must.Equal(t, digest(t, f, "/store"), before, name, "byte", off, "a refused open changed something")
	}
	t.Logf("%d of %d flips refused", refused, rounds)
	if refused == 0 {
		t.Error("no flip was refused")
	}
}

// someBlock returns a block of at least min bytes, and its location.
func someBlock(t *testing.T, o Options, min int64, not block.ID) (block.ID, blockRow, string) {
	t.Helper()
	m := must.Get(Open(o))(t)
	defer m.Close()
	for _, id := range slices.Sorted(maps.Keys(m.state.blocks)) {
		if b := m.state.blocks[id]; b.length >= min && id != not {
			return id, b.blockRow, "/store/data/" + b.in.name()
		}
	}
	t.Fatalf("no block of %d bytes", min)
	return 0, blockRow{}, ""
}

func TestDamagedContainerIsFound(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	c := m.NewCreation()
	for _, n := range []int{5000, 5000, 700} {
		sink := must.Get(c.Create())(t)
		sink.Write(bytes.Repeat([]byte{byte(sink.ID())}, n))
		must.Do(t, c.Finish(sink))
	}
	must.Do(t, errors.Join(c.Sync(), m.Commit(Edit{Created: []*Creation{c}}), m.Close()))
	id, row, name := someBlock(t, o, 5000, 0)
	other, row2, _ := someBlock(t, o, 5000, id)

	t.Run("header", func(t *testing.T) {
		for _, off := range []int64{0, pageVersionOff, pageInstanceOff, headerContainerOff, 2000, pageCRCOff} {
			f := mem.Clone()
			flip(t, f, name, off)
			o := o
			o.FS = f
			must.Fail(t, must.Err(Open(o)), ErrCorrupt, "byte", off)
		}
	})
	t.Run("cut", func(t *testing.T) {
		f := mem.Clone()
		file, _ := f.Open(name, true)
		file.Truncate(row.off + 1)
		o := o
		o.FS = f
		must.Fail(t, must.Err(Open(o)), ErrCorrupt)
	})
	damaged := func(t *testing.T, change func(f *vfs.Mem)) (*Manager, string) {
		f := mem.Clone()
		change(f)
		o := o
		o.FS = f
		m := must.Get(Open(o))(t)
		t.Cleanup(func() { m.Close() })
		var found []string
		must.Do(t, m.Verify(context.Background(), func(file string, off int64, id block.ID, problem string) {
			found = append(found, fmt.Sprintf("%s %d %d", file, off, id))
		}, nil))
		return m, strings.Join(found, ", ")
	}
	file := strings.TrimPrefix(name, "/store/")
	t.Run("footer", func(t *testing.T) {
		for _, back := range []int64{1, footerProbe} {
			m, found := damaged(t, func(f *vfs.Mem) { flip(t, f, name, row.off+row.length-back) })
			must.Fail(t, must.Err(m.OpenBlock(id)), ErrCorrupt, "byte", back, "from the end")
			must.Equal(t, found, fmt.Sprintf("%s %d %d", file, row.off, id), "found")
			must.Do(t, must.Err(m.OpenBlock(other)))
		}
	})
	t.Run("inside", func(t *testing.T) {
		_, found := damaged(t, func(f *vfs.Mem) { flip(t, f, name, row.off) })
		must.Equal(t, found, fmt.Sprintf("%s %d %d", file, row.off, id), "found")
	})
	t.Run("padding", func(t *testing.T) {
		_, found := damaged(t, func(f *vfs.Mem) { flip(t, f, name, row.off+row.length) })
		must.Equal(t, found, fmt.Sprintf("%s %d %d", file, row.off+row.length, id), "found")
	})
	t.Run("swapped", func(t *testing.T) {
		m, _ := damaged(t, func(f *vfs.Mem) {
			b := readFile(t, f, name)
			writeFile(t, f, name, row.off, b[row2.off:row2.off+row2.length])
			writeFile(t, f, name, row2.off, b[row.off:row.off+row.length])
		})
		for _, id := range []block.ID{id, other} {
			must.Fail(t, must.Err(m.OpenBlock(id)), ErrCorrupt, "block", id)
		}
	})
}

// Rows that are well-formed individually, with a correct hash, but contradict one another.
func TestOpenRefusesContradictingRows(t *testing.T) {
	in := containerID(fill16(1))
	gap := string(deadKey(in, 12288))
	base := func() *loader {
		l := newLoader()
		l.format = formatRow{4096, testInstance}
		l.mark, l.root.epoch = 10, 1
		l.containers[in] = &container{id: in, row: containerRow{containerOpen, 20480}}
		l.blocks[1] = &liveBlock{id: 1, blockRow: blockRow{container: in, off: 4096, length: 5000}}
		l.blocks[2] = &liveBlock{id: 2, blockRow: blockRow{container: in, off: 12288, length: 0}}
		l.dead[gap] = &deadRange{off: 12288, length: 8192}
		l.seen = map[byte]bool{kindFormat: true, kindMark: true, kindLogStart: true, kindRoot: true}
		return l
	}
	o := testOptions(nil)
	must.Get(base().finish(&o))(t)
	for name, bend := range map[string]func(l *loader){
		"overlap":           func(l *loader) { l.dead[gap].off = 8192 },
		"not aligned":       func(l *loader) { l.blocks[1].off = 4097 },
		"in the header":     func(l *loader) { l.blocks[1].off = 0 },
		"negative length":   func(l *loader) { l.blocks[1].length = -1 },
		"beyond the end":    func(l *loader) { l.blocks[1].length = 20480 },
		"huge length":       func(l *loader) { l.blocks[1].length = 1<<63 - 1 },
		"unknown container": func(l *loader) { l.blocks[1].container = containerID{} },
		"dead container":    func(l *loader) { l.containers[in].row.state = containerDead },
		"id at the mark":    func(l *loader) { l.mark = 2 },
		"id 0":              func(l *loader) { l.blocks[0] = l.blocks[1] },
		"container end":     func(l *loader) { l.containers[in].row.next = 20481 },
		"other store":       func(l *loader) { l.format.instance = [16]byte{} },
		"hash":              func(l *loader) { l.sum.lo++ },
		"no root":           func(l *loader) { delete(l.seen, kindRoot) },
	} {
		l := base()
		bend(l)
		must.Fail(t, must.Err(l.finish(&o)), fault.ErrCorrupt, name)
	}
}
