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
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got error %v, want %v", what, err, target)
	}
}

func put(t *testing.T, v vfs.FS, name, text string) vfs.File {
	t.Helper()
	f, err := v.Create(name)
	must(t, err)
	n, err := f.WriteAt([]byte(text), 0)
	must(t, err)
	if n != len(text) {
		t.Fatalf("wrote %d bytes of %d", n, len(text))
	}
	return f
}

func text(t *testing.T, f vfs.File) string {
	t.Helper()
	size, err := f.Size()
	must(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size+1))
	must(t, err)
	if int64(len(b)) != size {
		t.Fatalf("read %d bytes, Size says %d", len(b), size)
	}
	return string(b)
}

func textOf(t *testing.T, v vfs.FS, name string) string {
	t.Helper()
	f, err := v.Open(name, false)
	must(t, err)
	defer f.Close()
	return text(t, f)
}

func readBack(t *testing.T, v vfs.FS, dir string) {
	f := put(t, v, filepath.Join(dir, "a"), "hello")
	_, err := f.WriteAt([]byte("Y"), 8)
	must(t, err)
	if got := text(t, f); got != "hello\x00\x00\x00Y" {
		t.Errorf("a gap does not read as zeros: %q", got)
	}
	must(t, f.Truncate(3))
	must(t, f.Truncate(5))
	if got := text(t, f); got != "hel\x00\x00" {
		t.Errorf("cut and lengthened: %q", got)
	}
	must(t, f.Preallocate(0, 1<<16))
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
	must(t, f.Sync())
	must(t, f.Close())
	if _, err := f.ReadAt(b, 0); err == nil {
		t.Error("a closed file can be read")
	}
}

func readOnly(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	must(t, put(t, v, name, "hello").Close())
	f, err := v.Open(name, false)
	must(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("cut")
	}
	if got := text(t, f); got != "hello" {
		t.Errorf("content is %q", got)
	}
}

func names(t *testing.T, v vfs.FS, dir string) {
	at := func(n string) string { return filepath.Join(dir, n) }
	must(t, put(t, v, at("b"), "b").Close())
	must(t, put(t, v, at("a"), "a").Close())
	must(t, v.Mkdir(at("d")))
	must(t, put(t, v, at("d/x"), "x").Close())

	for what, err := range map[string]error{
		"create over a file":      second(v.Create(at("a"))),
		"mkdir over a file":       v.Mkdir(at("a")),
		"mkdir over a directory":  v.Mkdir(at("d")),
		"remove a full directory": v.Remove(at("d")),
		"rename over a directory": v.Rename(at("a"), at("d")),
	} {
		wantIs(t, what, err, fs.ErrExist)
	}
	for what, err := range map[string]error{
		"open":                    second(v.Open(at("none"), false)),
		"open for writing":        second(v.Open(at("none"), true)),
		"remove":                  v.Remove(at("none")),
		"rename":                  v.Rename(at("none"), at("c")),
		"stat":                    second(v.Stat(at("none"))),
		"list":                    second(v.List(at("none"))),
		"sync directory":          v.SyncDir(at("none")),
		"create in no parent":     second(v.Create(at("none/x"))),
		"mkdir in no parent":      v.Mkdir(at("none/x")),
		"rename to no parent":     v.Rename(at("a"), at("none/a")),
		"shared lock, no file":    second(v.Lock(at("none"), vfs.LockShared)),
		"exclusive lock, no file": second(v.Lock(at("none"), vfs.LockExclusive)),
	} {
		wantIs(t, what, err, fs.ErrNotExist)
	}
	for _, write := range []bool{false, true} {
		wantIs(t, "open a directory", second(v.Open(at("d"), write)), vfs.ErrNotRegular)
	}
	for _, mode := range []vfs.LockMode{vfs.LockShared, vfs.LockExclusive, vfs.LockCreate} {
		wantIs(t, "lock a directory", second(v.Lock(at("d"), mode)), vfs.ErrNotRegular)
	}

	must(t, v.Rename(at("a"), at("b"))) // replaces
	if got := textOf(t, v, at("b")); got != "a" {
		t.Errorf("b holds %q after a was renamed to it", got)
	}
	must(t, v.Rename(at("b"), at("d/b")))
	must(t, v.Rename(at("d"), at("e")))
	if names, err := v.List(at("e")); err != nil || !slices.Equal(names, []string{"b", "x"}) {
		t.Errorf("List gives %q, %v", names, err)
	}
	info, err := v.Stat(at("e/x"))
	must(t, err)
	if info.Size() != 1 || info.IsDir() || !info.Mode().IsRegular() || info.Name() != "x" {
		t.Errorf("Stat of a file: %v", info)
	}
	if info, err := v.Stat(at("e")); err != nil || !info.IsDir() {
		t.Errorf("Stat of a directory: %v, %v", info, err)
	}
	must(t, v.SyncDir(at("e")))
	must(t, v.Remove(at("e/x")))
	must(t, v.Remove(at("e/b")))
	must(t, v.Remove(at("e")))
	if names, err := v.List(dir); err != nil || len(names) != 0 {
		t.Errorf("left at the end: %q, %v", names, err)
	}
}

