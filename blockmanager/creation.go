package blockmanager

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// idReserve is how many ids a commit reserves. When they are used up, the next allocation needs a
// commit.
const idReserve = 1024

// Creation is a set of new blocks that one Commit makes part of the state together.
//
// Its methods are safe for concurrent use, except that Sync, Abort and the Commit must follow all
// writes. One sink at a time writes to a container, so a Creation uses as many containers as it has
// open sinks of more than sinkBuffer bytes.
type Creation struct {
	m *Manager

	mu       sync.Mutex
	ended    bool // committed or aborted
	acquired []*container
	free     []*container            // acquired containers to which no sink writes, used from the end
	dirty    map[*container]struct{} // acquired containers that were written to since the last Sync
	open     map[*sink]struct{}
	blocks   []*liveBlock
	bytes    int64 // total length of blocks
}

// BlockInfo describes a finished block.
type BlockInfo struct {
	ID     block.ID
	Length int64  // bytes
	Sum    uint64 // xxh3-64 of all its bytes
}

// NewCreation begins a set of blocks. If the manager is not a writer, Create fails.
func (m *Manager) NewCreation() *Creation {
	return &Creation{m: m, dirty: map[*container]struct{}{}, open: map[*sink]struct{}{}}
}

// Create begins a block. The sink is for one goroutine; it buffers.
//
// Errors, of the sink too: ErrNoSpace, after which the caller can only Discard the sink or Abort
// the creation; ErrReadOnly, ErrPoisoned, ErrClosed.
func (c *Creation) Create() (block.Sink, error) {
	id, err := c.m.allocate()
	if err != nil {
		return nil, err
	}
	s := newSink(c, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, errEnded
	}
	c.open[s] = struct{}{}
	return s, nil
}

var errEnded = errors.New("blockmanager: creation is committed or aborted")

// Finish completes a block that Create began. Its bytes are not durable before Sync.
func (c *Creation) Finish(b block.Sink) error {
	s, err := c.take(b)
	if err != nil {
		return err
	}
	row, err := s.finish()
	if err != nil {
		s.drop()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(&liveBlock{id: s.id, blockRow: row, in: s.in})
	return nil
}

// add adds a finished block and frees its container. The caller holds mu.
func (c *Creation) add(b *liveBlock) {
	c.blocks = append(c.blocks, b)
	c.bytes += b.length
	b.in.end = b.off + alignUp(b.length, c.m.state.format.blockSize)
	if b.in.end < c.m.o.ContainerBytes {
		c.free = append(c.free, b.in)
	}
}

// Discard drops a block that Create began and Finish has not completed.
func (c *Creation) Discard(b block.Sink) error {
	s, err := c.take(b)
	if err == nil {
		s.drop()
	}
	return err
}

// take removes a sink from the open ones.
func (c *Creation) take(b block.Sink) (*sink, error) {
	s, ok := b.(*sink)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		_, ok = c.open[s]
	}
	if !ok {
		return nil, fmt.Errorf("blockmanager: block %d is not open in this creation", b.ID())
	}
	delete(c.open, s)
	return s, nil
}

// acquire returns a container for a sink.
func (c *Creation) acquire() (*container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, errEnded
	}
	if n := len(c.free); n > 0 {
		in := c.free[n-1]
		c.free = c.free[:n-1]
		c.dirty[in] = struct{}{}
		return in, nil
	}
	in, err := c.m.acquireContainer()
	if err != nil {
		return nil, err
	}
	c.acquired = append(c.acquired, in)
	c.dirty[in] = struct{}{}
	return in, nil
}

// Sync makes all finished blocks durable: one sync per container, and one of the directory if a
// container is new. No sink may be open.
// A failure poisons.
func (c *Creation) Sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errEnded
	}
	if len(c.open) > 0 {
		return fmt.Errorf("blockmanager: sync: %d blocks are not finished", len(c.open))
	}
	if err := c.m.poison.err(); err != nil {
		return err
	}
	if c.m.closed.Load() {
		return fmt.Errorf("blockmanager: sync: %w", fault.ErrClosed)
	}
	if err := c.syncDirty(); err != nil {
		return c.m.fail(err)
	}
	for in := range c.dirty {
		in.unnamed = false
	}
	clear(c.dirty)
	return nil
}

