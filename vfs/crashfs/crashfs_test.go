package crashfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/vfstest"
)

func TestConforms(t *testing.T) {
	for _, halves := range []bool{false, true} {
		t.Run(fmt.Sprintf("halves=%v", halves), func(t *testing.T) {
			vfstest.Conform(t, func(*testing.T) (vfs.FS, string) {
				f := New(vfs.NewMem())
				f.Halves, f.ForgetFlushes = halves, 2
				return f, "/"
			})
		})
	}
}

func read(t *testing.T, m vfs.FS, name string) string {
	t.Helper()
	f := must.Get(m.Open(name, false))(t)
	defer f.Close()
	size := must.Get(f.Size())(t)
	b := must.Get(io.ReadAll(io.NewSectionReader(f, 0, size)))(t)
	return string(b)
}

// start returns a file system with an empty file whose name is durable.
func start(t *testing.T) (*FS, vfs.File) {
	t.Helper()
	fsys := New(vfs.NewMem())
	fsys.ForgetFlushes = 2
	f, err := fsys.Create("/a")
	must.Do(t, errors.Join(err, fsys.SyncDir("/")))
	return fsys, f
}

func put(t *testing.T, f vfs.File, text string, off int64) {
	t.Helper()
	must.Get(f.WriteAt([]byte(text), off))(t)
}

// The last write is torn at each sector boundary of the file, wherever it begins; earlier writes
// are complete.
func TestLastWriteIsTornAtSectors(t *testing.T) {
	fsys, f := start(t)
	put(t, f, "first", 0)
	put(t, f, strings.Repeat("x", 1500), 100)
	seen := map[int]bool{}
	for s := range fsys.Point().States(1, 0) {
		if s.FlushForgotten {
			continue
		}
		if text := read(t, s.Image, "/a"); strings.HasPrefix(text, "first\x00") &&
			strings.HasSuffix(text, "x") && strings.Count(text, "x") == len(text)-100 {
			seen[len(text)] = true
		}
	}
	for _, size := range []int{512, 1024, 1536, 1600} {
		must.Equal(t, seen[size], true, size)
	}
	long := &op{kind: write, off: 512, data: make([]byte, 1<<20)}
	if b := borders(long); len(b) != maxTears || b[0] != sector || b[len(b)-1] != 1<<20-sector {
		t.Errorf("a long write is torn at %v", b)
	}
}

// Any sectors of a write may be present, each completely or not at all.
func TestRandomStatesKeepWholeSectors(t *testing.T) {
	fsys, f := start(t)
	put(t, f, strings.Repeat("1", 4*sector), 0)
	must.Do(t, f.Sync())
	put(t, f, strings.Repeat("2", 2*sector), sector)
	point, seen := fsys.Point(), map[string]bool{}
	for seed := range uint64(300) {
		text := read(t, point.now.build(point.now.pending, someOf(point.now.pending, seed)), "/a")
		must.Equal(t, len(text), 4*sector)
		key := ""
		for p := range 4 {
			if page := text[p*sector : (p+1)*sector]; strings.Count(page, page[:1]) != sector {
				t.Fatalf("sector %d is of two kinds", p)
			}
			key += text[p*sector : p*sector+1]
		}
		seen[key] = true
	}
	if len(seen) != 4 || !seen["1111"] || !seen["1221"] || !seen["1121"] || !seen["1211"] {
		t.Errorf("seen: %v", seen)
	}
}

// A power cut leaves each page that bytes were copied into as it was at any time since the sync,
// whatever the other pages are.
func TestEachPageOfAWindowIsWrittenAtAnyTime(t *testing.T) {
	fsys, f := start(t)
	put(t, f, string(make([]byte, 2*page)), 0)
	must.Do(t, f.Sync())
	w := must.Get(vfs.Map(f, 0, 2*page))(t)
	for i, text := range []string{"1", "2", "3"} {
		must.Do(t, w.Copy([]byte(text), page-2+int64(i))) // the third is in the second page
	}
	must.Do(t, errors.Join(w.Copy([]byte("4"), page-3), w.Close()))
	point, random := fsys.Point(), map[string]bool{}
	key := func(m *vfs.Mem) string { return read(t, m, "/a")[page-3 : page+1] }
	for seed := range uint64(300) {
		random[key(point.now.build(point.now.pending, eachPage(point.now.pending, func(_ pageOf, n int) int {
			return rand.New(rand.NewPCG(seed, uint64(n))).IntN(n + 1)
		})))] = true
	}
	states := map[string]bool{}
	for s := range point.States(1, 0) {
		if !s.FlushForgotten {
			states[key(s.Image)] = true
		}
	}
	for a, first := range []string{"\x00\x00\x00", "\x001\x00", "\x0012", "412"} {
		for b, second := range []string{"\x00", "3"} {
			got := key(point.Pages(func(page int64, n int) int { return []int{a, b}[page] }))
			if want := first + second; got != want || !random[want] {
				t.Errorf("%d and %d copies: %q, want %q, at random: %v", a, b, got, want, random[want])
			}
		}
	}
	for _, want := range []string{"\x00\x00\x003", "412\x00", "\x00123"} {
		must.Equal(t, states[want], true, want)
	}
}

