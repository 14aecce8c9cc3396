package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/block"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// Whether holes can be punched is known once a store is open for writing, though nothing was ever dropped; asking changes no byte, and an
// error of it is no reason to refuse the store.
func TestAWriterKnowsWhetherHolesCanBePunched(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	want := firstPicture()
	data := bytes.Repeat([]byte("block "), 3000)
	want.blocks[add(t, m, data)] = data
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	before := digest(t, mem, "/store/data")
	for _, c := range []struct {
		name string
		fs   func(*vfs.Mem) vfs.FS
		can  bool
	}{
		{"can", func(mem *vfs.Mem) vfs.FS { return mem }, true},
		{"cannot", func(mem *vfs.Mem) vfs.FS { return unpunchable{mem} }, false},
		{"fails", func(mem *vfs.Mem) vfs.FS {
			s := stopsOn(mem)
			s.fail("punch", ".data", errDisk)
			return s
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
			if digest(t, mem, "/store/data") != before {
				t.Error("asking has changed something")
			}
			if err := errors.Join(want.difference(m), checkVerify(m), m.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An open for writing that is refused has punched nothing.
func TestARefusedOpenPunchesNothing(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	old := mem.Clone()
	punched := false
	o.FS = &hookFS{inner: mem, before: func(op, _ string) error { punched = punched || op == "punch"; return nil }}
	m := openWriter(t, o)
	add(t, m, []byte("block"))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	copyDir(t, mem, old, "/store/meta")
	if err := m.Writable(); !errors.Is(err, ErrCorrupt) || punched {
		t.Errorf("%v, punched: %v", err, punched)
	}
	m.Close()
}

// diskUse is what the containers of a store in memory take where nothing can be punched.
func diskUse(t *testing.T, mem *vfs.Mem) (bytes int64) {
	t.Helper()
	for _, name := range containerNames(t, mem) {
		info, err := mem.Stat("/store/data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// Plan: blocks come and go for long on a file system without holes, oldest first, newest first, at random, in turn; sparse containers are
// rewritten as the background does it. Much more is written than is ever live, and the disk never holds more than three times what
// is.
func TestDiskUseStaysBoundedWithoutHoles(t *testing.T) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = unpunchable{mem}
	m := openWriter(t, o)
	defer func() { m.Close() }()
	const target = 1 << 20
	rounds := 600
	if testing.Short() {
		rounds = 150
	}
	var written, most int64
	rewritten := 0
	for round := range rounds {
		c := m.NewCreation()
		for range 1 + r.IntN(8) {
			sink, err := c.Create()
			if err != nil {
				t.Fatal(err)
			}
			n := 1 + r.IntN(20_000)
			if r.IntN(30) == 0 {
				n += sinkBuffer
			}
			sink.Write(make([]byte, n))
			written += int64(n)
			if err := c.Finish(sink); err != nil {
				t.Fatal(err)
			}
		}
		list := ids(m)
		switch round / 50 % 3 {
		case 1:
			slices.Reverse(list)
		case 2:
			r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		}
		var dead []block.ID
		for live := m.Stats().LiveBytes; live > target; list = list[1:] {
			dead = append(dead, list[0])
			live -= m.state.blocks[list[0]].length
		}
		if err := errors.Join(c.Sync(), m.Commit(Change{Created: []*Creation{c}, Dead: dead})); err != nil {
			t.Fatal(err)
		}
		for n := 1; n > 0; rewritten += n {
			var err error
			if n, err = m.Rewrite(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Confirm(); err != nil {
			t.Fatal(err)
		}
		live := m.Stats().LiveBytes
		if use := diskUse(t, mem); live > target/2 {
			if most = max(most, 100*use/live); use > 3*live {
				t.Fatalf("round %d: %d bytes on the disk, %d are live", round, use, live)
			}
		}
		if r.IntN(40) == 0 {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = openWriter(t, o)
		}
	}
	t.Logf("%d bytes written, %d containers emptied, at most %d %% of the live bytes on the disk", written, rewritten, most)
	if written < 5*target || rewritten == 0 {
		t.Error("too little has happened for this test to say anything")
	}
	if err := m.Commit(Change{Dead: ids(m)}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = m.Rewrite(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Confirm(); err != nil {
		t.Fatal(err)
	}
	if use := diskUse(t, mem); use != 0 {
		t.Errorf("%d bytes on the disk for nothing", use)
	}
	if err := checkVerify(m); err != nil {
		t.Error(err)
	}
}
