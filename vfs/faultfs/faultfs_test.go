package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/vfstest"
)

func TestConformsWithoutRules(t *testing.T) {
	vfstest.Conform(t, func(*testing.T) (vfs.FS, string) { return New(vfs.NewMem()), "/" })
}

// example returns a file system with an open file "/d/a" of sixteen synced bytes.
func example(t *testing.T) (*FS, *vfs.Mem, vfs.File) {
	t.Helper()
	mem := vfs.NewMem()
	disk := New(mem)
	must.Do(t, disk.Mkdir("/d"))
	f := must.Get(disk.Create("/d/a"))(t)
	_, err := f.WriteAt(bytes.Repeat([]byte("x"), 16), 0)
	must.Do(t, errors.Join(err, f.Sync(), disk.SyncDir("/d"), disk.SyncDir("/")))
	return disk, mem, f
}

func content(t *testing.T, v vfs.FS, name string) string {
	t.Helper()
	f, err := v.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	must.Do(t, err)
	defer f.Close()
	size := must.Get(f.Size())(t)
	b := make([]byte, size)
	must.Get(f.ReadAt(b, 0))(t)
	return string(b)
}

// Each kind of call fails before, after and in the middle of its work. The error is the disk's, and
// the disk is in the state that the rule specifies.
func TestEachCallFailsBeforeAfterAndPartway(t *testing.T) {
	full, half := strings.Repeat("y", 16), strings.Repeat("y", 8)+strings.Repeat("x", 8)
	x16 := strings.Repeat("x", 16)
	names := func(v vfs.FS) string {
		list := must.Get(v.List("/d"))(t)
		return strings.Join(list, " ")
	}
	a := func(v vfs.FS) string { return content(t, v, "/d/a") }
	durable := func(v vfs.FS) string { return content(t, v.(*vfs.Mem).Crash(), "/d/a") }
	for _, c := range []struct {
		op                    Op
		call                  func(v vfs.FS, f vfs.File) error
		look                  func(v vfs.FS) string
		before, after, middle string
	}{
		{Create, func(v vfs.FS, _ vfs.File) error { return must.Err(v.Create("/d/b")) }, names, "a", "a b", "a"},
		{Open, func(v vfs.FS, _ vfs.File) error { return must.Err(v.Open("/d/a", false)) }, names, "a", "a", "a"},
		{Mkdir, func(v vfs.FS, _ vfs.File) error { return v.Mkdir("/d/b") }, names, "a", "a b", "a"},
		{Remove, func(v vfs.FS, _ vfs.File) error { return v.Remove("/d/a") }, names, "a", "", "a"},
		{Rename, func(v vfs.FS, _ vfs.File) error { return v.Rename("/d/a", "/d/c") }, names, "a", "c", "a"},
		{List, func(v vfs.FS, _ vfs.File) error { return must.Err(v.List("/d")) }, names, "a", "a", "a"},
		{Stat, func(v vfs.FS, _ vfs.File) error { return must.Err(v.Stat("/d/a")) }, names, "a", "a", "a"},
		{Lock, func(v vfs.FS, _ vfs.File) error {
			return must.Err(v.Lock("/d/b", vfs.LockCreate))
		}, names, "a", "a b", "a"},
		{Size, func(_ vfs.FS, f vfs.File) error { return must.Err(f.Size()) }, a, x16, x16, x16},
		{Write, func(_ vfs.FS, f vfs.File) error { return must.Err(f.WriteAt([]byte(full), 0)) }, a, x16, full, half},
		{Truncate, func(_ vfs.FS, f vfs.File) error { return f.Truncate(8) }, a, x16, x16[:8], x16[:12]},
		{Preallocate, func(_ vfs.FS, f vfs.File) error { return f.Preallocate(0, 100) }, a, x16, x16, x16},
		{Punch, func(_ vfs.FS, f vfs.File) error {
			return f.PunchHole(0, 8)
		}, a, x16, strings.Repeat("\x00", 8) + x16[:8], strings.Repeat("\x00", 4) + x16[:12]},
		{Sync, func(_ vfs.FS, f vfs.File) error {
			if _, err := f.WriteAt([]byte(full), 0); err != nil {
				return nil
			}
			return f.Sync()
		}, durable, x16, full, x16},
		{SyncDir, func(v vfs.FS, _ vfs.File) error {
			if v.Remove("/d/a") != nil {
				return nil
			}
			return v.SyncDir("/d")
		}, durable, x16, "none", x16},
		{Close, func(_ vfs.FS, f vfs.File) error { return f.Close() }, a, x16, x16, x16},
	} {
		for when, want := range map[When]string{Before: c.before, After: c.after, Middle: c.middle} {
			disk, mem, f := example(t)
			fault := disk.Fail(Rule{Ops: []Op{c.op}, When: when})
			err := c.call(disk, f)
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), string(c.op)) ||
				!strings.Contains(err.Error(), "/d") {
				t.Errorf("%s, when %d: error %v", c.op, when, err)
			}
			must.Equal(t, c.look(mem), want, c.op, when)
			if call, failed := fault.First(); !failed || call.Op != c.op || fault.Failures() != 1 {
				t.Errorf("%s, when %d: first failed call %v, %d failed", c.op, when, call, fault.Failures())
			}
			if c.op == Lock {
				l, err := mem.Lock("/d/b", vfs.LockCreate)
				must.Do(t, errors.Join(err, l.Close()))
			}
		}
	}
}

