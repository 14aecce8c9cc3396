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
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// stateText returns all rows of a state, and what else Open derives from them.
func stateText(st *state) string {
	var lines []string
	st.each(func(key, value []byte) { lines = append(lines, fmt.Sprintf("%q %x", key, value)) })
	for id, c := range st.containers {
		lines = append(lines, fmt.Sprintf("container %s: %d blocks, open or dead: %v", id, c.live, c.file != nil || c.row.state == containerDead))
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

// checkReload reloads a follower, and compares its state with one that was opened just now.
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
			err = errors.Join(f.Truncate(int64(len(b))), func() error { _, err := f.WriteAt(b, 0); return err }(), f.Close())
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

// A follower that takes the changes from the journal gets the same state as one that reads all
// metadata. A journal that is damaged, cut, or missing changes no state.
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
	follower, err := Open(follow)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	moves, caughtUp := 0, 0
	for range seedtest.Rounds(400, 100) {
		for range 1 + r.IntN(3) {
			if err := s.step(); err != nil {
				t.Fatal(err)
			}
		}
		repair := func() error { return nil }
		if journal == "harmed" {
			if repair, err = harmJournal(r, mem); err != nil {
				t.Fatal(err)
			}
		}
		moved, err := checkReload(follow, follower, s.now)
		if err := errors.Join(err, repair()); err != nil {
			t.Fatal(err)
		}
		if moved {
			if moves++; follower.journalAt > 0 {
				caughtUp++
			}
		}
		if r.IntN(3) == 0 {
			if err := follower.Forget(); err != nil {
				t.Fatal(err)
			}
		}
		if r.IntN(40) == 0 { // the next writer writes the journal anew
			for len(s.open) > 0 {
				if err := s.closeOne(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.m.Close(); err != nil {
				t.Fatal(err)
			}
			s.m = openWriter(t, o)
		}
	}
	t.Logf("%d reloads found something, %d in the journal", moves, caughtUp)
	if journal == "whole" && caughtUp < moves*8/10 || journal == "missing" && caughtUp > 0 || journal == "harmed" && (caughtUp == 0 || caughtUp == moves) {
		t.Errorf("%d of %d times the journal had the changes", caughtUp, moves)
	}
}

// anchorFS is a file system whose ANCHOR is that of another one.
type anchorFS struct {
	vfs.FS
	anchor vfs.FS
}

func (f anchorFS) Open(name string, write bool) (vfs.File, error) {
	if strings.HasSuffix(name, anchorName) {
		return f.anchor.Open(name, write)
	}
	return f.FS.Open(name, write)
}

// Metadata that the anchor accepts no more is an error of a reload, not the newest there is.
func TestReloadRefusesMetadataThatTheAnchorHasLeftBehind(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	defer m.Close()
	follow := o
	follow.FS, follow.Follow, follow.ReadOnly = anchorFS{mem.Clone(), mem}, true, true
	follower, err := Open(follow)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	for commit := range 3 {
		if err := m.Commit(Edit{Put: []Row{{[]byte("first"), fmt.Append(nil, commit)}}}); err != nil {
			t.Fatal(err)
		}
		// The first commit is announced, and may not have come.
		if _, moved, err := follower.Reload(); moved || errors.Is(err, fault.ErrCorrupt) != (commit > 0) {
			t.Errorf("after commit %d: moved=%v, %v", commit, moved, err)
		}
	}
}
