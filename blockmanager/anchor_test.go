package blockmanager

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Plan: at each point of a run, Pebble's directory is replaced by its state after each of the last
// commits, the worst that silent damage can do. If the anchor accepts that state, all its blocks
// must exist and be complete. So nothing that an accepted state needs is punched or unlinked, with
// or without a kill and a repair in between.
func TestEveryStateThatTheAnchorAcceptsIsComplete(t *testing.T) {
	r := seedtest.Rand(t)
	runs := seedtest.Rounds(2, 1)
	accepted, refused := 0, 0
	for range runs {
		o := testOptions(nil)
		o.ContainerBytes = 24 << 10 // containers are removed often
		mem := formatted(t, o)
		rec, ro := record(o, crashfs.New(mem), r, newStoreModel())
		type old struct {
			fs   *vfs.Mem
			what *storeModel
		}
		history := []old{{mem, newStoreModel()}}
		rec.disk.OnOperation(func(c crashfs.Operation) error {
			rec.mu.Lock()
			defer rec.mu.Unlock()
			if c.Op == "sync" && rec.r.IntN(4) == 0 {
				rec.take(c.Point(), "before sync of "+c.Name, statesKept)
			}
			return nil
		})
		rec.s.m = openWriter(t, ro)
		for range 14 {
			var err error
			if r.IntN(3) == 0 {
				err = rec.s.step()
			} else {
				err = rec.s.commit()
			}
			must.Do(t, err)
			if rec.s.now != history[len(history)-1].what {
				history = append(history, old{rec.disk.Read(), rec.s.now})
			}
			at := rec.disk.Point()
			rec.mu.Lock()
			rec.take(at, "now", statesKept)
			crashes := rec.crashes
			rec.crashes = nil
			rec.mu.Unlock()
			for _, c := range crashes {
				past := slices.IndexFunc(history, func(h old) bool { return h.what == c.now }) + 1
				for _, h := range history[max(0, past-4):past] {
					f := c.fs
					if r.IntN(2) == 0 { // open for writing, and kill again
						o.FS = f
						if m, err := Open(o); err == nil {
							must.Do(t, m.Writable())
							f = f.Crash()
							m.Close()
						}
					}
					f = f.Clone()
					copyDir(t, f, h.fs, "/store/meta")
					o.FS = f
					m, err := Open(o)
					if errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), anchorName) {
						refused++
						continue
					}
					accepted++
					if err == nil {
						err = errors.Join(h.what.difference(m), checkTorn(m), m.Close())
					}
					if err != nil {
						t.Fatalf("%s, metadata put back: accepted, but %v", c.name, err)
					}
				}
			}
		}
		rec.s.m.Close()
	}
	t.Logf("%d states accepted, %d refused", accepted, refused)
	if accepted == 0 || refused == 0 {
		t.Error("one of them never happened")
	}
}

// An intent whose commit did not happen has used up its epoch.
func TestAbandonedEpochIsNotReused(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	var once sync.Once
	var left *vfs.Mem
	disk := faultfs.New(mem)
	o.FS = disk
	m := openWriter(t, o)
	must.Do(t, m.Commit(Edit{}))
	disk.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.Write && strings.Contains(c.Name, "meta/") {
			once.Do(func() { left = mem.Crash() })
		}
		return nil
	})
	must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("k"), []byte("lost")}}}))
	abandoned := m.Epoch()
	must.Do(t, m.Close())
	o.FS = left
	m = openWriter(t, o)
	if got := m.Epoch(); got >= abandoned {
		t.Fatalf("epoch %d, intent %d: the commit is there", got, abandoned)
	}
	if m.confirmedEpoch != m.Epoch() {
		t.Error("an intent that follows confirms the epoch before it")
	}
	must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("k"), []byte("kept")}}}))
	if got := m.Epoch(); got <= abandoned {
		t.Errorf("epoch %d is used again, %d was abandoned", got, abandoned)
	}
	must.Do(t, m.Close())
	m = openWriter(t, o)
	want := newStoreModel()
	want.rows["k"] = "kept"
	if err := errors.Join(want.difference(m), m.Close()); err != nil {
		t.Error(err)
	}
}

