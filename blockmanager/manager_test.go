package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

func newSeeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

func ids(m *Manager) []block.ID {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.state.blocks))
}

// add commits one block.
func add(t testing.TB, m *Manager, data []byte, dead ...block.ID) block.ID {
	t.Helper()
	c := m.NewCreation()
	defer c.Abort()
	sink := must.Get(c.Create())(t)
	must.Get(sink.Write(data))(t)
	must.Do(t, errors.Join(c.Finish(sink), c.Sync(), m.Commit(Edit{Created: []*Creation{c}, Dead: dead})))
	return sink.ID()
}

// Plan: random commits, aborts and reads, with the manager closed and reopened in between, compared
// with a simple model.
func TestManagerAgreesWithModel(t *testing.T) {
	t.Run("punching=yes", func(t *testing.T) { agreesWithThePicture(t, func(fs vfs.FS) vfs.FS { return fs }) })
	t.Run("punching=no", func(t *testing.T) {
		agreesWithThePicture(t, func(fs vfs.FS) vfs.FS { return unpunchable{fs} })
	})
}

func agreesWithThePicture(t *testing.T, on func(vfs.FS) vfs.FS) {
	r := seedtest.Rand(t)
	o := testOptions(nil)
	o.FS = on(formatted(t, o))
	s := &script{r: r, now: newStoreModel()}
	steps := seedtest.Rounds(300, 60)
	for range steps {
		if s.m == nil {
			s.m = openWriter(t, o)
		}
		must.Do(t, s.step())
		if r.IntN(15) == 0 {
			for len(s.open) > 0 {
				must.Do(t, s.closeOne())
			}
			must.Do(t, errors.Join(s.now.difference(s.m), checkVerify(s.m), s.m.Close()))
			s.m = nil
		}
	}
}

// A run on real files, and a read-only open of a directory without write permission.
func TestManagerOnRealFiles(t *testing.T) {
	dir := t.TempDir()
	o := Options{FS: vfs.OS, Dir: dir, Instance: testInstance, ContainerBytes: 96 << 10}
	must.Do(t, Format(o, []Row{{[]byte("first"), []byte("row")}}, 1))
	s := &script{r: seedtest.Rand(t), now: newStoreModel(), m: openWriter(t, o)}
	for range 25 {
		must.Do(t, s.step())
	}
	must.Do(t, errors.Join(s.now.difference(s.m), checkVerify(s.m), s.m.Close()))
	setMode := func(dirMode, fileMode os.FileMode) {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if d.IsDir() {
				return os.Chmod(path, dirMode)
			}
			return os.Chmod(path, fileMode)
		})
	}
	setMode(0o500, 0o400)
	defer setMode(0o700, 0o600)
	before := digest(t, vfs.OS, dir)
	o.ReadOnly = true
	o.FS = unwritten(vfs.OS) // root may write anywhere
	m := must.Get(Open(o))(t)
	must.Fail(t, m.Writable(), ErrReadOnly, "Writable")
	must.Fail(t, m.Commit(Edit{}), ErrReadOnly, "Commit")
	must.Fail(t, must.Err(m.NewCreation().Create()), ErrReadOnly, "Create")
	must.Do(t, errors.Join(s.now.difference(m), checkVerify(m), m.Close()))
	must.Equal(t, digest(t, vfs.OS, dir), before, "a read-only open changed something")
}

// A dropped block stays readable while it is open. Its space is freed afterwards.
func TestDroppedBlockStaysReadableWhileOpen(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	data := bytes.Repeat([]byte("bytes "), 2000)
	id := add(t, m, data)
	src := must.Get(m.OpenBlock(id))(t)
	must.Do(t, m.Commit(Edit{Dead: []block.ID{id}, Confirm: true}))
	must.Fail(t, must.Err(m.OpenBlock(id)), ErrNotFound)
	got := make([]byte, len(data))
	if _, err := src.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read after the drop: %v", err)
	}
	must.Equal(t, m.Stats().DeadBytes, int64(len(data)), "dead bytes while it is open")
	must.Do(t, errors.Join(src.Close(), src.Close(), m.Confirm()))
	must.Equal(t, m.Stats().DeadBytes, 0, "dead bytes after it was closed")
	must.Fail(t, must.Err(src.ReadAt(got, 0)), ErrClosed)
	names, _ := mem.List("/store/data")
	b := readFile(t, mem, "/store/data/"+names[0])
	must.Equal(t, allZero(b[headerLen:]), true, "the space is not freed")
	must.Do(t, m.Close())
}

