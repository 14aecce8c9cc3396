package blockmanager

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Source is a block open for reading. Its bytes stay readable until Close, even if a commit drops
// the block. Close may be called twice.
type Source interface {
	block.Source
	io.Closer
}

// OpenBlock opens a committed block, and checks by one read of its end that it is that block. The
// Source is a block.Tailed.
//
// Errors: ErrNotFound; ErrCorrupt if the bytes there are not the block; ErrClosed.
func (m *Manager) OpenBlock(id block.ID) (Source, error) { return m.OpenTail(id, 0) }

// OpenTail is like OpenBlock, but the Source's tail has at least n bytes, or is the whole block.
func (m *Manager) OpenTail(id block.ID, n int64) (Source, error) {
	m.mu.RLock()
	b := m.state.blocks[id]
	if b == nil {
		b = m.older[id]
	}
	s, err := m.source(id, b)
	m.mu.RUnlock()
	return s.checked(err, n)
}

// OpenBlock opens a finished block of the creation, committed or not. The source must be closed
// before Abort.
//
// Errors: ErrNotFound; ErrCorrupt if the bytes there are not the block; ErrClosed.
func (c *Creation) OpenBlock(id block.ID) (Source, error) {
	c.mu.Lock()
	i := slices.IndexFunc(c.blocks, func(b *liveBlock) bool { return b.id == id })
	var b *liveBlock
	if i >= 0 {
		b = c.blocks[i]
	}
	c.m.mu.RLock()
	s, err := c.m.source(id, b)
	c.m.mu.RUnlock()
	c.mu.Unlock()
	return s.checked(err, 0)
}

// source returns a source of b, nil if there is no such block, and adds a reference. The caller
// holds mu, so that a commit which drops the block either precedes it or sees the reference.
func (m *Manager) source(id block.ID, b *liveBlock) (*source, error) {
	switch {
	case m.closed.Load():
		return nil, fmt.Errorf("blockmanager: block %d: %w", id, fault.ErrClosed)
	case b == nil:
		return nil, fmt.Errorf("blockmanager: block %d: %w", id, fault.ErrNotFound)
	case b.in.file == nil:
		return nil, noFile(b)
	}
	b.refs.Add(1)
	b.in.refs.Add(1)
	b.in.file.refs.Add(1)
	return &source{m: m, b: b, file: b.in.file}, nil
}

// checked returns s after comparing the bytes on disk with the block's identity. Its tail has at
// least n bytes, or is the whole block.
func (s *source) checked(err error, n int64) (Source, error) {
	if err != nil {
		return nil, err
	}
	if err := s.check(n); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

type source struct {
	m      *Manager
	b      *liveBlock
	file   *sharedFile
	closed atomic.Bool
	tail   atomic.Pointer[[]byte] // see TakeTail
}

func (s *source) ID() block.ID { return s.b.id }
func (s *source) Size() int64  { return s.b.length }

// A read of the end of a block takes all of a block of up to tailWhole bytes, otherwise the last
// tailWhole, less the part before a page begins: footer, indexes and zone map of most column files.
// The device needs about as long for four pages as for one.
const (
	tailWhole = 16 << 10
	tailPage  = 4 << 10
)

// check compares the block's identity with its row. It keeps the bytes that it has read, at least n
// or the whole block.
func (s *source) check(n int64) error {
	from := int64(0)
	if s.b.length > max(n, tailWhole) {
		from = min(alignUp(s.b.length-tailWhole, tailPage), (s.b.length-n)&^(tailPage-1)) // a block begins with a page
	}
	tail := make([]byte, s.b.length-from)
	if _, err := s.ReadAt(tail, from); err != nil {
		if errors.Is(err, fault.ErrCorrupt) && s.m.o.tolerance.accepts(s) {
			return nil
		}
		return err
	}
	footer := tail[max(0, len(tail)-footerProbe):]
	if got := identity(s.m.o.Instance, s.b.id, &s.b.blockRow, footer); got != s.b.identity &&
		!s.m.o.tolerance.accepts(s) {
		return s.corrupt("identity %016x, want %016x", got, s.b.identity)
	}
	s.tail.Store(&tail)
	return nil
}

// TakeTail returns the last bytes of the block, which OpenBlock has read, and forgets them.
func (s *source) TakeTail() []byte {
	if tail := s.tail.Swap(nil); tail != nil {
		return *tail
	}
	return nil
}

func (s *source) corrupt(format string, args ...any) error {
	return fault.Corruptf("blockmanager: block %d: %d bytes at %d of container %s: %s",
		s.b.id, s.b.length, s.b.off, s.b.container, fmt.Sprintf(format, args...))
}

// ReadAt follows io.ReaderAt within the block: one read of the container's file.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if s.closed.Load() || s.m.closed.Load() {
		return 0, fmt.Errorf("blockmanager: block %d: %w", s.b.id, fault.ErrClosed)
	}
	if off < 0 || off > s.b.length {
		return 0, fmt.Errorf("blockmanager: block %d: read at byte %d of %d: %w", s.b.id, off, s.b.length, io.EOF)
	}
	want := len(p)
	p = p[:min(int64(want), s.b.length-off)]
	n, err := 0, error(nil)
	if len(p) > 0 {
		n, err = s.file.f.ReadAt(p, s.b.off+off)
		if s.m.o.Follow && n == len(p) && s.m.mayBePunched(s.b, p, s.b.off+off) {
			return 0, fault.Reworded(fault.ErrTooOld,
				"blockmanager: block %d: the writer has dropped it since this follower saw the store: "+
					"refresh the follower, or open it again", s.b.id)
		}
	}
	switch {
	case n == len(p) && n < want:
		return n, io.EOF
	case n == len(p):
		return n, nil
	case errors.Is(err, io.EOF):
		return n, s.corrupt("the file ends within it")
	default:
		return n, fmt.Errorf("blockmanager: block %d: %w", s.b.id, err)
	}
}

// Close releases the block. If it was dropped, the next commit or confirmation may free its space.
func (s *source) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	err := s.file.release()
	s.b.in.refs.Add(-1)
	s.b.refs.Add(-1)
	return err
}
