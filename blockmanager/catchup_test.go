package blockmanager

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// stateText returns all rows of a state, and the fields that Open derives from them.
func stateText(st *state) string {
	var lines []string
	st.each(func(key, value []byte) { lines = append(lines, fmt.Sprintf("%q %x", key, value)) })
	for id, c := range st.containers {
		lines = append(lines, fmt.Sprintf("container %s: %d blocks, open or dead: %v", id, c.live,
			c.file != nil || c.row.state == containerDead))
	}
	for id, b := range st.blocks {
		if b.in != st.containers[b.container] {
			lines = append(lines, fmt.Sprintf("block %d is in a container that is gone", id))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func callerRowsOf(st *state) map[string]string {
	rows := map[string]string{}
	for _, r := range st.caller.withPrefix("") {
		rows[r.key] = string(r.value)
	}
	return rows
}

// checkReload reloads a follower, and compares its state with the state of a manager that is opened
// now.
func checkReload(o Options, follower *Manager, want *storeModel) (moved bool, err error) {
	before := callerRowsOf(follower.state)
	changed, moved, err := follower.Reload()
	if err != nil {
		return moved, err
	}
	fresh, err := Open(o)
	if err != nil {
		return moved, err
	}
	defer fresh.Close()
	if got, want := stateText(follower.state), stateText(fresh.state); got != want {
		return moved, fmt.Errorf("after a reload the state is\n%s\nwant\n%s", got, want)
	}
	after := callerRowsOf(follower.state)
	var keys []string
	for _, key := range changed {
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	var differ []string
	for key := range maps.Keys(before) {
		if v, ok := after[key]; !ok || v != before[key] {
			differ = append(differ, key)
		}
	}
	for key := range maps.Keys(after) {
		if _, ok := before[key]; !ok {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	if !slices.Equal(keys, differ) {
		return moved, fmt.Errorf("keys %q have changed, says Reload; want %q", keys, differ)
	}
	return moved, want.difference(follower)
}

// harmJournal harms the journal, and returns the function that repairs it.
func harmJournal(r *rand.Rand, mem *vfs.Mem) (repair func() error, err error) {
	nothing := func() error { return nil }
	f, err := mem.Open("/store/"+JournalName, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size == 0 {
		return nothing, err
	}
	all := make([]byte, size)
	if _, err := f.ReadAt(all, 0); err != nil {
		return nil, err
	}
	write := func(b []byte) error {
		f, err := mem.Open("/store/"+JournalName, true)
		if err == nil {
			err = errors.Join(f.Truncate(int64(len(b))), func() error {
				_, err := f.WriteAt(b, 0)
				return err
			}(), f.Close())
		}
		return err
	}
	harmed := bytes.Clone(all)
	if at := r.IntN(len(harmed)); r.IntN(2) == 0 {
		harmed[at] ^= byte(1 + r.IntN(255))
	} else {
		harmed = harmed[:at]
	}
	return func() error { return write(all) }, write(harmed)
}

// A follower that takes the changes from the journal gets the same state as a follower that reads
// all metadata. A journal that is damaged, cut, or missing changes no state.
func TestReloadEqualsOpen(t *testing.T) {
	for _, journal := range []string{"whole", "harmed", "missing"} {
		t.Run("journal="+journal, func(t *testing.T) { reloadEqualsOpen(t, journal) })
	}
}

func reloadEqualsOpen(t *testing.T, journal string) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	s := &script{r: r, now: newStoreModel(), m: openWriter(t, o)}
	defer func() { s.m.Close() }()
	follow := o
	follow.Follow, follow.ReadOnly = true, true
	if journal == "missing" {
		f := faultfs.New(mem)
		f.Watch(func(c faultfs.Call) error {
			if strings.HasSuffix(c.Name, JournalName) {
				return &fs.PathError{Op: "open", Path: c.Name, Err: fs.ErrNotExist}
			}
			return nil
		})
		follow.FS = f
	}
	follower := must.Get(Open(follow))(t)
	defer follower.Close()
	moves, caughtUp := 0, 0
	for range seedtest.Rounds(400, 100) {
		for range 1 + r.IntN(3) {
			must.Do(t, s.step())
		}
		repair := func() error { return nil }
		if journal == "harmed" {
			repair = must.Get(harmJournal(r, mem))(t)
		}
		moved, err := checkReload(follow, follower, s.now)
		must.Do(t, errors.Join(err, repair()))
		if moved {
			if moves++; follower.journalAt > 0 {
				caughtUp++
			}
		}
		if r.IntN(3) == 0 {
			must.Do(t, follower.Forget())
		}
		if r.IntN(40) == 0 { // the next writer writes the journal anew
			for len(s.open) > 0 {
				must.Do(t, s.closeOne())
			}
			must.Do(t, s.m.Close())
			s.m = openWriter(t, o)
		}
	}
	t.Logf("%d reloads found something, %d in the journal", moves, caughtUp)
	if journal == "whole" && caughtUp < moves*8/10 || journal == "missing" && caughtUp > 0 ||
		journal == "harmed" && (caughtUp == 0 || caughtUp == moves) {
		t.Errorf("%d of %d times the journal had the changes", caughtUp, moves)
	}
}

// mixedFS is a file system in which one file has the content that it has in another file system.
type mixedFS struct {
	vfs.FS
	name  string
	other vfs.FS
}

func (f mixedFS) Open(name string, write bool) (vfs.File, error) {
	if strings.HasSuffix(name, f.name) {
		return f.other.Open(name, write)
	}
	return f.FS.Open(name, write)
}

// commitFirst commits a value of the row "first".
func commitFirst(t *testing.T, m *Manager, value string) {
	t.Helper()
	must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("first"), []byte(value)}}}))
}

// Metadata that the anchor accepts no more is an error of a reload, not the newest there is.
func TestReloadRefusesMetadataThatTheAnchorHasLeftBehind(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	defer m.Close()
	follow := o
	follow.Follow, follow.ReadOnly = true, true
	open := func() *Manager {
		t.Helper()
		follower := must.Get(Open(follow))(t)
		t.Cleanup(func() { follower.Close() })
		return follower
	}
	follow.FS = mixedFS{mem.Clone(), anchorName, mem}
	same := open()
	follow.FS = mem
	behind := open()
	for commit := range 3 {
		commitFirst(t, m, fmt.Sprint(commit))
		// The first commit is announced, and may not have come.
		if _, moved, err := same.Reload(); moved || errors.Is(err, fault.ErrCorrupt) != (commit > 0) {
			t.Errorf("after commit %d: moved=%v, %v", commit, moved, err)
		}
		if commit == 0 {
			behind.o.FS = mixedFS{mem.Clone(), anchorName, mem}
		}
	}
	// This metadata is newer than the follower's state, but older than the anchor.
	if _, moved, err := behind.Reload(); moved || !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("metadata of the first of three commits: moved=%v, %v", moved, err)
	}
}