// Until the next intent or confirmation a crash may restore the earlier state, so its blocks are
// kept.
func TestSpaceIsKeptUntilTheDropIsConfirmed(t *testing.T) {
	o := testOptions(nil)
	o.FS = formatted(t, o)
	m := openWriter(t, o)
	id := add(t, m, make([]byte, 5000))
	must.Do(t, m.Commit(Edit{Dead: []block.ID{id}, LogStart: 7}))
	must.Equal(t, m.Stats().DeadBytes, 5000, "before: dead bytes")
	must.Equal(t, m.ConfirmedLogStart(), 1, "before: confirmed log_start")
	if err := m.Commit(Edit{LogStart: 3}); err != nil { // a lower value has no effect
		t.Fatal(err)
	}
	must.Equal(t, m.Stats().DeadBytes, 0, "after the next commit: dead bytes")
	must.Equal(t, m.ConfirmedLogStart(), 7, "after the next commit: confirmed log_start")
	must.Equal(t, m.LogStart(), 7, "log_start")
	must.Do(t, m.Close())
}

func TestSmallBlocksShareContainerAndAreAligned(t *testing.T) {
	o := testOptions(nil)
	o.ContainerBytes = 1 << 30
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	c := m.NewCreation()
	var sinks []block.Sink
	for range 50 {
		s := must.Get(c.Create())(t)
		s.Write([]byte("small"))
		sinks = append(sinks, s)
	}
	for _, s := range sinks {
		must.Do(t, c.Finish(s))
	}
	must.Do(t, errors.Join(c.Sync(), m.Commit(Edit{Created: []*Creation{c}})))
	if s := m.Stats(); s.Containers != 1 || s.Blocks != 50 || s.LiveBytes != 250 {
		t.Errorf("%+v", s)
	}
	for _, b := range m.state.blocks {
		must.Equal(t, b.off%4096, 0, "block", b.id, "at", b.off)
	}
	if got := c.Blocks(); len(got) != 50 || got[3] != (BlockInfo{sinks[3].ID(), 5, m.state.blocks[sinks[3].ID()].sum}) {
		t.Errorf("%v", got)
	}
	must.Do(t, m.Close())
	names, _ := mem.List("/store/data")
	if info, _ := mem.Stat("/store/data/" + names[0]); info.Size() != 51*4096 {
		t.Errorf("container is %d bytes long", info.Size())
	}
}

// After an abort a container continues from its last commit; no byte of the aborted blocks is left
// in the padding.
func TestAbortedBlocksLeaveNoTrace(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	m := openWriter(t, o)
	keep := add(t, m, []byte("kept"))
	for range 3 {
		c := m.NewCreation()
		sink := must.Get(c.Create())(t)
		sink.Write(bytes.Repeat([]byte{0xee}, sinkBuffer+100))
		sink.Write(bytes.Repeat([]byte{0xee}, sinkBuffer))
		must.Do(t, errors.Join(c.Finish(sink), c.Sync()))
		c.Abort()
		c.Abort()
		must.Fail(t, must.Err(m.OpenBlock(sink.ID())), ErrNotFound)
		must.Refuse(t, m.Commit(Edit{Created: []*Creation{c}}), "an aborted creation is committed")
	}
	last := add(t, m, []byte("last"))
	if a, b := m.state.blocks[keep], m.state.blocks[last]; a.in != b.in || b.off != a.off+4096 {
		t.Errorf("blocks at %d and %d", a.off, b.off)
	}
	must.Do(t, errors.Join(checkVerify(m), m.Close()))
}

