// Package vfstest tests whether a file system does what package vfs promises.
//
// It is for tests only.
package vfstest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// Conform tests a file system. fresh returns one for each test, and an empty directory in it.
func Conform(t *testing.T, fresh func(t *testing.T) (v vfs.FS, dir string)) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, v vfs.FS, dir string)
	}{
		{"files read back what was written", readBack},
		{"a read-only file refuses writes", readOnly},
		{"names follow the rules", names},
		{"an open file outlives its name", outlives},
		{"a punched hole reads as zeros", holes},
		{"a cloned range is a write of the same bytes", clones},
		{"random changes match a byte slice", randomChanges},
		{"a copy into a window is a write", windows},
		{"a copy after the end of the file fails", shorter},
		{"locks exclude one another", locks},
		{"a lock follows the file and not the name", lockedFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, dir := fresh(t)
			c.test(t, v, dir)
		})
	}
}

func put(t *testing.T, v vfs.FS, name, text string) vfs.File {
	t.Helper()
	f := must.Get(v.Create(name))(t)
	n := must.Get(f.WriteAt([]byte(text), 0))(t)
	must.Equal(t, n, len(text))
	return f
}

func text(t *testing.T, f vfs.File) string {
	t.Helper()
	size := must.Get(f.Size())(t)
	b := must.Get(io.ReadAll(io.NewSectionReader(f, 0, size+1)))(t)
	must.Equal(t, int64(len(b)), size)
	return string(b)
}

func textOf(t *testing.T, v vfs.FS, name string) string {
	t.Helper()
	f := must.Get(v.Open(name, false))(t)
	defer f.Close()
	return text(t, f)
}

func readBack(t *testing.T, v vfs.FS, dir string) {
	f := put(t, v, filepath.Join(dir, "a"), "hello")
	must.Get(f.WriteAt([]byte("Y"), 8))(t)
	must.Equal(t, text(t, f), "hello\x00\x00\x00Y", "a gap does not read as zeros")
	must.Do(t, f.Truncate(3))
	must.Do(t, f.Truncate(5))
	must.Equal(t, text(t, f), "hel\x00\x00")
	must.Do(t, f.Preallocate(0, 1<<16))
	if size, err := f.Size(); err != nil || size != 5 {
		t.Errorf("Preallocate changed the size to %d (%v)", size, err)
	}
	b := make([]byte, 10)
	if n, err := f.ReadAt(b, 3); n != 2 || err != io.EOF {
		t.Errorf("a read over the end gave %d, %v", n, err)
	}
	if n, err := f.ReadAt(b, 100); n != 0 || err != io.EOF {
		t.Errorf("a read after the end: %d, %v", n, err)
	}
	must.Do(t, f.Sync())
	must.Do(t, f.Close())
	must.Refuse(t, must.Err(f.ReadAt(b, 0)), "a closed file can be read")
}

func readOnly(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	must.Do(t, put(t, v, name, "hello").Close())
	f := must.Get(v.Open(name, false))(t)
	defer f.Close()
	must.Refuse(t, must.Err(f.WriteAt([]byte("x"), 0)))
	must.Refuse(t, f.Truncate(0))
	must.Equal(t, text(t, f), "hello")
}

func names(t *testing.T, v vfs.FS, dir string) {
	at := func(n string) string { return filepath.Join(dir, n) }
	must.Do(t, put(t, v, at("b"), "b").Close())
	must.Do(t, put(t, v, at("a"), "a").Close())
	must.Do(t, v.Mkdir(at("d")))
	must.Do(t, put(t, v, at("d/x"), "x").Close())

	for what, err := range map[string]error{
		"create over a file":      must.Err(v.Create(at("a"))),
		"mkdir over a file":       v.Mkdir(at("a")),
		"mkdir over a directory":  v.Mkdir(at("d")),
		"remove a full directory": v.Remove(at("d")),
		"rename over a directory": v.Rename(at("a"), at("d")),
	} {
		must.Fail(t, err, fs.ErrExist, what)
	}
	for what, err := range map[string]error{
		"open":                    must.Err(v.Open(at("none"), false)),
		"open for writing":        must.Err(v.Open(at("none"), true)),
		"remove":                  v.Remove(at("none")),
		"rename":                  v.Rename(at("none"), at("c")),
		"stat":                    must.Err(v.Stat(at("none"))),
		"list":                    must.Err(v.List(at("none"))),
		"sync directory":          v.SyncDir(at("none")),
		"create in no parent":     must.Err(v.Create(at("none/x"))),
		"mkdir in no parent":      v.Mkdir(at("none/x")),
		"rename to no parent":     v.Rename(at("a"), at("none/a")),
		"shared lock, no file":    must.Err(v.Lock(at("none"), vfs.LockShared)),
		"exclusive lock, no file": must.Err(v.Lock(at("none"), vfs.LockExclusive)),
	} {
		must.Fail(t, err, fs.ErrNotExist, what)
	}
	for _, write := range []bool{false, true} {
		must.Fail(t, must.Err(v.Open(at("d"), write)), vfs.ErrNotRegular, "open a directory")
	}
	for _, mode := range []vfs.LockMode{vfs.LockShared, vfs.LockExclusive, vfs.LockCreate} {
		must.Fail(t, must.Err(v.Lock(at("d"), mode)), vfs.ErrNotRegular, "lock a directory")
	}

	must.Do(t, v.Rename(at("a"), at("b"))) // replaces
	must.Equal(t, textOf(t, v, at("b")), "a", "b after a was renamed to it")
	must.Do(t, v.Rename(at("b"), at("d/b")))
	must.Do(t, v.Rename(at("d"), at("e")))
	must.Equal(t, must.Get(v.List(at("e")))(t), []string{"b", "x"})
	info := must.Get(v.Stat(at("e/x")))(t)
	if info.Size() != 1 || info.IsDir() || !info.Mode().IsRegular() || info.Name() != "x" {
		t.Errorf("Stat of a file: %v", info)
	}
	must.Equal(t, must.Get(v.Stat(at("e")))(t).IsDir(), true)
	must.Do(t, v.SyncDir(at("e")))
	must.Do(t, v.Remove(at("e/x")))
	must.Do(t, v.Remove(at("e/b")))
	must.Do(t, v.Remove(at("e")))
	must.Equal(t, len(must.Get(v.List(dir))(t)), 0)
}

