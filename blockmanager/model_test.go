package blockmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

var testInstance = [16]byte{0xa1, 0xb2, 15: 0xff}

// storeModel is a simple model of the committed state.
type storeModel struct {
	blocks   map[block.ID][]byte
	rows     map[string]string
	logStart lsn.LSN
}

func (p *storeModel) clone() *storeModel {
	return &storeModel{maps.Clone(p.blocks), maps.Clone(p.rows), p.logStart}
}

// difference reads everything and returns an error if m differs from the model.
func (p *storeModel) difference(m *Manager) error {
	rows := map[string]string{}
	last := ""
	err := m.Rows(nil, func(k, v []byte) error {
		if len(rows) > 0 && string(k) <= last {
			return fmt.Errorf("rows out of order: %q after %q", k, last)
		}
		last = string(k)
		rows[string(k)] = string(v)
		return nil
	})
	if err != nil {
		return err
	}
	if !maps.Equal(rows, p.rows) {
		return fmt.Errorf("rows are %v, want %v", rows, p.rows)
	}
	if m.LogStart() != p.logStart {
		return fmt.Errorf("log_start is %d, want %d", m.LogStart(), p.logStart)
	}
	if n := m.Stats().Blocks; n != len(p.blocks) {
		return fmt.Errorf("%d blocks, want %d", n, len(p.blocks))
	}
	for id, want := range p.blocks {
		got, err := readBlock(m, id)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("block %d has other bytes than were written", id)
		}
	}
	return nil
}

func readBlock(m *Manager, id block.ID) ([]byte, error) {
	s, err := m.OpenBlock(id)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return io.ReadAll(io.NewSectionReader(s, 0, s.Size()))
}

// testOptions has small containers, so that they fill up and are removed.
func testOptions(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "/store", Instance: testInstance, ContainerBytes: 96 << 10, CacheBytes: 1 << 20}
}

// formatted returns a file system with an empty store.
func formatted(t *testing.T, o Options) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	must.Do(t, errors.Join(mem.Mkdir(o.Dir), mem.SyncDir("/")))
	o.FS = mem
	must.Do(t, Format(o, []Row{{[]byte("first"), []byte("row")}}, 1))
	return mem
}

func newStoreModel() *storeModel {
	return &storeModel{map[block.ID][]byte{}, map[string]string{"first": "row"}, 1}
}

func openWriter(t *testing.T, o Options) *Manager {
	t.Helper()
	m := must.Get(Open(o))(t)
	must.Do(t, m.Writable())
	return m
}

// randomBytes returns bytes that differ between blocks.
func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// script does random operations on a manager and maintains the model.
type script struct {
	m     *Manager
	r     *rand.Rand
	now   *storeModel // of the last commit that returned
	next  *storeModel // of the one in flight, or nil
	maxID block.ID    // highest ID ever assigned
	open  []Source
	want  [][]byte // content of open
	onSet func()   // before now, next or maxID change
	onEnd func()
}

func (s *script) set(now, next *storeModel) { s.change(func() { s.now, s.next = now, next }) }

// change runs f while no other goroutine uses s.
func (s *script) change(f func()) {
	if s.onSet != nil {
		s.onSet()
		defer s.onEnd()
	}
	f()
}

// create writes n blocks in one creation, several sinks concurrently.
func (s *script) create(n int) (*Creation, map[block.ID][]byte, error) {
	c := s.m.NewCreation()
	blocks := map[block.ID][]byte{}
	type making struct {
		sink block.Sink
		data []byte
		done int
	}
	var list []*making
	for range n {
		size := s.r.IntN(9000)
		switch s.r.IntN(12) {
		case 0:
			size = 0
		case 1:
			size = sinkBuffer + s.r.IntN(2*sinkBuffer)
		case 2:
			size = 4096
		}
		sink, err := c.Create()
		if err != nil {
			return c, nil, err
		}
		if sink.ID() <= s.maxID {
			return c, nil, fmt.Errorf("id %d comes back, %d was handed out", sink.ID(), s.maxID)
		}
		s.change(func() { s.maxID = sink.ID() })
		list = append(list, &making{sink: sink, data: randomBytes(s.r, size)})
	}
	for len(list) > 0 {
		i := s.r.IntN(len(list))
		w := list[i]
		if w.done < len(w.data) {
			n := min(len(w.data)-w.done, 1+s.r.IntN(100<<10))
			if _, err := w.sink.Write(w.data[w.done : w.done+n]); err != nil {
				return c, nil, err
			}
			w.done += n
			continue
		}
		list = slices.Delete(list, i, i+1)
		if s.r.IntN(10) == 0 {
			if err := c.Discard(w.sink); err != nil {
				return c, nil, err
			}
			continue
		}
		if err := c.Finish(w.sink); err != nil {
			return c, nil, err
		}
		blocks[w.sink.ID()] = w.data
	}
	return c, blocks, nil
}