func TestCommitRefusesUnfinishedBlocks(t *testing.T) {
	o := testOptions(nil)
	o.FS = formatted(t, o)
	m := openWriter(t, o)
	other := openWriterOn(t, testOptions(nil))
	id := add(t, m, []byte("x"))
	epoch := m.Epoch()
	open := m.NewCreation()
	s := must.Get(open.Create())(t)
	unsynced := m.NewCreation()
	u := must.Get(unsynced.Create())(t)
	u.Write([]byte("y"))
	must.Do(t, unsynced.Finish(u))
	empty := m.NewCreation()
	for name, e := range map[string]Edit{
		"open sink":       {Created: []*Creation{open}},
		"not synced":      {Created: []*Creation{unsynced}},
		"twice":           {Created: []*Creation{empty, empty}},
		"nil":             {Created: []*Creation{nil}},
		"another manager": {Created: []*Creation{other.NewCreation()}},
		"no such block":   {Dead: []block.ID{id + 1000}},
		"dead twice":      {Dead: []block.ID{id, id}},
	} {
		must.Refuse(t, m.Commit(e), name, "committed")
	}
	must.Refuse(t, open.Sync(), "synced with an open sink")
	must.Do(t, errors.Join(open.Discard(s), open.Sync()))
	must.Refuse(t, open.Finish(s), "a discarded block is finished")
	must.Refuse(t, must.Err(s.Write([]byte("z"))), "a discarded block takes bytes")
	if m.Poisoned() != nil || m.Epoch() != epoch || len(ids(m)) != 1 {
		t.Errorf("something changed: %v, epoch %d, blocks %v", m.Poisoned(), m.Epoch(), ids(m))
	}
	must.Do(t, errors.Join(m.Close(), other.Close()))
}

func openWriterOn(t *testing.T, o Options) *Manager {
	o.FS = formatted(t, o)
	return openWriter(t, o)
}

func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	id := add(t, m, []byte("x"))
	src := must.Get(m.OpenBlock(id))(t)
	c := m.NewCreation()
	sink := must.Get(c.Create())(t)
	must.Do(t, errors.Join(m.Close(), m.Close()))
	_, open := m.OpenBlock(id)
	_, read := src.ReadAt(make([]byte, 1), 0)
	_, create := m.NewCreation().Create()
	finish := c.Finish(sink)
	c.Abort()
	rows := m.Rows(nil, func(_, _ []byte) error { return nil })
	for i, err := range []error{open, read, create, finish, rows, m.Commit(Edit{}), m.Confirm(), m.Writable(),
		m.Verify(context.Background(), func(string, int64, block.ID, string) {}, nil)} {
		must.Fail(t, err, ErrClosed, "call", i)
	}
	must.Do(t, src.Close())
}

func TestSourceFollowsReaderAt(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	defer m.Close()
	id := add(t, m, []byte("0123456789"))
	add(t, m, []byte("after it"))
	src := must.Get(m.OpenBlock(id))(t)
	defer src.Close()
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, 10, "0123456789", nil}, {3, 4, "3456", nil}, {8, 5, "89", io.EOF}, {10, 1, "", io.EOF},
		{10, 0, "", nil}, {11, 1, "", io.EOF}, {-1, 1, "", io.EOF},
	} {
		b := make([]byte, c.n)
		n, err := src.ReadAt(b, c.off)
		must.Equal(t, string(b[:n]), c.want, c.n, "bytes at", c.off)
		must.Fail(t, err, c.err, c.n, "bytes at", c.off)
	}
	must.Equal(t, src.ID(), id, "block")
	must.Equal(t, src.Size(), 10, "bytes")
}

// The read that checks a block has its end, all of it if it is small, and is handed out once.
func TestOpenBlockReadsTheTail(t *testing.T) {
	r := seedtest.Rand(t)
	m := openWriterOn(t, testOptions(nil))
	defer m.Close()
	for _, n := range []int{1, 511, 4096, tailWhole, tailWhole + 1, tailWhole + tailPage - 1, 3*tailWhole + 5} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		src := must.Get(m.OpenBlock(add(t, m, data)))(t)
		tail := src.(block.Tailed).TakeTail()
		if !bytes.HasSuffix(data, tail) || len(tail) > tailWhole || len(tail) <= min(n, tailWhole)-tailPage ||
			len(tail) == 0 {
			t.Errorf("block of %d bytes: tail of %d, suffix %t", n, len(tail), bytes.HasSuffix(data, tail))
		}
		if src.(block.Tailed).TakeTail() != nil {
			t.Errorf("block of %d bytes: the tail is there again", n)
		}
		must.Do(t, src.Close())
	}
}

