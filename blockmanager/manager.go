package blockmanager

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Errors that callers may test for.
var (
	ErrCorrupt     = fault.ErrCorrupt
	ErrUnsupported = fault.ErrUnsupported
	ErrNotFound    = fault.ErrNotFound
	ErrReadOnly    = fault.ErrReadOnly
	ErrPoisoned    = fault.ErrPoisoned
	ErrNoSpace     = fault.ErrNoSpace
	ErrClosed      = fault.ErrClosed
	ErrTooOld      = fault.ErrTooOld
)

// Row is one metadata row of the caller. Callers' keys are in a separate key space.
type Row struct{ Key, Value []byte }

// Manager is an open block manager. It is safe for concurrent use.
//
// Locks: commitMu before Creation.mu before mu before container.ioMu. No file is touched under mu.
type Manager struct {
	o      Options
	poison *poison
	closed atomic.Bool
	// confirmedOnRequest is the result of ConfirmedEpoch. It changes under commitMu.
	confirmedOnRequest atomic.Uint64

	// commitMu is held from the intent of a commit to its publication, and while space is freed. It
	// orders all changes on the disk, and is held during I/O, so readers never take it.
	commitMu  sync.Mutex
	anchor    *anchor
	meta      *metaStore // nil until Writable
	unflushed int64      // bytes of rows committed since Pebble's last flush
	journal   journal
	canPunch  bool     // false once the file system has refused to punch a hole
	repaired  Repaired // by Writable

	newest newestState // of a follower

	// mu guards the following fields. The state changes only under both locks: a commit, with
	// commitMu held, reads the state without mu, and takes mu only to publish the next one. Opening
	// a block therefore never waits for the disk.
	mu                sync.RWMutex
	state             *state
	nextID            block.ID
	confirmedEpoch    uint64 // 0: a state before the current one is still accepted
	confirmedLogStart lsn.LSN
	// pool has the containers with room for blocks that no Creation has acquired. The last is used
	// first.
	pool  []*container
	fresh map[*container]struct{} // created in this session, without a row yet

	// Of a follower: blocks and containers that only earlier states have. Readers of these states
	// may still open their files, until Forget.
	older   map[block.ID]*liveBlock
	retired []*container

	// journalAt is the offset in the journal after the changes that a follower's state has, or 0 if
	// the offset is not known. commitMu guards it.
	journalAt int64
}

// LogStart returns the lowest LSN that replay on the current state needs.
func (m *Manager) LogStart() lsn.LSN {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.logStart
}

// ConfirmedLogStart returns the lowest LSN that any state which the anchor still accepts needs. The
// log below it may be removed. It is 0 until the first confirmation after an open that found an
// unconfirmed state.
func (m *Manager) ConfirmedLogStart() lsn.LSN {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.confirmedLogStart
}

// Epoch returns the number of the last commit. Numbers rise, with gaps.
func (m *Manager) Epoch() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.epoch
}

// ConfirmedEpoch returns the epoch of the last Edit with Confirm, or the epoch that Open found
// confirmed, or 0 if nothing is confirmed. The metadata cannot return to an earlier epoch. Files
// outside the metadata may record this epoch: if a disk forgets a flush that it acknowledged, and
// with it both the metadata and the anchor, the record shows the loss.
func (m *Manager) ConfirmedEpoch() uint64 { return m.confirmedOnRequest.Load() }

// Rows calls fn for each of the caller's rows whose key begins with prefix, in key order, as of the
// last commit before the call. The slices never change, so fn may keep them. Rows stops at the
// first error of fn and returns it. Its cost grows with the rows of the prefix, not with all rows.
func (m *Manager) Rows(prefix []byte, fn func(key, value []byte) error) error {
	if m.closed.Load() {
		return fmt.Errorf("blockmanager: rows: %w", fault.ErrClosed)
	}
	m.mu.RLock()
	rows := m.state.caller.withPrefix(string(prefix))
	m.mu.RUnlock()
	for _, row := range rows {
		if err := fn([]byte(row.key), row.value); err != nil {
			return err
		}
	}
	return nil
}

// Lengths appends the lengths of committed blocks, in bytes, to dst: −1 for a block that does not
// exist.
func (m *Manager) Lengths(dst []int64, ids ...block.ID) []int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, id := range ids {
		b := m.state.blocks[id]
		if b == nil {
			b = m.older[id]
		}
		n := int64(-1)
		if b != nil {
			n = b.length
		}
		dst = append(dst, n)
	}
	return dst
}

// Poisoned returns the failure after which nothing is written any more, wrapped in ErrPoisoned, or
// nil.
func (m *Manager) Poisoned() error { return m.poison.err() }

// Poison makes the manager read-only for good, as a failure of its own writes does. Callers use it
// when something that must agree with the metadata fails, such as the log. The first cause wins.
func (m *Manager) Poison(cause error) { m.fail(cause) }