func TestReadsFailBeforeAfterAndPartway(t *testing.T) {
	for when, want := range map[When]string{Before: "................", After: "xxxxxxxxxxxxxxxx",
		Middle: "xxxxxxxx........"} {
		disk, _, f := example(t)
		disk.Fail(Rule{Ops: []Op{Read}, When: when})
		b := []byte(strings.Repeat(".", 16))
		n, err := f.ReadAt(b, 0)
		if !errors.Is(err, syscall.EIO) || n != strings.Count(want, "x") || string(b) != want {
			t.Errorf("when %d: %d bytes %q, %v", when, n, b, err)
		}
		must.Equal(t, must.Get(f.ReadAt(b, 0))(t), 16, when)
	}
}

func TestLockErrorsAreReturned(t *testing.T) {
	disk, mem, _ := example(t)
	l := must.Get(disk.Lock("/d/LOCK", vfs.LockCreate))(t)
	for _, op := range []Op{LockWrite, LockRead, Unlock} {
		disk.Fail(Rule{Ops: []Op{op}})
		errs := map[Op]func() error{
			LockWrite: func() error { return l.Write([]byte("text")) },
			LockRead:  func() error { return must.Err(l.Read()) },
			Unlock:    l.Close,
		}
		must.Fail(t, errs[op](), syscall.EIO, op)
	}
	again, err := mem.Lock("/d/LOCK", vfs.LockCreate)
	must.Do(t, errors.Join(err, again.Close()))
}

// A rule counts the calls that match its kind, its name pattern and its function.
func TestRulesMatchCallsByKindNameAndFunction(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string // the indexes of the calls below that fail
	}{
		{Rule{}, "0"},
		{Rule{Skip: 3}, "3"},
		{Rule{Skip: 3, Times: 2}, "3 4"},
		{Rule{Skip: 3, Times: Forever}, "3 4 5 6 7"},
		{Rule{Ops: []Op{Write, Stat}, Times: Forever}, "0 1 2 3"},
		{Rule{Ops: []Op{Write}, Name: "*.wal", Times: Forever}, "1 2"},
		{Rule{Ops: []Op{Write}, Name: "*.wal", Skip: 1}, "2"},
		{Rule{Name: "d/*", Times: Forever}, "1 2"},
		{Rule{Name: "e/*", Times: Forever}, ""},
		{Rule{Name: "b", Times: Forever}, "0 6 7"}, // a rename matches by either name
		{Rule{Match: func(c Call) bool { return c.Off == 4 }}, "2"},
		{Rule{Ops: Changes, Times: Forever}, "0 1 2 5 6 7"},
		{Rule{Ops: Looks, Times: Forever}, "3 4"},
	} {
		disk, mem, _ := example(t)
		must.Do(t, errors.Join(must.Err(mem.Create("/b")), must.Err(mem.Create("/d/1.wal"))))
		b := must.Get(disk.Open("/b", true))(t)
		log := must.Get(disk.Open("/d/1.wal", true))(t)
		fault := disk.Fail(c.rule)
		var failed []string
		for i, err := range []error{
			must.Err(b.WriteAt([]byte("."), 0)), must.Err(log.WriteAt([]byte("."), 0)),
			must.Err(log.WriteAt([]byte("."), 4)), must.Err(disk.Stat("/d")),
			must.Err(disk.List("/")), disk.SyncDir("/"), disk.Rename("/b", "/c"), disk.Rename("/c", "/b"),
		} {
			if errors.Is(err, syscall.EIO) {
				failed = append(failed, string(rune('0'+i)))
			}
		}
		if got := strings.Join(failed, " "); got != c.want || fault.Failures() != len(failed) {
			t.Errorf("%+v: calls %s fail, want %s; %d failed", c.rule, got, c.want, fault.Failures())
		}
	}
}