func second[T any](_ T, err error) error { return err }

func outlives(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "a")
	old := put(t, v, name, "old")
	defer old.Close()
	must(t, v.Remove(name))
	defer put(t, v, name, "new").Close()
	_, err := old.WriteAt([]byte("O"), 0)
	must(t, err)
	if got := text(t, old); got != "Old" {
		t.Errorf("the removed file holds %q", got)
	}
	if got := textOf(t, v, name); got != "new" {
		t.Errorf("the new file holds %q", got)
	}

	moved := put(t, v, filepath.Join(dir, "b"), "moved")
	defer moved.Close()
	must(t, v.Rename(filepath.Join(dir, "b"), name))
	_, err = moved.WriteAt([]byte("M"), 0)
	must(t, err)
	if got := textOf(t, v, name); got != "Moved" {
		t.Errorf("the renamed file holds %q", got)
	}
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
		must(t, err)
		clear(want[hole[0]:min(hole[0]+hole[1], int64(len(want)))])
	}
	if got := text(t, f); got != string(want) {
		t.Error("content differs")
	}
}

func clones(t *testing.T, v vfs.FS, dir string) {
	from := bytes.Repeat([]byte("oribi "), 3*4096/6)
	src := put(t, v, filepath.Join(dir, "a"), string(from))
	defer src.Close()
	dst := put(t, v, filepath.Join(dir, "b"), "some text")
	defer dst.Close()
	must(t, dst.Preallocate(0, 8*4096))
	if err := vfs.CloneRange(dst, src, 4096, 2*4096, 2*4096); errors.Is(err, fault.ErrUnsupported) {
		t.Skip(err)
	} else {
		must(t, err)
	}
	want := append([]byte("some text"), make([]byte, 2*4096-9)...)
	want = append(want, from[4096:]...)
	_, err := src.WriteAt(make([]byte, 3*4096), 0)
	must(t, err)
	if got := text(t, dst); got != string(want) {
		t.Error("content differs, or has changed with the source")
	}
	must(t, dst.Sync())
	wantIs(t, "not a multiple of any block", vfs.CloneRange(dst, src, 1, 0, 100), fault.ErrUnsupported)
	must(t, vfs.CloneRange(dst, src, 0, 0, 0))
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
			must(t, f.Truncate(int64(off)))
			grow(off)
			want = want[:off:off]
		case 1:
			if err := f.PunchHole(int64(off), int64(n)); err == nil && off < len(want) {
				clear(want[off:min(off+n, len(want))])
			}
		case 2:
			must(t, f.Sync())
		default:
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			_, err := f.WriteAt(b, int64(off))
			must(t, err)
			if n > 0 {
				grow(off + n)
				copy(want[off:], b)
			}
		}
		if got := text(t, f); got != string(want) {
			t.Fatalf("content differs: %d bytes, want %d", len(got), len(want))
		}
	}
}