func outlives(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	old := put(t, v, name, "old")
	defer old.Close()
	must.Do(t, v.Remove(name))
	defer put(t, v, name, "new").Close()
	must.Get(old.WriteAt([]byte("O"), 0))(t)
	must.Equal(t, text(t, old), "Old", "the removed file")
	must.Equal(t, textOf(t, v, name), "new", "the new file")

	moved := put(t, v, filepath.Join(dir, "b"), "moved")
	defer moved.Close()
	must.Do(t, v.Rename(filepath.Join(dir, "b"), name))
	must.Get(moved.WriteAt([]byte("M"), 0))(t)
	must.Equal(t, textOf(t, v, name), "Moved", "the renamed file")
}

func holes(t *testing.T, v vfs.FS, dir string) {
	want := bytes.Repeat([]byte{7}, 5*4096+10)
	f := put(t, v, filepath.Join(dir, "a"), string(want))
	defer f.Close()
	for _, hole := range [][2]int64{{4096, 8192}, {3 * 4096, 100}, {5 * 4096, 4096}, {1, 0}} {
		err := f.PunchHole(hole[0], hole[1])
		if errors.Is(err, fault.ErrUnsupported) {
			t.Skip(err)
		}
		must.Do(t, err)
		clear(want[hole[0]:min(hole[0]+hole[1], int64(len(want)))])
	}
	must.Equal(t, text(t, f), string(want))
}

func clones(t *testing.T, v vfs.FS, dir string) {
	from := bytes.Repeat([]byte("oribi "), 3*4096/6)
	src := put(t, v, filepath.Join(dir, "a"), string(from))
	defer src.Close()
	dst := put(t, v, filepath.Join(dir, "b"), "some text")
	defer dst.Close()
	must.Do(t, dst.Preallocate(0, 8*4096))
	if err := vfs.CloneRange(dst, src, 4096, 2*4096, 2*4096); errors.Is(err, fault.ErrUnsupported) {
		t.Skip(err)
	} else {
		must.Do(t, err)
	}
	want := append([]byte("some text"), make([]byte, 2*4096-9)...)
	want = append(want, from[4096:]...)
	must.Get(src.WriteAt(make([]byte, 3*4096), 0))(t)
	must.Equal(t, text(t, dst), string(want), "content differs, or has changed with the source")
	must.Do(t, dst.Sync())
	must.Fail(t, vfs.CloneRange(dst, src, 1, 0, 100), fault.ErrUnsupported, "not a multiple of any block")
	must.Do(t, vfs.CloneRange(dst, src, 0, 0, 0))
}

func randomChanges(t *testing.T, v vfs.FS, dir string) {
	rng := seedtest.Rand(t)
	f := put(t, v, filepath.Join(dir, "a"), "")
	defer f.Close()
	var want []byte
	grow := func(n int) { want = append(want, make([]byte, max(0, n-len(want)))...) }
	for range 500 {
		off, n := rng.IntN(40000), rng.IntN(9000)
		switch rng.IntN(5) {
		case 0:
			must.Do(t, f.Truncate(int64(off)))
			grow(off)
			want = want[:off:off]
		case 1:
			if err := f.PunchHole(int64(off), int64(n)); err == nil && off < len(want) {
				clear(want[off:min(off+n, len(want))])
			}
		case 2:
			must.Do(t, f.Sync())
		default:
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			must.Get(f.WriteAt(b, int64(off)))(t)
			if n > 0 {
				grow(off + n)
				copy(want[off:], b)
			}
		}
		must.Equal(t, text(t, f), string(want), "content differs")
	}
}

// window opens a window, or skips the test if the file system has none.
func window(t *testing.T, f vfs.File, off, n int64) vfs.Window {
	t.Helper()
	w, err := vfs.Map(f, off, n)
	if errors.Is(err, fault.ErrUnsupported) {
		t.Skip(err)
	}
	must.Do(t, err)
	return w
}