// The errors match a real disk's: errors.Is recognizes the error of a full disk as ErrNoSpace, but
// a sync that found no space is not ErrNoSpace, which would suggest a retry.
func TestInjectedErrorsMatchThoseOfADisk(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		op      Op
		err     error
		call    func(v vfs.FS, f vfs.File) error
		noSpace bool
		text    string
	}{
		{Write, ErrSpace, func(_ vfs.FS, f vfs.File) error {
			return must.Err(f.WriteAt([]byte("y"), 0))
		}, true, "write /d/a: no space left on device"},
		{Sync, ErrSpace, func(_ vfs.FS, f vfs.File) error {
			return f.Sync()
		}, false, "sync /d/a: no space left on device"},
		{Write, nil, func(_ vfs.FS, f vfs.File) error {
			return must.Err(f.WriteAt([]byte("y"), 0))
		}, false, "write /d/a: input/output error"},
		{Rename, nil, func(v vfs.FS, _ vfs.File) error {
			return v.Rename("/d/a", "/d/b")
		}, false, "rename /d/a /d/b: input/output error"},
		{Write, own, func(_ vfs.FS, f vfs.File) error { return must.Err(f.WriteAt([]byte("y"), 0)) }, false, "own"},
	} {
		disk, _, f := example(t)
		disk.Fail(Rule{Ops: []Op{c.op}, Err: c.err})
		err := c.call(disk, f)
		must.Equal(t, fmt.Sprint(err), c.text)
		must.Equal(t, errors.Is(err, fault.ErrNoSpace), c.noSpace)
		if want := c.err; want != nil && !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}

// A failed sync loses the written data: no later sync makes it durable unless it is written again.
func TestFailedSyncLosesUnsyncedData(t *testing.T) {
	const page = 4096
	for _, loss := range []Loss{Kept, Hidden, Gone} {
		disk, mem, f := example(t)
		old, lost, next := strings.Repeat("a", page), strings.Repeat("b", page), strings.Repeat("c", page)
		_, err := f.WriteAt([]byte(old+old+old), 0)
		must.Do(t, errors.Join(err, f.Sync()))
		must.Get(f.WriteAt([]byte(lost+lost), 0))(t)
		disk.Fail(Rule{Ops: []Op{Sync}, Loss: loss})
		must.Fail(t, f.Sync(), syscall.EIO)
		read := lost + lost + old
		if loss == Gone {
			read = old + old + old
		}
		killed := mem.Clone()
		for what, v := range map[string]vfs.FS{"the file": mem, "after a kill": killed} {
			must.Equal(t, content(t, v, "/d/a"), read, loss, what)
		}
		must.Equal(t, content(t, mem.Crash(), "/d/a"), old+old+old, loss)
		// Page 1 is written again, page 0 is not, both in the copy after a kill and in the file
		// itself.
		g := must.Get(killed.Open("/d/a", true))(t)
		for what, h := range map[*vfs.Mem]vfs.File{mem: f, killed: g} {
			_, err = h.WriteAt([]byte(next), page)
			must.Do(t, errors.Join(err, h.Sync()))
			want := old + next + old
			if loss == Kept {
				want = lost + next + old
			}
			must.Equal(t, content(t, what.Crash(), "/d/a"), want, loss)
		}
	}
}

