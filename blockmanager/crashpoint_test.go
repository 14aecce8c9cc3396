package blockmanager

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Each test in crashpoint*_test.go covers one row of docs/safety.md: it stops a run at that
// point and checks the states after a kill and after a power cut, and the next opens.

// diskState is the content of the disk at one time: before a change, or after it.
type diskState struct {
	op, name string
	after    bool
	kill     *vfs.Mem // after a kill
	cut      *vfs.Mem // after a power cut
}

// diskStates are the states of a run, in order.
type diskStates []diskState

// before returns the first diskState before a change op (create, write, sync, …) of a file whose
// name contains part.
func (l diskStates) before(t *testing.T, op, part string) diskState {
	t.Helper()
	return l.find(t, op, part, false)
}

// after returns the first diskState after such a change.
func (l diskStates) after(t *testing.T, op, part string) diskState {
	t.Helper()
	return l.find(t, op, part, true)
}

func (l diskStates) find(t *testing.T, op, part string, after bool) diskState {
	t.Helper()
	for _, s := range l {
		if s.op == op && s.after == after && strings.Contains(s.name, part) {
			return s
		}
	}
	t.Fatalf("the run has no %s of %s", op, part)
	return diskState{}
}

// stateRecorder is a file system that records diskStates and fails changes on request.
type stateRecorder struct {
	disk *faultfs.FS
	mem  *vfs.Mem

	mu   sync.Mutex // guards the rest
	on   bool
	list diskStates

	failure        error // error of every failOp of a file with failPart in its name
	failOp, failIn string
}

func recordStates(mem *vfs.Mem) *stateRecorder {
	s := &stateRecorder{mem: mem, disk: faultfs.New(mem)}
	s.disk.Watch(func(c faultfs.Call) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failure != nil && string(c.Op) == s.failOp && strings.Contains(c.Name, s.failIn) {
			return s.failure
		}
		s.keep(c, false)
		return nil
	})
	s.disk.WatchDone(func(c faultfs.Call) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keep(c, true)
	})
	return s
}

func (s *stateRecorder) keep(c faultfs.Call, after bool) {
	if s.on && changing(c) {
		s.list = append(s.list, diskState{string(c.Op), c.Name, after, s.mem.Clone(), s.mem.Crash()})
	}
}

// now returns the current diskState.
func (s *stateRecorder) now() diskState { return diskState{kill: s.mem.Clone(), cut: s.mem.Crash()} }

// during records diskStates while do runs.
func (s *stateRecorder) during(t *testing.T, do func() error) diskStates {
	t.Helper()
	s.set(func() { s.on, s.list = true, nil })
	must.Do(t, do())
	s.set(func() { s.on = false })
	return s.list
}

// fail makes every such change fail with err, or none if err is nil.
func (s *stateRecorder) fail(op, part string, err error) {
	s.set(func() { s.failOp, s.failIn, s.failure = op, part, err })
}

func (s *stateRecorder) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// each checks copies of the states after a kill and after a power cut.
func (s diskState) each(t *testing.T, check func(t *testing.T, mem *vfs.Mem)) {
	t.Helper()
	for name, mem := range map[string]*vfs.Mem{"kill": s.kill, "cut": s.cut} {
		t.Run(name, func(t *testing.T) { check(t, mem.Clone()) })
	}
}

// recordedWriter returns the file system, its options, a writer with one block, and the model.
func recordedWriter(t *testing.T) (*stateRecorder, Options, *Manager, *storeModel) {
	t.Helper()
	o := testOptions(nil)
	s := recordStates(formatted(t, o))
	o.FS = s.disk
	m := openWriter(t, o)
	t.Cleanup(func() { m.Close() })
	want := newStoreModel()
	data := bytes.Repeat([]byte("first "), 1000)
	want.blocks[add(t, m, data)] = data
	return s, o, m, want
}

