package blockmanager

import (
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
					must.Do(t, err, c.name, "metadata put back")
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
	must.Equal(t, m.confirmedEpoch, m.Epoch(), "an intent that follows confirms the epoch before it")
	must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("k"), []byte("kept")}}}))
	if got := m.Epoch(); got <= abandoned {
		t.Errorf("epoch %d is used again, %d was abandoned", got, abandoned)
	}
	must.Do(t, m.Close())
	m = openWriter(t, o)
	want := newStoreModel()
	want.rows["k"] = "kept"
	must.Do(t, errors.Join(want.difference(m), m.Close()))
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
	must.Equal(t, ops[:3], []string{"open ANCHOR", "write ANCHOR", "sync ANCHOR"})
	must.Equal(t, readFile(t, mem, "/store/"+anchorName), before, "the anchor is not as it was")
	must.Do(t, m.Close())
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
	must.Fail(t, m.Writable(), ErrCorrupt)
	must.Equal(t, string(must.Get(readBlock(m, id))(t)), "block")
	must.Fail(t, m.Close(), ErrPoisoned)
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
	must.Equal(t, m.ConfirmedLogStart(), 9, "log_start is not confirmed")
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
		must.Refuse(t, m.Commit(Edit{Created: []*Creation{c}}), "block", i, "is committed without a sync")
		must.Do(t, c.Sync())
	}
	must.Do(t, m.Commit(Edit{Created: []*Creation{c}}))
	must.Equal(t, ids(m), made, "blocks")
	must.Do(t, m.Close())
}

// No open after a crash finds the metadata at an epoch before ConfirmedEpoch.
func TestConfirmedEpochIsThatOfTheLastConfirmedEdit(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	first := m.ConfirmedEpoch()
	must.Equal(t, first, m.Epoch(), "after the open: confirmed epoch")
	for i, confirm := range []bool{false, true, false} {
		before := m.ConfirmedEpoch()
		must.Do(t, m.Commit(Edit{Put: []Row{{[]byte("k"), []byte{byte(i)}}}, Confirm: confirm}))
		must.Equal(t, m.ConfirmedEpoch(), map[bool]uint64{false: before, true: m.Epoch()}[confirm],
			"after commit", i, "confirmed epoch")
	}
	confirmed := m.ConfirmedEpoch()
	o.FS = mem.Crash()
	again := openWriter(t, o)
	if again.Epoch() < confirmed || again.ConfirmedEpoch() > again.Epoch() {
		t.Errorf("after a power cut: epoch %d, confirmed %d; confirmed before the cut: %d", again.Epoch(),
			again.ConfirmedEpoch(), confirmed)
	}
	for _, m := range []*Manager{m, again} {
		must.Do(t, m.Close())
	}
}