// A follower reads the anchor before the metadata. A writer that goes on after that makes no
// metadata too old.
func TestFollowerOpensWhileWriterGoesOn(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	defer m.Close()
	view := faultfs.New(mem)
	went := false
	view.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.Read && strings.HasPrefix(c.Name, o.metaDir()) && !went {
			went = true
			for commit := range 3 {
				commitFirst(t, m, fmt.Sprint(commit))
			}
		}
		return nil
	})
	follow := o
	follow.FS, follow.Follow, follow.ReadOnly = view, true, true
	follower := must.Get(Open(follow))(t)
	defer follower.Close()
	if got := callerRowsOf(follower.state)["first"]; got != "row" || !went {
		t.Errorf("the row is %q, want the row from before the commits", got)
	}
	if _, moved, err := follower.Reload(); !moved || err != nil || callerRowsOf(follower.state)["first"] != "2" {
		t.Errorf("moved=%v, %v: the row is %q", moved, err, callerRowsOf(follower.state)["first"])
	}
}

// Reload ignores changes in the journal that are complete but were not made to this store.
func TestReloadChecksChangesInJournal(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	commitFirst(t, m, "before") // writes the journal
	must.Do(t, m.Close())
	other := mem.Clone()
	o.FS = other
	// The same epochs, other rows: what a copy of the store would have.
	stranger := openWriter(t, o)
	defer stranger.Close()
	commitFirst(t, stranger, "before")
	commitFirst(t, stranger, "of a copy")
	o.FS = mem
	m = openWriter(t, o)
	defer m.Close()
	commitFirst(t, m, "before")
	follow := o
	follow.Follow, follow.ReadOnly = true, true
	copied := must.Get(Open(follow))(t)
	defer copied.Close()
	forged := must.Get(Open(follow))(t)
	defer forged.Close()
	commitFirst(t, m, "after")
	copied.o.FS = mixedFS{mem, JournalName, other}
	forged.o.FS = mixedFS{mem, JournalName, forgeJournal(t, &m.o, mem.Clone())}
	for name, follower := range map[string]*Manager{"of a copy": copied, "with another value": forged} {
		if _, moved, err := follower.Reload(); !moved || err != nil {
			t.Errorf("%s: moved=%v, %v", name, moved, err)
		}
		if got := callerRowsOf(follower.state)["first"]; got != "after" || follower.journalAt > 0 {
			t.Errorf("%s: the row is %q, want %q from all metadata", name, got, "after")
		}
	}
}

// forgeJournal replaces a value in the last record of the journal, with the right checksums.
func forgeJournal(t *testing.T, o *Options, mem *vfs.Mem) *vfs.Mem {
	t.Helper()
	f := must.Get(mem.Open(o.journalPath(JournalName), true))(t)
	defer f.Close()
	size := must.Get(f.Size())(t)
	var last journalHead
	at := int64(0)
	for next := int64(0); next < size; next += last.size() {
		at = next
		last = must.Get(readJournalHead(f, at, size, o.Instance))(t)
	}
	payload := must.Get(last.read(f, at))(t)
	payload = bytes.Replace(payload, []byte("after"), []byte("wrong"), 1)
	must.Get(f.WriteAt(journalRecord(o, last.kind, last.epoch, last.previous, payload), at))(t)
	return mem
}