// A caller gets as much of the end as it wants, or more up to the beginning of a page.
func TestOpenTailReadsAsMuchAsWanted(t *testing.T) {
	r := seedtest.Rand(t)
	m := openWriterOn(t, testOptions(nil))
	defer m.Close()
	data := make([]byte, 5*tailWhole+77)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	id := add(t, m, data)
	for _, n := range []int{0, 1, tailWhole, tailWhole + 1, 3*tailWhole + 1, len(data) - 1, len(data), 2 * len(data)} {
		src := must.Get(m.OpenTail(id, int64(n)))(t)
		tail := src.(block.Tailed).TakeTail()
		if !bytes.HasSuffix(data, tail) || len(tail) < min(n, len(data)) || len(tail) >= max(n, tailWhole)+tailPage {
			t.Errorf("%d bytes wanted: tail of %d", n, len(tail))
		}
		must.Do(t, src.Close())
	}
}

// New IDs are above every assigned one, committed or not; a clean close wastes the reserved ones.
func TestIDsAreNeverReused(t *testing.T) {
	o := testOptions(nil)
	o.FS = formatted(t, o)
	var last block.ID
	for range 3 {
		m := openWriter(t, o)
		c := m.NewCreation()
		for range idReserve + 10 {
			s := must.Get(c.Create())(t)
			if s.ID() <= last {
				t.Fatalf("id %d after %d", s.ID(), last)
			}
			last = s.ID()
		}
		c.Abort()
		must.Do(t, m.Close())
	}
}

func TestRowsAreOrderedAndFoundByPrefix(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	defer m.Close()
	e := Edit{Put: []Row{{[]byte("b/2"), []byte("2")}, {[]byte("b/1"), nil}, {[]byte("c"), []byte("3")},
		{[]byte("b/2"), []byte("4")}},
		Delete: [][]byte{[]byte("c"), []byte("first"), []byte("absent")}}
	must.Do(t, m.Commit(e))
	var got []string
	collect := func(k, v []byte) error {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		return nil
	}
	must.Do(t, m.Rows([]byte("b/"), collect))
	must.Equal(t, got, []string{"b/1=", "b/2=4"})
	if got = nil; m.Rows(nil, collect) != nil || !slices.Equal(got, []string{"b/1=", "b/2=4", "c=3"}) {
		t.Error(got)
	}
	must.Fail(t, m.Rows(nil, func(_, _ []byte) error { return errDisk }), errDisk)
}

func TestFormatNeedsFreshDirectory(t *testing.T) {
	o := testOptions(nil)
	o.FS = formatted(t, o)
	must.Fail(t, Format(o, nil, 0), os.ErrExist)
	o.BlockSize = 100
	must.Refuse(t, Format(o, nil, 0), "a block size of 100 is taken")
	must.Refuse(t, must.Err(Open(Options{Dir: "", CacheBytes: -1})), "bad options are taken")
}

// Files with other names in data/ are ignored, and so are containers of another store. Containers
// without a row are removed.
func TestOnlyWritersRemoveStrayContainers(t *testing.T) {
	o := testOptions(nil)
	mem := formatted(t, o)
	o.FS = mem
	name := func(id byte) string { return "/store/data/" + containerID(fill16(id)).String() + dataSuffix }
	stray, foreign := name(5), name(7)
	for n, content := range map[string][]byte{stray: nil, name(6): encodeHeader(o.Instance, fill16(6)),
		foreign:              encodeHeader(fill16(9), fill16(7)),
		"/store/data/README": nil, "/store/data/x.data": nil} {
		f := must.Get(mem.Create(n))(t)
		must.Do(t, must.Err(f.WriteAt(content, 0)))
		f.Close()
	}
	m := must.Get(Open(o))(t)
	must.Do(t, must.Err(mem.Stat(stray)))
	if list, err := m.Usage(); err != nil || len(list) != 2 || !list[0].Stray || !list[1].Stray {
		t.Errorf("%+v, %v: want the two strays", list, err)
	}
	must.Do(t, errors.Join(m.Writable(), m.Close()))
	if names, _ := mem.List("/store/data"); !slices.Equal(names, []string{filepath.Base(foreign), "README", "x.data"}) {
		t.Error(names)
	}
}