// What Open read may be only in the kernel's page cache, so Writable makes it durable first.
func TestWritableWritesTheAnchorFirst(t *testing.T) {
	o := testOptions(nil)
	mem, _ := filled(t, o, 5)
	before := readFile(t, mem, "/store/"+anchorName)
	disk := faultfs.New(mem)
	disk.Record(true)
	o.FS = disk
	m := openWriter(t, o)
	var ops []string
	for _, c := range disk.Calls() {
		if changing(c) {
			ops = append(ops, string(c.Op)+" "+strings.TrimPrefix(c.Name, "/store/"))
		}
	}
	if want := []string{"open ANCHOR", "write ANCHOR", "sync ANCHOR"}; !slices.Equal(ops[:3], want) {
		t.Errorf("%v, want %v", ops[:3], want)
	}
	if !bytes.Equal(readFile(t, mem, "/store/"+anchorName), before) {
		t.Error("the anchor is not as it was")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// Metadata that changes between Open and Writable is read again, since it is no longer the metadata
// that Open checked.
func TestWritableReadsTheMetadataAgain(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	old := mem.Clone()
	o.FS = mem
	m := openWriter(t, o)
	id := add(t, m, []byte("block"))
	must.Do(t, m.Close())
	m = must.Get(Open(o))(t)
	copyDir(t, mem, old, "/store/meta")
	if err := m.Writable(); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
	if got, err := readBlock(m, id); err != nil || string(got) != "block" {
		t.Errorf("%q, %v", got, err)
	}
	if err := m.Close(); !errors.Is(err, ErrPoisoned) {
		t.Error(err)
	}
}

// An Edit with Confirm leaves no earlier state that the anchor accepts.
func TestConfirmedCommitIsConfirmedOnReturn(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	for _, confirm := range []bool{false, true} {
		before := m.Epoch()
		must.Do(t, m.Commit(Edit{LogStart: 9, Confirm: confirm}))
		a := must.Get(readAnchor(&Options{FS: mem.Crash(), Dir: "/store", Instance: testInstance}))(t)
		if a.newest().epoch <= before || a.newest().confirms(m.state.root) != confirm {
			t.Errorf("confirm %v: newest slot is %+v", confirm, a.newest())
		}
	}
	if m.ConfirmedLogStart() != 9 {
		t.Error("log_start is not confirmed")
	}
	must.Do(t, m.Close())
}

// A block made after a Sync needs another.
func TestSyncCoversOnlyFinishedBlocks(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	c := m.NewCreation()
	var made []block.ID
	for i := range 2 {
		s := must.Get(c.Create())(t)
		s.Write([]byte("x"))
		must.Do(t, c.Finish(s))
		made = append(made, s.ID())
		if err := m.Commit(Edit{Created: []*Creation{c}}); err == nil {
			t.Fatalf("block %d is committed without a sync", i)
		}
		must.Do(t, c.Sync())
	}
	must.Do(t, m.Commit(Edit{Created: []*Creation{c}}))
	if !slices.Equal(ids(m), made) {
		t.Errorf("blocks %v, want %v", ids(m), made)
	}
	must.Do(t, m.Close())
}

// No open after a crash finds the metadata at an epoch before ConfirmedEpoch.
func TestConfirmedEpochIsThatOfTheLastConfirmedEdit(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	first := m.ConfirmedEpoch()
	if first != m.Epoch() {
		t.Errorf("after the open: confirmed epoch %d, epoch %d", first, m.Epoch())
	}
	for i, confirm := range []bool{false, true, false} {
		before := m.ConfirmedEpoch()
		must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("k"), []byte{byte(i)}}}, Confirm: confirm}))
		if want := map[bool]uint64{false: before, true: m.Epoch()}[confirm]; m.ConfirmedEpoch() != want {
			t.Errorf("after commit %d: confirmed epoch %d, want %d", i, m.ConfirmedEpoch(), want)
		}
	}
	confirmed := m.ConfirmedEpoch()
	o.FS = mem.Crash()
	again := openWriter(t, o)
	if again.Epoch() < confirmed || again.ConfirmedEpoch() > again.Epoch() {
		t.Errorf("after a power cut: epoch %d, confirmed %d; confirmed before the cut: %d", again.Epoch(),
			again.ConfirmedEpoch(), confirmed)
	}
	for _, m := range []*Manager{m, again} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