// syncDirty syncs the containers that were written to, all at once, and then the directory if one
// of them is new: after a failure nothing else is synced. The caller holds mu.
func (c *Creation) syncDirty() (err error) {
	o := &c.m.o
	errs, unnamed := make(chan error, len(c.dirty)), false
	for in := range c.dirty {
		unnamed = unnamed || in.unnamed
		go func() { errs <- in.sync(o) }()
	}
	for range c.dirty {
		err = errors.Join(err, <-errs)
	}
	if err == nil && unnamed {
		err = o.FS.SyncDir(o.dataDir())
	}
	return err
}

// Blocks returns the finished blocks, in the order in which they were finished.
func (c *Creation) Blocks() []BlockInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	infos := make([]BlockInfo, len(c.blocks))
	for i, b := range c.blocks {
		infos[i] = b.info()
	}
	return infos
}

// Bytes returns the total length of the finished blocks.
func (c *Creation) Bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// Abort drops all blocks; only their IDs stay used. After a commit, and when called again, it does
// nothing.
func (c *Creation) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	m := c.m
	for _, in := range c.acquired {
		if m.poison.is() || m.closed.Load() {
			break
		}
		m.mu.RLock()
		end := in.row.next
		m.mu.RUnlock()
		if err := in.cut(&m.o, end); err != nil {
			m.failed(err)
		}
	}
	m.releaseContainers(c.acquired)
	clear(c.open)
	c.blocks, c.acquired, c.free = nil, nil, nil
}

// ready returns an error if the creation cannot be committed. The caller holds c.mu.
func (c *Creation) ready(m *Manager) error {
	switch {
	case c.m != m:
		return errors.New("blockmanager: commit: creation of another manager")
	case c.ended:
		return errEnded
	case len(c.open) > 0:
		return fmt.Errorf("blockmanager: commit: %d blocks are not finished", len(c.open))
	case len(c.dirty) > 0:
		return errors.New("blockmanager: commit: creation is not synced")
	}
	return nil
}

// allocate assigns an ID below a durable mark.
func (m *Manager) allocate() (block.ID, error) {
	for {
		m.mu.Lock()
		id, free := m.nextID, uint64(m.nextID) < m.state.mark
		switch {
		case m.closed.Load():
			m.mu.Unlock()
			return 0, fmt.Errorf("blockmanager: %w", fault.ErrClosed)
		case m.poison.is():
			m.mu.Unlock()
			return 0, m.poison.err()
		case free:
			m.nextID++
			m.mu.Unlock()
			return id, nil
		}
		m.mu.Unlock()
		if err := m.raiseMark(); err != nil {
			return 0, err
		}
	}
}

// raiseMark commits a higher mark, unless a concurrent commit has done so.
func (m *Manager) raiseMark() error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	m.mu.RLock()
	free := uint64(m.nextID) < m.state.mark
	m.mu.RUnlock()
	if free {
		return nil
	}
	return m.commit(Edit{})
}

// acquireContainer takes a container from the pool, or creates one.
func (m *Manager) acquireContainer() (*container, error) {
	m.mu.Lock()
	if n := len(m.pool); n > 0 {
		c := m.pool[n-1]
		m.pool = m.pool[:n-1]
		c.acquired = true
		m.mu.Unlock()
		return c, nil
	}
	m.mu.Unlock()
	if err := m.poison.err(); err != nil {
		return nil, err
	}
	c, err := createContainer(&m.o, m.state.format.blockSize)
	if err != nil {
		return nil, fmt.Errorf("blockmanager: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		c.closeFiles() // a stray, for the next writer to remove
		return nil, fmt.Errorf("blockmanager: %w", fault.ErrClosed)
	}
	c.acquired = true
	m.fresh[c] = struct{}{}
	return c, nil
}

// releaseContainers returns containers to the pool after an abort. Each continues where its last
// commit ended.
func (m *Manager) releaseContainers(list []*container) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range slices.Backward(list) {
		m.releaseContainer(c)
	}
}

// releaseContainer returns a container to the pool, unless it is full. The caller holds mu.
func (m *Manager) releaseContainer(c *container) {
	c.acquired = false
	c.end = c.row.next
	if c.row.state == containerOpen && c.row.next < m.o.ContainerBytes {
		m.pool = append(m.pool, c)
	}
}
