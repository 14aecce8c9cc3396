package blockmanager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// A container is sparse when less than one part in so many of its bytes are live blocks. Where
// holes can be punched, a sparse container costs only a file and a descriptor, so it has to be full
// too. Where they cannot, and once no container is sparse, a container has at most as many dead
// bytes as live ones, except those with a live block that are shorter than firstWindow: a store
// takes at most twice its live blocks, and a window for each container. Copying a container costs
// less than it frees.
const (
	sparseWithoutPunching = 2
	sparseWithPunching    = 8
)

// Rewrite moves the live blocks of the sparsest container, if there is a sparse one, to other
// containers, and drops it. Block ids do not change. It returns how many containers it emptied, 0
// or 1; callers may call it again until it returns 0.
//
// The copies are synced before one commit replaces the old blocks by them, so a crash leaves one or
// the other. A source that has an old block open keeps reading it; the file is removed after the
// last of them is closed. If the bytes of a block do not have the checksum that was recorded,
// Rewrite returns ErrCorrupt and moves nothing; further calls skip that container. Rewrite also
// returns the errors of Commit and of ctx.
func (m *Manager) Rewrite(ctx context.Context) (emptied int, err error) {
	c, blocks := m.takeSparse()
	if c == nil {
		return 0, nil
	}
	creation := m.NewCreation()
	defer creation.Abort()
	err = m.copyBlocks(ctx, creation, blocks)
	if err == nil {
		err = creation.Sync()
	}
	if err == nil {
		err = m.commitRewrite(creation, c)
	}
	if err != nil {
		m.mu.Lock()
		c.damaged = errors.Is(err, fault.ErrCorrupt)
		m.mu.Unlock()
		m.releaseContainers([]*container{c})
		return 0, fmt.Errorf("blockmanager: rewrite container %s: %w", c.id, err)
	}
	return 1, nil
}

// takeSparse acquires the sparsest container, so that nothing is written to it and no other commit
// drops it.
func (m *Manager) takeSparse() (c *container, blocks []*liveBlock) {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	if m.writable() != nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, _ = m.sparsest(); c == nil {
		return nil, nil
	}
	c.acquired = true
	m.pool = slices.DeleteFunc(m.pool, func(p *container) bool { return p == c })
	for _, b := range m.state.blocks {
		if b.in == c {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b *liveBlock) int {
		return strings.Compare(string(blockKey(a.id)), string(blockKey(b.id)))
	})
	return c, blocks
}

// Sparse returns how many bytes of the container that Rewrite would empty next are used, and how
// many of these are live blocks, which it would copy; 0 if there is no sparse container.
func (m *Manager) Sparse() (live, used int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, live := m.sparsest()
	if c == nil {
		return 0, 0
	}
	return live, c.row.next
}

// sparsest returns the sparsest container and the bytes of its live blocks; nil if none is sparse.
// The caller holds mu.
func (m *Manager) sparsest() (c *container, bytes int64) {
	live := map[*container]int64{}
	for _, b := range m.state.blocks {
		live[b.in] += alignUp(b.length, m.state.format.blockSize)
	}
	for _, other := range m.state.containers {
		if m.sparse(other, live[other]) && (c == nil || live[other]*c.row.next < live[c]*other.row.next) {
			c = other
		}
	}
	return c, live[c]
}

// sparse reports whether c, of which so many bytes are live, is worth emptying. The caller holds
// mu.
func (m *Manager) sparse(c *container, live int64) bool {
	used := c.row.next - alignUp(headerLen, m.state.format.blockSize)
	switch {
	case c.row.state == containerDead || c.acquired || c.damaged:
		return false
	case live == 0 && used > 0 && !m.canPunch:
		return true // nothing to copy
	case used < firstWindow && used < m.o.ContainerBytes/2:
		return false
	case m.canPunch:
		return c.row.state == containerFull && live*sparseWithPunching < used
	default:
		return live*sparseWithoutPunching < used
	}
}

// copyBlocks writes the blocks once more, under their ids.
func (m *Manager) copyBlocks(ctx context.Context, c *Creation, blocks []*liveBlock) error {
	buf := make([]byte, verifyChunk)
	for _, b := range blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		src, err := m.OpenBlock(b.id)
		if errors.Is(err, fault.ErrNotFound) {
			continue // dropped meanwhile
		} else if err != nil {
			return err
		}
		err = c.copyBlock(b.info(), io.NewSectionReader(src, 0, src.Size()), buf)
		if cerr := src.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyBlock writes a block with a given ID, and compares its bytes with length and sum.
func (c *Creation) copyBlock(b BlockInfo, src io.Reader, buf []byte) error {
	s := newSink(c, b.ID)
	c.mu.Lock()
	c.open[s] = struct{}{}
	c.mu.Unlock()
	n, err := io.CopyBuffer(s, io.LimitReader(src, b.Length), buf)
	if err == nil && n < b.Length {
		err = fault.Corruptf("block %d: %d bytes, want %d", b.ID, n, b.Length)
	}
	if got := s.sum.Sum64(); err == nil && got != b.Sum {
		err = fault.Corruptf("block %d: checksum %016x, want %016x", b.ID, got, b.Sum)
	}
	if err != nil {
		return errors.Join(err, c.Discard(s))
	}
	return c.Finish(s)
}

// commitRewrite replaces the blocks by the copies and drops c. Copies of blocks that were dropped
// since then are dead at once.
func (m *Manager) commitRewrite(creation *Creation, c *container) error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	creation.mu.Lock()
	defer creation.mu.Unlock()
	e := Edit{Created: []*Creation{creation}, emptied: c}
	for _, b := range creation.blocks {
		if old := m.state.blocks[b.id]; old != nil && old.in == c {
			e.moved = append(e.moved, old)
		} else {
			e.stale = append(e.stale, b)
		}
	}
	return m.commit(e)
}