// checkReader opens a state read-only; it must show the model and write nothing.
func checkReader(t *testing.T, mem *vfs.Mem, o Options, want *storeModel) *Manager {
	t.Helper()
	o.FS, o.ReadOnly = unwritten(mem), true
	m := must.Get(Open(o))(t)
	t.Cleanup(func() { m.Close() })
	must.Do(t, want.difference(m), "to a reader")
	return m
}

// reopen opens a state for writing; it must show the model.
func reopen(t *testing.T, mem *vfs.Mem, o Options, want *storeModel) *Manager {
	t.Helper()
	o.FS = mem
	m := openWriter(t, o)
	t.Cleanup(func() { m.Close() })
	must.Do(t, errors.Join(want.difference(m), checkVerify(m)), "after repair")
	return m
}

// ends returns the position of the next block of each container.
func ends(m *Manager) map[containerID]int64 {
	at := map[containerID]int64{}
	for id, c := range m.state.containers {
		at[id] = c.row.next
	}
	return at
}

// checkTailIsFree checks blocks that no commit refers to after a crash: they are invisible, a
// writer removes their bytes and their new containers, and the next block begins at the same
// position.
func checkTailIsFree(t *testing.T, mem *vfs.Mem, o Options, want *storeModel) {
	t.Helper()
	at := ends(checkReader(t, mem, o, want))
	m := reopen(t, mem, o, want)
	names := containerNames(t, mem)
	must.Equal(t, len(names), len(at), "containers", names, len(at), "have a row")
	for _, name := range names {
		id, _ := containerName(name)
		if size := int64(len(readFile(t, mem, "/store/data/"+name))); size > at[id] {
			t.Errorf("container %s: %d bytes long, its blocks end at %d", id, size, at[id])
		}
	}
	want = want.clone()
	data := bytes.Repeat([]byte("again "), 2000)
	id := add(t, m, data)
	want.blocks[id] = data
	b := m.state.blocks[id]
	end, known := at[b.container]
	if !known && len(m.state.containers) > len(at) {
		end = headerLen // of a new container, since all are full
	}
	must.Equal(t, b.off, end, "start of the next block")
	must.Do(t, errors.Join(want.difference(m), checkVerify(m), m.Close()))
}

// writeUnfinished writes n blocks concurrently, each longer than a sink's buffer.
func writeUnfinished(t *testing.T, m *Manager, n int) (*Creation, []block.Sink) {
	t.Helper()
	c := m.NewCreation()
	var sinks []block.Sink
	for i := range n {
		sink := must.Get(c.Create())(t)
		must.Do(t, must.Err(sink.Write(bytes.Repeat([]byte{byte('a' + i)}, sinkBuffer+100))))
		sinks = append(sinks, sink)
	}
	return c, sinks
}

func finish(t *testing.T, c *Creation, sinks []block.Sink) {
	t.Helper()
	for _, s := range sinks {
		must.Do(t, c.Finish(s))
	}
}

// Row 1: a container's file exists and its name is durable, but no commit refers to it.
func TestCrashAfterContainerIsCreated(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	m.mu.Lock()
	m.pool = nil // as if it were full
	m.mu.Unlock()
	list := s.during(t, func() error { add(t, m, []byte("block")); return nil })
	list.after(t, "syncdir", "/data").each(t, func(t *testing.T, mem *vfs.Mem) {
		found := checkReader(t, mem, o, want)
		if names := containerNames(t, mem); len(names) != 2 || len(found.state.containers) != 1 {
			t.Fatalf("containers %v, %d with a row: want one container without a row", names,
				len(found.state.containers))
		}
		m := reopen(t, mem, o, want)
		if names := containerNames(t, mem); m.Repaired().Strays != 1 || len(names) != 1 {
			t.Errorf("%+v, containers %v", m.Repaired(), names)
		}
	})
}

