package memrowset

import (
	"bytes"
	"math/bits"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/keyenc"
)

// item is one row in the tree. The prefix decides most comparisons; the arena is read only if two
// prefixes are equal.
type item struct {
	prefix uint64    // first 8 bytes of the key as a big-endian integer, padded with zeros
	ref    arena.Ref // of the row's header; or, with probeBit, a slot in probes
}

// less is the order of the tree.
func (m *MemRowSet) less(a, b item) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return a.ref != b.ref && bytes.Compare(m.keyOf(a.ref), m.keyOf(b.ref)) < 0
}

func (m *MemRowSet) keyOf(ref arena.Ref) []byte {
	if ref&probeBit != 0 {
		return m.probes.keys.Load()[ref&^probeBit]
	}
	return m.header(ref).key()
}

// before reports whether the row of item it precedes key.
func (m *MemRowSet) before(it item, prefix uint64, key []byte) bool {
	if it.prefix != prefix {
		return it.prefix < prefix
	}
	return bytes.Compare(m.keyOf(it.ref), key) < 0
}

// probeBit in an item's ref marks a key that is searched for, as opposed to a row's key. No arena
// is large enough to use the bit.
const probeBit = arena.Ref(1) << 63

// spareProbe is the slot of a probe if all others are taken. Its user holds the write lock.
const spareProbe = 64

// probes contains the keys that are being searched for. Items have no pointers, so that the garbage
// collector does not visit the nodes of the tree; an item for a key outside the arena therefore
// refers to a slot here.
type probes struct {
	taken atomic.Uint64                          // a bit for each slot except the spare one
	keys  atomic.Pointer[[spareProbe + 1][]byte] // made for the first search
}

// slots returns the keys by slot.
func (p *probes) slots() *[spareProbe + 1][]byte {
	if keys := p.keys.Load(); keys != nil {
		return keys
	}
	p.keys.CompareAndSwap(nil, new([spareProbe + 1][]byte))
	return p.keys.Load()
}

// take puts key into a free slot, which belongs to the caller until drop. ok is false if all slots
// are in use.
func (p *probes) take(key []byte) (slot int, ok bool) {
	for {
		taken := p.taken.Load()
		slot = bits.TrailingZeros64(^taken)
		if slot == 64 {
			return 0, false
		}
		if p.taken.CompareAndSwap(taken, taken|1<<slot) {
			p.slots()[slot] = key
			return slot, true
		}
	}
}

func (p *probes) drop(slot int) {
	p.slots()[slot] = nil
	p.taken.And(^(uint64(1) << slot))
}

// withProbe calls fn with an item that compares like key.
func (m *MemRowSet) withProbe(key []byte, fn func(probe item)) {
	prefix := keyenc.Head(key)
	if slot, ok := m.probes.take(key); ok {
		fn(item{prefix, probeBit | arena.Ref(slot)})
		m.probes.drop(slot)
		return
	}
	m.mu.Lock()
	m.probes.slots()[spareProbe] = key
	fn(item{prefix, probeBit | spareProbe})
	m.probes.slots()[spareProbe] = nil
	m.mu.Unlock()
}

// find returns the header of the key's row, or 0 if the key was never inserted.
//
// If there is a filter, most keys that are not in the set need neither the lock nor the tree. A key
// is in the filter before its insert returns. A reader that must see a row comes later, since it
// holds the row's lock or has a snapshot from after the row's publication.
func (m *MemRowSet) find(key []byte) arena.Ref {
	filtered := m.filter.exists()
	if m.rows.Load() == 0 || filtered && !m.filter.mayContain(hashKey(key)) {
		return 0
	}
	ref := m.walkTo(key)
	if ref == 0 && !filtered {
		m.filter.missed.Add(1)
	}
	return ref
}

// walkTo is find in the tree.
func (m *MemRowSet) walkTo(key []byte) arena.Ref {
	probe := item{prefix: keyenc.Head(key)}
	if slot, ok := m.probes.take(key); ok {
		probe.ref = probeBit | arena.Ref(slot)
		m.mu.RLock()
		found, _ := m.tree.get(probe)
		m.mu.RUnlock()
		m.probes.drop(slot)
		return found.ref
	}
	m.mu.Lock()
	m.probes.slots()[spareProbe] = key
	probe.ref = probeBit | spareProbe
	found, _ := m.tree.get(probe)
	m.probes.slots()[spareProbe] = nil
	m.mu.Unlock()
	return found.ref
}

// EndsBefore reports whether all keys, including the keys of ghosts, precede key.
func (m *MemRowSet) EndsBefore(key []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	last, ok := m.tree.max()
	return !ok || m.before(last, keyenc.Head(key), key)
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
