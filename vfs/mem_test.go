package vfs

import (
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// tree lists all files as "name=content" under dir.
func tree(t *testing.T, v FS, dir string) string {
	t.Helper()
	var out []string
	var walk func(dir string)
	walk = func(dir string) {
		names := must.Get(v.List(dir))(t)
		for _, n := range names {
			n = dir + "/" + n
			info := must.Get(v.Stat(n))(t)
			if info.IsDir() {
				out = append(out, n+"/")
				walk(n)
			} else {
				out = append(out, n+"="+textOf(t, v, n))
			}
		}
	}
	walk(dir)
	return strings.Join(out, " ")
}

func TestCrashLosesUnsyncedBytes(t *testing.T) {
	m := NewMem()
	must.Do(t, m.Mkdir("/s"))
	must.Do(t, m.SyncDir("/"))
	check := func(step, kill, crash string) {
		t.Helper()
		must.Equal(t, tree(t, m.Clone(), "/s"), kill, step)
		must.Equal(t, tree(t, m.Crash(), "/s"), crash, step)
	}
	a := put(t, m, "/s/a", "one")
	check("created", "/s/a=one", "")
	must.Do(t, a.Sync())
	check("content synced, name not", "/s/a=one", "")
	must.Do(t, m.SyncDir("/s"))
	check("both synced", "/s/a=one", "/s/a=one")

	b := put(t, m, "/s/b", "two")
	must.Do(t, m.SyncDir("/s"))
	check("name synced, content not", "/s/a=one /s/b=two", "/s/a=one /s/b=")
	must.Do(t, b.Sync())

	must.Get(a.WriteAt([]byte("ONE, longer"), 0))(t)
	check("written again", "/s/a=ONE, longer /s/b=two", "/s/a=one /s/b=two")
	must.Do(t, a.Truncate(1))
	check("cut", "/s/a=O /s/b=two", "/s/a=one /s/b=two")
	must.Do(t, a.Sync())
	must.Do(t, a.PunchHole(0, 1))
	check("hole not synced", "/s/a=\x00 /s/b=two", "/s/a=O /s/b=two")
	must.Do(t, a.Sync())

	must.Do(t, m.Rename("/s/b", "/s/a"))
	check("renamed over a", "/s/a=two", "/s/a=\x00 /s/b=two")
	must.Do(t, m.Remove("/s/a"))
	check("removed", "", "/s/a=\x00 /s/b=two")
	must.Do(t, put(t, m, "/s/b", "new").Sync())
	check("made again under an old name", "/s/b=new", "/s/a=\x00 /s/b=two")
	must.Do(t, m.SyncDir("/s"))
	check("names synced", "/s/b=new", "/s/b=new")

	must.Do(t, m.Mkdir("/s/d"))
	c := put(t, m, "/s/d/c", "c")
	must.Do(t, c.Sync())
	must.Do(t, m.SyncDir("/s/d"))
	check("parent's name not synced", "/s/b=new /s/d/ /s/d/c=c", "/s/b=new")
	must.Do(t, m.SyncDir("/s"))
	check("parent's name synced", "/s/b=new /s/d/ /s/d/c=c", "/s/b=new /s/d/ /s/d/c=c")
}

func TestCopiesAreIndependentAndUnlocked(t *testing.T) {
	m := NewMem()
	f := put(t, m, "/a", "one")
	must.Do(t, f.Sync())
	must.Do(t, m.SyncDir("/"))
	must.Get(m.Lock("/a", LockCreate))(t)
	for name, c := range map[string]*Mem{"Clone": m.Clone(), "Crash": m.Crash()} {
		l, err := c.Lock("/a", LockCreate)
		must.Do(t, err, name)
		must.Do(t, l.Write([]byte(name)))
		must.Do(t, put(t, c, "/b", "b").Close())
		must.Equal(t, tree(t, m, ""), "/a=one", name)
		must.Equal(t, tree(t, c.Crash(), ""), "/a=one", name)
	}
	must.Get(f.WriteAt([]byte("two"), 0))(t)
	must.Equal(t, textOf(t, m.Crash(), "/a"), "one", "the original's synced content")
}

// A simple model: each file is a string and the string of its last sync.
func TestRandomHistoriesCrashAsTheModelSays(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	type file struct{ now, synced string }
	for range 50 {
		m := NewMem()
		names, synced := map[string]*file{}, map[string]*file{}
		handles := map[*file]File{}
		for range 60 {
			name := fmt.Sprintf("/%d", rng.Intn(4))
			f := names[name]
			switch op := rng.Intn(8); {
			case f == nil:
				f = &file{}
				names[name], handles[f] = f, put(t, m, name, "")
			case op == 0:
				must.Do(t, m.Remove(name))
				delete(names, name)
			case op == 1:
				to := fmt.Sprintf("/%d", rng.Intn(4))
				must.Do(t, m.Rename(name, to))
				delete(names, name)
				names[to] = f
			case op == 2:
				must.Do(t, m.SyncDir("/"))
				synced = maps.Clone(names)
			case op == 3:
				must.Do(t, handles[f].Sync())
				f.synced = f.now
			case op == 4:
				f.now = f.now[:rng.Intn(len(f.now)+1)]
				must.Do(t, handles[f].Truncate(int64(len(f.now))))
			case op == 5: // continue with the copy after a kill
				m = m.Clone()
				for n, f := range names {
					h := must.Get(m.Open(n, true))(t)
					handles[f] = h
				}
			default:
				add := strings.Repeat(string(rune('a'+rng.Intn(26))), rng.Intn(6000))
				must.Get(handles[f].WriteAt([]byte(add), int64(len(f.now))))(t)
				f.now += add
			}
			c := m.Crash()
			left := must.Get(c.List("/"))(t)
			must.Equal(t, len(left), len(synced), left)
			for n, f := range synced {
				must.Equal(t, textOf(t, c, n), f.synced, n)
			}
		}
	}
}

func TestCloneIsConsistentWithConcurrentWriters(t *testing.T) {
	m := NewMem()
	a, b := put(t, m, "/a", "00000000"), put(t, m, "/b", "00000000")
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := 1; i < 3000; i++ {
			v := fmt.Appendf(nil, "%08d", i)
			a.WriteAt(v, 0) // a is not older than b
			b.WriteAt(v, 0)
			if i%64 == 0 {
				a.Sync()
				m.SyncDir("/")
			}
		}
	}()
	for range 300 {
		c := m.Clone()
		va, vb := textOf(t, c, "/a"), textOf(t, c, "/b")
		if va < vb {
			t.Fatalf("the copy has a=%s, b=%s: a later write without the earlier one", va, vb)
		}
		m.Crash()
	}
	wg.Wait()
}
