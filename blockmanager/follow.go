package blockmanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// A follower reads next to a writer in another process, see Options.Follow. Blocks never change,
// and files that are open can be read after they were removed. Only one thing can take bytes from
// it: the writer punches the range of a block that a commit has dropped, and the bytes are zeros
// from then on.
//
//	writer     commit e+1 drops block 7    intent of e+2: e+1 is confirmed    punches the range of 7
//	follower   at epoch e, has 7 open                                                    reads 7: zeros?
//
// Checksums would show that, as damage. So whatever has a page of zeros is looked into, after the
// read: while the anchor still accepts the follower's state, nothing of it can have been punched.
// After that, the newest metadata says whether the block is still one.

// newestState is the last metadata that a follower has loaded to find out whether blocks were
// dropped.
type newestState struct {
	mu    sync.Mutex
	state *state // nil: none
}

// AnchorEpoch returns the epoch in the newest slot of the anchor, from the disk.
func (m *Manager) AnchorEpoch() (uint64, error) {
	a, err := readAnchor(&m.o)
	if err != nil {
		return 0, err
	}
	return a.newest().epoch, nil
}

// mayBePunched reports whether p, which was read at off of a container, may contain zeros in place
// of the bytes of b.
func (m *Manager) mayBePunched(b *liveBlock, p []byte, off int64) bool {
	if !hasZeroPage(p, off, m.state.format.blockSize) {
		return false
	}
	a, err := readAnchor(&m.o)
	if err != nil { // both slots are being written
		return !m.stillLive(b, nil)
	}
	slot := a.newest()
	m.mu.RLock()
	live := slot.accepts(m.state.root) && m.state.has(b)
	m.mu.RUnlock()
	return !live && !m.stillLive(b, slot)
}

// hasZeroPage reports whether p, read at off of a container, contains all of a page, or all that it
// has of a page at one of its ends, as zeros.
func hasZeroPage(p []byte, off, page int64) bool {
	for len(p) > 0 {
		n := min(int64(len(p)), page-off%page)
		if p[0] == 0 && allZero(p[:n]) {
			return true
		}
		p, off = p[n:], off+n
	}
	return false
}

// has reports whether the block is one of the state, at the same place or another: a container from
// which blocks are moved is not punched, but removed.
func (s *state) has(b *liveBlock) bool { return s.blocks[b.id] != nil }

// loadTries is how often stillLive tries to load the metadata.
const loadTries = 3

// stillLive reports whether b is a block of metadata that is newer than the call, or that the slot
// accepts; a nil slot accepts none. If the metadata cannot be loaded, stillLive returns false.
func (m *Manager) stillLive(b *liveBlock, now *slot) bool {
	n := &m.newest
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != nil && now != nil && now.accepts(n.state.root) && now.epoch == n.state.epoch {
		return n.state.has(b)
	}
	for range loadTries {
		a, err := readAnchor(&m.o)
		if err != nil {
			continue
		}
		st, err := readMeta(&m.o)
		if err == nil && a.newest().accepts(st.root) {
			n.state = st
			return st.has(b)
		}
	}
	return false
}

// Reload moves a follower's manager to the newest state, and reports in moved whether the newest
// state differs from the state before. changed has the keys of the caller's rows that differ. The
// cost depends on what has changed, unless the journal lacks the changes. Then Reload reads all
// metadata, but not again until the metadata changes. After an error nothing has changed, and the
// call may be tried again: another process may have changed something during the call.
//
// Blocks that are gone can be opened until Forget: until then, a reader of the earlier state may
// open more of its files.
func (m *Manager) Reload() (changed [][]byte, moved bool, err error) {
	m.commitMu.Lock()
	defer m.commitMu.Unlock()
	if m.closed.Load() {
		return nil, false, fmt.Errorf("blockmanager: reload: %w", fault.ErrClosed)
	}
	a, err := readAnchor(&m.o)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("blockmanager: reload: %w", err)
	case a.newest().epoch <= m.state.epoch:
		return nil, false, nil
	case m.state.view != nil && a.newest().accepts(m.state.root) && m.state.view.isCurrent(&m.o):
		// The commit that the anchor announces has not come. If its writer was killed, it never will.
		return nil, false, nil
	}
	if changed, done := m.catchUp(a); done {
		return changed, true, nil
	}
	if changed, moved, err = m.reload(a); err != nil {
		return nil, false, fmt.Errorf("blockmanager: reload: %w", err)
	}
	return changed, moved, nil
}

// reload is Reload by all metadata.
func (m *Manager) reload(a *anchor) (changed [][]byte, moved bool, err error) {
	old := m.state
	st, err := readMeta(&m.o)
	switch {
	case err != nil:
		return nil, false, err
	case st.root == old.root && a.newest().accepts(st.root):
		old.view = st.view
		return nil, false, nil
	case !a.newest().accepts(st.root) || st.epoch <= old.epoch:
		return nil, false, fault.Corruptf("metadata is at epoch %d with hash %s, was at epoch %d, %s at "+
			"epoch %d with hash %s",
			st.epoch, st.hash, old.epoch, anchorName, a.newest().epoch, a.newest().hash)
	}
	for id, c := range st.containers {
		if before := old.containers[id]; before != nil && before.file != nil {
			before.file.refs.Add(1)
			c.file = before.file
		}
	}
	if err := st.open(&m.o); err != nil {
		return nil, false, err
	}
	changed = changedRows(old, st)
	m.anchor, m.journalAt, old.view = a, 0, st.view
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retired = slices.AppendSeq(m.retired, maps.Values(old.containers))
	if m.older == nil {
		m.older = map[block.ID]*liveBlock{}
	}
	for id, b := range old.blocks {
		if st.blocks[id] == nil {
			m.older[id] = b
		}
	}
	// The format never changes, and is read without the lock.
	old.root, old.mark, old.logStart = st.root, st.mark, st.logStart
	old.blocks, old.containers, old.dead, old.caller = st.blocks, st.containers, st.dead, st.caller
	return changed, true, nil
}

// Forget closes what only states before the current one have. No reader of them may open more
// blocks.
func (m *Manager) Forget() error {
	m.mu.Lock()
	retired := m.retired
	m.retired, m.older = nil, nil
	m.mu.Unlock()
	var errs []error
	for _, c := range retired {
		errs = append(errs, c.closeFiles())
	}
	return errors.Join(errs...)
}