// windows writes at random, by copies into windows and by WriteAt, and compares with a byte slice.
func windows(t *testing.T, v vfs.FS, dir string) {
	rng := seedtest.Rand(t)
	name := filepath.Join(dir, "a")
	f := put(t, v, name, "before")
	defer f.Close()
	want := []byte("before")
	for range 20 {
		off, n := rng.Int64N(30000), 1+rng.Int64N(20000)
		if missing := off + n - int64(len(want)); missing > 0 {
			must.Refuse(t, must.Err(vfs.Map(f, off, n)), "a window after the end of the file")
			must.Get(f.WriteAt(make([]byte, missing), int64(len(want))))(t)
			want = append(want, make([]byte, missing)...)
		}
		w := window(t, f, off, n)
		for i := range 20 {
			at := off + rng.Int64N(n)
			b := bytes.Repeat([]byte{byte(rng.Uint32())}, int(min(rng.Int64N(6000), off+n-at)))
			if i%5 == 4 {
				must.Get(f.WriteAt(b, at))(t)
			} else {
				must.Do(t, w.Copy(b, at))
			}
			copy(want[at:], b)
		}
		if rng.IntN(2) == 0 {
			must.Do(t, f.Sync())
		}
		must.Equal(t, textOf(t, v, name), string(want))
		for _, at := range []int64{off - 1, off + n - 1} {
			must.Fail(t, w.Copy([]byte("ab"), at), fs.ErrInvalid, "copy to the outside of a window")
		}
		must.Do(t, w.Close())
	}
	_, err := vfs.Map(f, 0, 0)
	must.Fail(t, err, fs.ErrInvalid, "an empty window")
	r := must.Get(v.Open(name, false))(t)
	defer r.Close()
	must.Refuse(t, must.Err(vfs.Map(r, 0, 10)), "a window on a file that is open for reading only")
}

func shorter(t *testing.T, v vfs.FS, dir string) {
	f := put(t, v, filepath.Join(dir, "a"), "")
	defer f.Close()
	must.Do(t, f.Truncate(1<<17))
	w := window(t, f, 0, 1<<17)
	must.Do(t, w.Copy([]byte("x"), 1<<16))
	must.Do(t, f.Truncate(100))
	err := w.Copy([]byte("x"), 1<<16)
	if err == nil || errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("copy after the end: %v", err)
	}
	must.Do(t, w.Copy([]byte("y"), 50))
	must.Do(t, w.Close())
	must.Equal(t, text(t, f), string(make([]byte, 50))+"y"+string(make([]byte, 49)))
}

func locks(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "LOCK")
	ex := must.Get(v.Lock(name, vfs.LockCreate))(t)
	must.Do(t, ex.Write([]byte("first, longer")))
	must.Do(t, ex.Write([]byte("pid 1")))
	must.Fail(t, must.Err(v.Lock(name, vfs.LockCreate)), fault.ErrLocked, "exclusive under exclusive")
	must.Fail(t, must.Err(v.Lock(name, vfs.LockShared)), fault.ErrLocked, "shared under exclusive")
	must.Equal(t, textOf(t, v, name), "pid 1")
	must.Do(t, ex.Close())

	s1 := must.Get(v.Lock(name, vfs.LockShared))(t)
	s2 := must.Get(v.Lock(name, vfs.LockShared))(t)
	must.Equal(t, string(must.Get(s2.Read())(t)), "pid 1")
	if s1.Write([]byte("x")) == nil {
		t.Error("a sharer wrote the lock file")
	}
	must.Fail(t, must.Err(v.Lock(name, vfs.LockCreate)), fault.ErrLocked, "exclusive under shared")
	must.Do(t, s1.Close())
	if s1.Close() == nil {
		t.Error("a lock can be closed twice")
	}
	must.Fail(t, must.Err(v.Lock(name, vfs.LockCreate)), fault.ErrLocked, "exclusive under the other shared")
	must.Do(t, s2.Close())
	ex = must.Get(v.Lock(name, vfs.LockCreate))(t)
	must.Do(t, ex.Close())
}

func lockedFile(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "LOCK")
	old := must.Get(v.Lock(name, vfs.LockCreate))(t)
	must.Do(t, old.Check())
	must.Do(t, v.Rename(name, name+".away"))
	if old.Check() == nil {
		t.Error("Check passes after the file was renamed")
	}
	must.Do(t, v.Rename(name+".away", name))
	must.Do(t, old.Check())
	must.Do(t, v.Remove(name))
	if old.Check() == nil {
		t.Error("Check passes after the file was removed")
	}
	now := must.Get(v.Lock(name, vfs.LockCreate))(t)
	must.Do(t, now.Check())
	if old.Check() == nil {
		t.Error("Check passes after the file was replaced")
	}
	must.Do(t, old.Close())
	must.Fail(t, must.Err(v.Lock(name, vfs.LockExclusive)), fault.ErrLocked, "after the old holder left")
	must.Do(t, now.Close())
}