// Plan: writers replace blocks, readers keep blocks open while they are dropped, and others verify
// and confirm, all concurrently. Every byte read must be the block's.
func TestConcurrentReadersWritersAndDrops(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	const writers, readers = 3, 3
	rounds := seedtest.Rounds(60, 10)
	var current [writers]atomic.Uint64
	content := func(id block.ID) []byte { return bytes.Repeat([]byte{byte(id), byte(id >> 8), 7}, 3000) }
	var work, reading sync.WaitGroup
	done := make(chan struct{})
	fail := func(err error) {
		must.Do(t, err)
	}
	for w := range writers {
		work.Go(func() {
			var dead []block.ID
			for range rounds {
				c := m.NewCreation()
				sink, err := c.Create()
				if err != nil {
					fail(err)
					return
				}
				sink.Write(content(sink.ID()))
				fail(errors.Join(c.Finish(sink), c.Sync(), m.Commit(Edit{Created: []*Creation{c}, Dead: dead})))
				current[w].Store(uint64(sink.ID()))
				dead = []block.ID{sink.ID()}
			}
		})
	}
	for r := range readers {
		reading.Go(func() {
			rng := newSeeded(uint64(r))
			for {
				select {
				case <-done:
					return
				default:
				}
				id := block.ID(current[rng.IntN(writers)].Load())
				src, err := m.OpenBlock(id)
				if errors.Is(err, ErrNotFound) {
					continue
				} else if err != nil {
					fail(err)
					return
				}
				for range 5 {
					got, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
					if err != nil || !bytes.Equal(got, content(id)) {
						t.Errorf("block %d: other bytes, %v", id, err)
					}
				}
				src.Close()
			}
		})
	}
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				fail(checkVerify(m))
				fail(m.Confirm())
				m.Stats()
			}
		}
	})
	work.Wait()
	close(done)
	reading.Wait()
	must.Equal(t, m.Stats().Blocks, writers, "blocks")
	fail(m.Close())
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := testOptions(nil)
	o.FS = formatted(t, o)
	m := openWriter(t, o)
	add(t, m, []byte("x"))
	must.Do(t, m.Close())
	o.Instance[0]++
	must.Fail(t, must.Err(Open(o)), ErrCorrupt)
}

func BenchmarkOpenBlock(b *testing.B) {
	mem := vfs.NewMem()
	mem.Mkdir("/store")
	o := testOptions(mem)
	must.Do(b, Format(o, nil, 0))
	m, err := Open(o)
	must.Do(b, err)
	must.Do(b, m.Writable())
	defer m.Close()
	id := add(b, m, make([]byte, 100<<10))
	for b.Loop() {
		s, err := m.OpenBlock(id)
		must.Do(b, err)
		s.Close()
	}
}

func BenchmarkCommit(b *testing.B) {
	o := Options{FS: vfs.OS, Dir: b.TempDir()}
	must.Do(b, Format(o, nil, 0))
	m, err := Open(o)
	must.Do(b, err)
	must.Do(b, m.Writable())
	defer m.Close()
	for b.Loop() {
		must.Do(b, m.Commit(Edit{Put: []Row{{[]byte("k"), make([]byte, 1000)}}}))
	}
}

// A finished block can be read before it is committed, while others of its creation are still being
// written. The commit does not affect its sources.
func TestCreationOpensItsFinishedBlocks(t *testing.T) {
	m := openWriterOn(t, testOptions(nil))
	c := m.NewCreation()
	var sinks []block.Sink
	for i := range 3 {
		sink := must.Get(c.Create())(t)
		must.Do(t, must.Err(sink.Write(bytes.Repeat([]byte{byte(i + 1)}, 5000))))
		sinks = append(sinks, sink)
	}
	must.Do(t, errors.Join(c.Finish(sinks[0]), c.Finish(sinks[1])))
	src := must.Get(c.OpenBlock(sinks[1].ID()))(t)
	read := func() {
		t.Helper()
		got := make([]byte, 5000)
		if _, err := src.ReadAt(got, 0); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{2}, 5000)) {
			t.Errorf("read: %v", err)
		}
	}
	read()
	for _, id := range []block.ID{sinks[2].ID(), 1 << 40} {
		must.Fail(t, must.Err(c.OpenBlock(id)), ErrNotFound, "block", id)
	}
	must.Fail(t, must.Err(m.OpenBlock(sinks[1].ID())), ErrNotFound, "the manager knows of it")
	must.Do(t, errors.Join(c.Finish(sinks[2]), c.Sync(), m.Commit(Edit{Created: []*Creation{c}})))
	read()
	must.Do(t, errors.Join(src.Close(), m.Close()))
	must.Fail(t, must.Err(c.OpenBlock(sinks[0].ID())), ErrClosed)
}
