package memrowset

import (
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/keyenc"
)

// find returns the header of the key's row, or 0 if the key was never inserted. toChange says that the
// caller will change the row.
//
// If there is a filter, most keys that are not in the set need neither the lock nor the tree. A key
// is in the filter before its insert returns. A reader that must see a row comes later, since it
// holds the row's lock or has a snapshot from after the row's publication.
func (m *MemRowSet) find(key []byte, toChange bool) arena.Ref {
	filtered := m.filter.exists()
	if m.rows.Load() == 0 || keyenc.Head(key) < m.least.Load() || filtered && !m.filter.mayContain(hashKey(key)) {
		return 0
	}
	ref := m.walkTo(key, toChange)
	if ref == 0 && !filtered {
		m.filter.missed.Add(1)
	}
	return ref
}

// walkTo is find in the tree.
func (m *MemRowSet) walkTo(key []byte, toChange bool) arena.Ref {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tree.get(newProbe(key), toChange)
}

// EndsBefore reports whether all keys, including the keys of ghosts, precede key.
func (m *MemRowSet) EndsBefore(key []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	last, ok := m.tree.max()
	return !ok || m.before(last, newProbe(key))
}

// snapshot returns a snapshot of the current tree. All scans between two inserts share one.
func (m *MemRowSet) snapshot() *tree {
	m.mu.RLock()
	view := m.view
	m.mu.RUnlock()
	if view != nil {
		return view
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.view == nil {
		m.view = m.tree.snapshot()
	}
	return m.view
}