// window opens a window, or skips the test if the file system has none.
func window(t *testing.T, f vfs.File, off, n int64) vfs.Window {
	t.Helper()
	w, err := vfs.Map(f, off, n)
	if errors.Is(err, fault.ErrUnsupported) {
		t.Skip(err)
	}
	must(t, err)
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
			if _, err := vfs.Map(f, off, n); err == nil {
				t.Error("a window after the end of the file")
			}
			_, err := f.WriteAt(make([]byte, missing), int64(len(want)))
			must(t, err)
			want = append(want, make([]byte, missing)...)
		}
		w := window(t, f, off, n)
		for i := range 20 {
			at := off + rng.Int64N(n)
			b := bytes.Repeat([]byte{byte(rng.Uint32())}, int(min(rng.Int64N(6000), off+n-at)))
			if i%5 == 4 {
				_, err := f.WriteAt(b, at)
				must(t, err)
			} else {
				must(t, w.Copy(b, at))
			}
			copy(want[at:], b)
		}
		if rng.IntN(2) == 0 {
			must(t, f.Sync())
		}
		if textOf(t, v, name) != string(want) {
			t.Fatal("content differs")
		}
		for _, at := range []int64{off - 1, off + n - 1} {
			wantIs(t, "copy to the outside of a window", w.Copy([]byte("ab"), at), fs.ErrInvalid)
		}
		must(t, w.Close())
	}
	_, err := vfs.Map(f, 0, 0)
	wantIs(t, "an empty window", err, fs.ErrInvalid)
	r, err := v.Open(name, false)
	must(t, err)
	defer r.Close()
	if _, err := vfs.Map(r, 0, 10); err == nil {
		t.Error("a window on a file that is open for reading only")
	}
}

func shorter(t *testing.T, v vfs.FS, dir string) {
	f := put(t, v, filepath.Join(dir, "a"), "")
	defer f.Close()
	must(t, f.Truncate(1<<17))
	w := window(t, f, 0, 1<<17)
	must(t, w.Copy([]byte("x"), 1<<16))
	must(t, f.Truncate(100))
	err := w.Copy([]byte("x"), 1<<16)
	if err == nil || errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("copy after the end: %v", err)
	}
	must(t, w.Copy([]byte("y"), 50))
	must(t, w.Close())
	if got := text(t, f); got != string(make([]byte, 50))+"y"+string(make([]byte, 49)) {
		t.Errorf("content %q", got)
	}
}

func locks(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "LOCK")
	ex, err := v.Lock(name, vfs.LockCreate)
	must(t, err)
	must(t, ex.Write([]byte("first, longer")))
	must(t, ex.Write([]byte("pid 1")))
	wantIs(t, "exclusive under exclusive", second(v.Lock(name, vfs.LockCreate)), fault.ErrLocked)
	wantIs(t, "shared under exclusive", second(v.Lock(name, vfs.LockShared)), fault.ErrLocked)
	if got := textOf(t, v, name); got != "pid 1" {
		t.Errorf("the loser reads %q", got)
	}
	must(t, ex.Close())

	s1, err := v.Lock(name, vfs.LockShared)
	must(t, err)
	s2, err := v.Lock(name, vfs.LockShared)
	must(t, err)
	if b, err := s2.Read(); err != nil || string(b) != "pid 1" {
		t.Errorf("a sharer reads %q, %v", b, err)
	}
	if s1.Write([]byte("x")) == nil {
		t.Error("a sharer wrote the lock file")
	}
	wantIs(t, "exclusive under shared", second(v.Lock(name, vfs.LockCreate)), fault.ErrLocked)
	must(t, s1.Close())
	if s1.Close() == nil {
		t.Error("a lock can be closed twice")
	}
	wantIs(t, "exclusive under the other shared", second(v.Lock(name, vfs.LockCreate)), fault.ErrLocked)
	must(t, s2.Close())
	ex, err = v.Lock(name, vfs.LockCreate)
	must(t, err)
	must(t, ex.Close())
}

func lockedFile(t *testing.T, v vfs.FS, dir string) {
	name := filepath.Join(dir, "LOCK")
	old, err := v.Lock(name, vfs.LockCreate)
	must(t, err)
	must(t, old.Check())
	must(t, v.Rename(name, name+".away"))
	if old.Check() == nil {
		t.Error("Check passes after the file was renamed")
	}
	must(t, v.Rename(name+".away", name))
	must(t, old.Check())
	must(t, v.Remove(name))
	if old.Check() == nil {
		t.Error("Check passes after the file was removed")
	}
	now, err := v.Lock(name, vfs.LockCreate)
	must(t, err)
	must(t, now.Check())
	if old.Check() == nil {
		t.Error("Check passes after the file was replaced")
	}
	must(t, old.Close())
	wantIs(t, "after the old holder left", second(v.Lock(name, vfs.LockExclusive)), fault.ErrLocked)
	must(t, now.Close())
}