// fail poisons the manager.
func (m *Manager) fail(cause error) error {
	if m.poison.is() {
		return m.poison.err()
	}
	err := m.poison.set(cause)
	m.o.Logger.Error("block manager is read-only from now on", "cause", cause)
	return err
}

// failed classifies an error of a write before any sync: the caller handles a full disk, everything
// else poisons.
func (m *Manager) failed(err error) error {
	switch {
	case m.closed.Load():
		return fmt.Errorf("blockmanager: %w", fault.ErrClosed)
	case errors.Is(err, fault.ErrNoSpace):
		return fmt.Errorf("blockmanager: %w", err)
	default:
		return m.fail(err)
	}
}

// writable returns an error if nothing may be written. The caller holds commitMu.
func (m *Manager) writable() error {
	switch {
	case m.closed.Load():
		return fmt.Errorf("blockmanager: %w", fault.ErrClosed)
	case m.poison.is():
		return m.poison.err()
	case m.meta == nil:
		return fmt.Errorf("blockmanager: %w", fault.ErrReadOnly)
	}
	return nil
}

// Stats are statistics of a manager.
type Stats struct {
	Epoch         uint64
	Blocks        int
	Containers    int
	LiveBytes     int64 // of live blocks
	DeadBytes     int64 // of dropped blocks whose space is not freed yet
	MetadataBytes int64 // of the files in meta/
}

// Pinned counts the dropped blocks whose space cannot be reclaimed yet, since readers have them
// open.
type Pinned struct {
	Blocks int
	Bytes  int64
}

// Pinned returns how much open readers keep from being reclaimed. It visits all dropped blocks.
func (m *Manager) Pinned() (p Pinned) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, d := range m.state.dead {
		if !d.punched && d.block != nil && d.block.refs.Load() > 0 {
			p.Blocks++
			p.Bytes += d.length
		}
	}
	return p
}

// Stats computes the statistics. It visits all blocks and lists meta/.
func (m *Manager) Stats() Stats {
	m.mu.RLock()
	s := Stats{Epoch: m.state.epoch, Blocks: len(m.state.blocks), Containers: len(m.state.containers)}
	for _, b := range m.state.blocks {
		s.LiveBytes += b.length
	}
	for _, d := range m.state.dead {
		if !d.punched {
			s.DeadBytes += d.length
		}
	}
	m.mu.RUnlock()
	names, err := m.o.FS.List(m.o.metaDir())
	if err != nil {
		return s
	}
	for _, n := range names {
		if info, err := m.o.FS.Stat(filepath.Join(m.o.metaDir(), n)); err == nil && !info.IsDir() {
			s.MetadataBytes += info.Size()
		}
	}
	return s
}

// Close confirms the last commit, frees space that was reserved ahead, and closes everything.
// Sources that are still open fail with ErrClosed from then on; their files are closed too. A
// poisoned manager writes nothing, abandons Pebble, and returns the first cause. Uncommitted
// creations are lost. Close may be called twice.
func (m *Manager) Close() error {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	m.mu.Lock()
	was := m.closed.Swap(true)
	m.mu.Unlock()
	if was {
		return nil
	}
	var errs []error
	if m.meta != nil && !m.poison.is() {
		errs = append(errs, m.tidy())
		m.journal.seal(m)
	}
	if m.meta != nil {
		if err := m.meta.close(); err != nil && !m.poison.is() {
			errs = append(errs, m.fail(err))
		}
	}
	m.journal.close()
	if m.anchor.file != nil {
		errs = append(errs, m.anchor.file.Close())
	}
	for _, c := range m.allContainers() {
		errs = append(errs, c.closeFiles())
	}
	errs = append(errs, m.Forget())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("blockmanager: close: %w", err)
	}
	return m.poison.err()
}

// tidy does the writes of a clean close.
func (m *Manager) tidy() error {
	if err := m.confirm(); err != nil {
		return err
	}
	for _, c := range m.allContainers() {
		if _, fresh := m.fresh[c]; fresh {
			if err := errors.Join(c.closeFiles(), m.o.FS.Remove(m.o.dataPath(c.name()))); err != nil {
				m.o.Logger.Warn("container without blocks stays", "container", c.id, "err", err)
			}
			continue
		}
		if c.row.state != containerDead && c.reservedAbove(c.row.next) > 0 {
			if err := c.cut(&m.o, c.row.next); err != nil {
				return m.fail(err)
			}
		}
	}
	if m.unflushed >= flushAtClose {
		if err := m.meta.flush(); err != nil {
			return m.fail(err)
		}
	}
	return nil
}

// allContainers returns the containers with a row and those without.
func (m *Manager) allContainers() []*container {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.AppendSeq(slices.Collect(maps.Values(m.state.containers)), maps.Keys(m.fresh))
}

// Bytes in Pebble's log above which Pebble writes its content to tables, so that the next open
// replays less.
const (
	flushAtClose  = 64 << 10
	flushWhenIdle = 1 << 20
)