// step does one random operation.
func (s *script) step() error {
	switch k := s.r.IntN(12); {
	case k < 7:
		return s.commit()
	case k == 7:
		c, _, err := s.create(1 + s.r.IntN(3))
		if err == nil && s.r.IntN(2) == 0 {
			err = c.Sync()
		}
		c.Abort()
		return err
	case k == 8:
		return s.m.Confirm()
	case k == 9 && len(s.now.blocks) > 0 && len(s.open) < 4:
		ids := slices.Sorted(maps.Keys(s.now.blocks))
		id := ids[s.r.IntN(len(ids))]
		src, err := s.m.OpenBlock(id)
		if err != nil {
			return err
		}
		s.open, s.want = append(s.open, src), append(s.want, s.now.blocks[id])
		return nil
	case k == 10 && len(s.open) > 0:
		return s.closeOne()
	case k == 11:
		_, err := s.m.Rewrite(context.Background())
		return err
	}
	return nil
}

// closeOne reads an open block, dropped or not, and closes it.
func (s *script) closeOne() error {
	got, err := io.ReadAll(io.NewSectionReader(s.open[0], 0, s.open[0].Size()))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, s.want[0]) {
		return fmt.Errorf("block %d changed while it was open", s.open[0].ID())
	}
	err = s.open[0].Close()
	s.open, s.want = s.open[1:], s.want[1:]
	return err
}

func (s *script) commit() error {
	next := s.now.clone()
	e := Edit{Confirm: s.r.IntN(6) == 0}
	for range s.r.IntN(3) {
		c, blocks, err := s.create(1 + s.r.IntN(4))
		if err == nil {
			err = c.Sync()
		}
		if err != nil {
			return err
		}
		e.Created = append(e.Created, c)
		maps.Copy(next.blocks, blocks)
	}
	for _, id := range slices.Sorted(maps.Keys(s.now.blocks)) {
		if s.r.IntN(3) == 0 {
			e.Dead = append(e.Dead, id)
			delete(next.blocks, id)
		}
	}
	for range s.r.IntN(3) {
		k := fmt.Sprintf("k%d", s.r.IntN(5))
		e.Delete = append(e.Delete, []byte(k))
		delete(next.rows, k)
	}
	for range s.r.IntN(3) {
		k, v := fmt.Sprintf("k%d", s.r.IntN(5)), fmt.Sprint(s.r.Uint32())
		if s.r.IntN(5) == 0 {
			v = ""
		}
		e.Put = append(e.Put, Row{[]byte(k), []byte(v)})
		next.rows[k] = v
	}
	if s.r.IntN(2) == 0 {
		next.logStart += lsn.LSN(s.r.IntN(5))
		e.LogStart = next.logStart
	}
	s.set(s.now, next)
	if err := s.m.Commit(e); err != nil {
		return err
	}
	s.set(next, nil)
	return nil
}

// checkVerify fails if Verify finds anything.
func checkVerify(m *Manager) error {
	var found []error
	err := m.Verify(context.Background(), func(file string, off int64, id block.ID, problem string) {
		found = append(found, fmt.Errorf("%s at %d, block %d: %s", file, off, id, problem))
	}, nil)
	return errors.Join(append(found, err)...)
}

// checkTorn is checkVerify after a crash and before a repair: a slot of ANCHOR may be torn.
func checkTorn(m *Manager) error {
	var found []error
	err := m.Verify(context.Background(), func(file string, off int64, id block.ID, problem string) {
		if file != anchorName || !strings.HasPrefix(problem, "crc ") {
			found = append(found, fmt.Errorf("%s at %d, block %d: %s", file, off, id, problem))
		}
	}, nil)
	return errors.Join(append(found, err)...)
}

var digestSeed = maphash.MakeSeed()

// digest returns a hash of all names and bytes below a directory, for comparisons in this process.
func digest(t *testing.T, f vfs.FS, dir string) uint64 {
	t.Helper()
	var h maphash.Hash
	h.SetSeed(digestSeed)
	var walk func(dir string)
	walk = func(dir string) {
		names := must.Get(f.List(dir))(t)
		for _, n := range names {
			name := filepath.Join(dir, n)
			info := must.Get(f.Stat(name))(t)
			fmt.Fprintf(&h, "%s %d\n", name, info.Size())
			if info.IsDir() {
				walk(name)
				continue
			}
			h.Write(readFile(t, f, name))
		}
	}
	walk(dir)
	return h.Sum64()
}

func readFile(t *testing.T, f vfs.FS, name string) []byte {
	t.Helper()
	file := must.Get(f.Open(name, false))(t)
	defer file.Close()
	size := must.Get(file.Size())(t)
	b := make([]byte, size)
	if n, err := file.ReadAt(b, 0); int64(n) < size {
		t.Fatal(err)
	}
	return b
}

// unwritten returns a file system whose writes fail the test.
func unwritten(v vfs.FS) vfs.FS {
	disk := faultfs.New(v)
	disk.Fail(faultfs.Rule{Match: changing, Times: faultfs.Forever,
		Err: fmt.Errorf("written to: %w", fault.ErrReadOnly)})
	return disk
}