// Row 2: there are bytes after the last committed block.
func TestCrashDuringBlockWrite(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	list := s.during(t, func() error { writeUnfinished(t, m, 1); return nil })
	point := list.after(t, "write", ".data")
	if repaired := reopen(t, point.kill.Clone(), o, want).Repaired(); repaired.CutBytes == 0 {
		t.Errorf("%+v: no bytes after the last block", repaired)
	}
	point.each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
}

// Row 3: blocks are finished, possibly only partly on disk.
func TestCrashAfterBlockIsFinished(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 1)
	finish(t, c, sinks)
	s.now().each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
}

// Row 4: of two containers with new blocks one is synced.
func TestCrashBetweenContainerSyncs(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 2)
	finish(t, c, sinks)
	must.Equal(t, len(c.dirty), 2, "containers")
	for in := range c.dirty {
		must.Do(t, in.sync(&m.o))
		s.now().each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
	}
}

// Row 5: all blocks are durable, but the metadata does not refer to them: before the intent, after
// it, before Pebble's batch.
func TestCrashBetweenBlocksAndCommit(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 2)
	finish(t, c, sinks)
	must.Do(t, c.Sync())
	list := s.during(t, func() error { return m.Commit(Edit{Created: []*Creation{c}}) })
	for name, point := range map[string]diskState{
		"before the intent": list.before(t, "write", anchorName),
		"after the intent":  list.after(t, "sync", anchorName),
		"before the batch":  list.before(t, "write", "meta/"),
	} {
		t.Run(name, func(t *testing.T) {
			point.each(t, func(t *testing.T, mem *vfs.Mem) { checkTailIsFree(t, mem, o, want) })
		})
	}
}

// metaLog returns which of Pebble's logs has grown between two diskStates, and by how much.
func metaLog(t *testing.T, old, new *vfs.Mem) (name string, from, to int64) {
	t.Helper()
	names := must.Get(new.List("/store/meta"))(t)
	for _, n := range names {
		n = "/store/meta/" + n
		if !strings.HasSuffix(n, ".log") {
			continue
		}
		if from, to := len(readFile(t, old, n)), len(readFile(t, new, n)); from < to {
			return n, int64(from), int64(to)
		}
	}
	t.Fatal("no log has grown")
	return "", 0, 0
}

// Row 6: part of the batch's record is in Pebble's log, or the record ends in zeros.
func TestCrashDuringMetadataBatch(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 1)
	finish(t, c, sinks)
	must.Do(t, c.Sync())
	list := s.during(t, func() error { return m.Commit(Edit{Created: []*Creation{c}}) })
	whole := s.now().kill
	name, from, to := metaLog(t, list.before(t, "write", "meta/").kill, whole)
	for _, zeros := range []bool{false, true} {
		for _, at := range []int64{from, from + 1, from + 7, (from + to) / 2, to - 1} {
			mem := whole.Clone()
			f, err := mem.Open(name, true)
			must.Do(t, err)
			if err = f.Truncate(at); err == nil && zeros {
				err = f.Truncate(to)
			}
			must.Do(t, errors.Join(err, f.Close()))
			checkTailIsFree(t, mem, o, want)
		}
	}
}

// Row 7: the batch is durable, but the commit has not returned.
func TestCrashAfterMetadataBatch(t *testing.T) {
	s, o, m, want := recordedWriter(t)
	c, sinks := writeUnfinished(t, m, 1)
	finish(t, c, sinks)
	must.Do(t, c.Sync())
	list := s.during(t, func() error {
		return m.Commit(Edit{Created: []*Creation{c}, Put: []Row{{[]byte("k"), []byte("v")}}, LogStart: 9})
	})
	next := want.clone()
	next.blocks[sinks[0].ID()] = bytes.Repeat([]byte("a"), sinkBuffer+100)
	next.rows["k"], next.logStart = "v", 9
	list.after(t, "sync", "meta/").each(t, func(t *testing.T, mem *vfs.Mem) {
		checkReader(t, mem, o, next)
		reopen(t, mem, o, next)
	})
}