func TestTruncatedBytesDoNotReappear(t *testing.T) {
	disk, mem, f := example(t)
	must.Get(f.WriteAt([]byte("yyyy"), 16))(t)
	disk.Fail(Rule{Ops: []Op{Sync}, Loss: Hidden})
	f.Sync()
	must.Equal(t, content(t, mem.Crash(), "/d/a"), strings.Repeat("x", 16), "a power cut")
	must.Do(t, errors.Join(f.Truncate(20), f.Sync()))
	must.Equal(t, content(t, mem.Crash(), "/d/a"), strings.Repeat("x", 16)+"\x00\x00\x00\x00", "a later sync")
	must.Do(t, errors.Join(f.Truncate(4), f.Sync()))
	must.Equal(t, content(t, mem.Crash(), "/d/a"), "xxxx")
}

func TestWatchObservesRefusesAndTruncatesCalls(t *testing.T) {
	disk, mem, f := example(t)
	var seen []Op
	own := errors.New("own")
	disk.Watch(func(c Call) error {
		seen = append(seen, c.Op)
		switch c.Op {
		case Sync:
			return own
		case Write:
			return Halfway(own)
		}
		return nil
	})
	if n, err := f.WriteAt([]byte("yyyy"), 0); n != 2 || err != own {
		t.Errorf("write: %d, %v", n, err)
	}
	if err := f.Sync(); err != own {
		t.Errorf("sync: %v", err)
	}
	disk.Watch(nil)
	var done []Op
	disk.WatchDone(func(c Call) { done = append(done, c.Op) })
	disk.Fail(Rule{Ops: []Op{Sync}})
	must.Do(t, errors.Join(must.Err(f.WriteAt([]byte("y"), 1)), must.Err(f.ReadAt(make([]byte, 1), 0)), f.Truncate(9)))
	if err := f.Sync(); err == nil || disk.Remove("/none") == nil {
		t.Error("no failure")
	}
	must.Do(t, errors.Join(f.Sync(), f.Close()))
	disk.WatchDone(nil)
	must.Equal(t, done, []Op{Write, Read, Truncate, Sync, Close})
	if got := content(t, mem, "/d/a"); !strings.HasPrefix(got, "yyx") {
		t.Errorf("half a write left %q", got)
	}
	must.Equal(t, seen, []Op{Write, Sync})
}

func TestCallsAreCountedAndListed(t *testing.T) {
	disk, _, f := example(t)
	before := disk.Count()
	disk.Record(true)
	f.WriteAt([]byte("yy"), 3)
	disk.Rename("/d/a", "/d/b")
	f.ReadAt(make([]byte, 5), 1)
	want := []Call{
		{N: before, Op: Write, Name: "/d/a", Off: 3, Len: 2},
		{N: before + 1, Op: Rename, Name: "/d/a", To: "/d/b"},
		{N: before + 2, Op: Read, Name: "/d/a", Off: 1, Len: 5},
	}
	must.Equal(t, disk.Calls(), want)
	if n, w := disk.Count(), disk.Count(Write, Rename); n != before+3 || w != 3 {
		t.Errorf("%d calls, %d writes and renames", n, w)
	}
	disk.Record(false)
	f.Close()
	must.Equal(t, len(disk.Calls()), 0)
}

func TestHealRemovesAllRules(t *testing.T) {
	disk, _, f := example(t)
	disk.Fail(Rule{Times: Forever})
	if f.Sync() == nil {
		t.Error("no failure")
	}
	disk.Heal()
	must.Do(t, f.Sync())
}

// After a crash the same rules apply to the new file system.
func TestBaseFileSystemCanBeReplaced(t *testing.T) {
	disk, mem, f := example(t)
	must.Get(f.WriteAt([]byte("y"), 0))(t)
	left := mem.Crash()
	disk.SetBase(left)
	if disk.Base() != vfs.FS(left) {
		t.Error("the old one is below")
	}
	must.Equal(t, content(t, disk, "/d/a"), strings.Repeat("x", 16))
}