// A disk that forgets a flush has lost that flush alone, or with everything later.
func TestIgnoredSyncsLoseSyncedData(t *testing.T) {
	fsys, f := start(t)
	put(t, f, "1", 0)
	must.Do(t, f.Sync())
	put(t, f, "2", 1)
	must.Do(t, f.Sync())
	put(t, f, "3", 2)
	must.Do(t, f.Sync())
	kept, forgot := map[string]bool{}, map[string]bool{}
	for s := range fsys.Point().States(1, 0) {
		if s.FlushForgotten {
			forgot[read(t, s.Image, "/a")] = true
		} else {
			kept[read(t, s.Image, "/a")] = true
		}
	}
	must.Equal(t, len(kept), 1, kept)
	must.Equal(t, kept["123"], true, kept)
	for _, text := range []string{"1", "12", "1\x003"} {
		must.Equal(t, forgot[text], true, text, forgot)
	}
	must.Equal(t, forgot[""], false, forgot)
	must.Equal(t, forgot["\x0023"], false, forgot)
}

// The function of OnOperation sees the state before the operation, also in the middle of writes,
// and may refuse the operation.
func TestOnOperationIsCalledBeforeEachOperation(t *testing.T) {
	fsys := New(vfs.NewMem())
	fsys.Halves = true
	var seen []string
	refused := errors.New("no")
	fsys.OnOperation(func(c Operation) error {
		seen = append(seen, fmt.Sprintf("%d %s %s %v", c.N, c.Op, c.Name, c.Half))
		if c.Half {
			must.Equal(t, read(t, c.Point().Kill(), "/a"), "he")
		}
		if c.Op == "sync" {
			return refused
		}
		return nil
	})
	f := must.Get(fsys.Create("/a"))(t)
	put(t, f, "hello", 0)
	must.Fail(t, f.Sync(), refused, "the refused sync")
	must.Equal(t, len(list(t, fsys.Point().Cut())), 0)
	want := []string{"0 create /a false", "1 write /a false", "2 write /a true", "3 sync /a false"}
	must.Equal(t, fmt.Sprint(seen), fmt.Sprint(want), want)
	must.Equal(t, fsys.Operations(), 4, want)
	fsys.OnOperation(nil)
	must.Do(t, errors.Join(f.Sync(), fsys.SyncDir("/")))
	must.Equal(t, read(t, fsys.Point().Cut(), "/a"), "hello")
}

func list(t *testing.T, m *vfs.Mem) []string {
	t.Helper()
	return must.Get(m.List("/"))(t)
}

// States have different hashes, there are at most as many as the limit, and the same seed gives the
// same ones.
func TestStatesRespectTheirLimit(t *testing.T) {
	fsys, f := start(t)
	for i := range 20 {
		put(t, f, fmt.Sprint(i), int64(i*2))
	}
	take := func(seed uint64) (hashes []byte) {
		n := 0
		for s := range fsys.Point().States(seed, 10) {
			n++
			hashes = append(hashes, s.Hash[:]...)
			must.Equal(t, hash(s.Image), s.Hash, "not all of the state is durable")
			must.Equal(t, hash(s.Image.Crash()), s.Hash, "not all of the state is durable")
		}
		must.Equal(t, n, 10)
		return hashes
	}
	must.Equal(t, take(1), take(1), "one seed gives two choices")
	if a, b := take(1), take(2); bytes.Equal(a, b) {
		t.Error("two seeds give one choice")
	}
}

// Files that no name can refer to any more are removed.
func TestRemovedFilesAreDropped(t *testing.T) {
	fsys := New(vfs.NewMem())
	for i := range 100 {
		name := fmt.Sprint("/", i)
		f := must.Get(fsys.Create(name))(t)
		put(t, f, "text", 0)
		must.Do(t, errors.Join(fsys.SyncDir("/"), fsys.Remove(name), fsys.SyncDir("/")))
		put(t, f, "more", 0)
	}
	if j := fsys.journal; len(j.files) > 0 || len(j.pending) > 0 || len(j.recent) > 0 {
		t.Errorf("%d files, %d operations pending, %d for forgotten flushes", len(j.files), len(j.pending),
			len(j.recent))
	}
}
