package memrowset

import (
	"bytes"
	"math/bits"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/keyenc"
)

// item is one row in the tree. Most comparisons are settled by the prefix; only where two are equal
// the arena is read.
type item struct {
	prefix uint64    // first 8 bytes of the key as a big-endian integer, with zeros after a shorter key
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
		return m.probes.keys[ref&^probeBit]
	}
	return m.header(ref).key()
}

// before reports whether the row of it comes before key.
func (m *MemRowSet) before(it item, prefix uint64, key []byte) bool {
	if it.prefix != prefix {
		return it.prefix < prefix
	}
	return bytes.Compare(m.keyOf(it.ref), key) < 0
}

// probeBit in an item's ref says that the key is not a row's but looked for. No arena is large
// enough to use the bit.
const probeBit = arena.Ref(1) << 63

// spareProbe is the slot of a probe when all others are taken. It belongs to the holder of the
// write lock.
const spareProbe = 64

// probes are the keys that are being looked for. An item has no pointer, so that the tree's nodes
// cost the garbage collector nothing; an item for a key outside the arena therefore
// names a slot here.
type probes struct {
	taken atomic.Uint64 // a bit for each slot but the spare one
	keys  [spareProbe + 1][]byte
}

// take puts key into a free slot; ok is false if there is none. The slot is the caller's until
// drop.
func (p *probes) take(key []byte) (slot int, ok bool) {
	for {
		taken := p.taken.Load()
		slot = bits.TrailingZeros64(^taken)
		if slot == 64 {
			return 0, false
		}
		if p.taken.CompareAndSwap(taken, taken|1<<slot) {
			p.keys[slot] = key
			return slot, true
		}
	}
}

func (p *probes) drop(slot int) {
	p.keys[slot] = nil
	p.taken.And(^(uint64(1) << slot))
}

// withProbe calls fn with an item that compares as key does.
func (m *MemRowSet) withProbe(key []byte, fn func(probe item)) {
	prefix := keyenc.Head(key)
	if slot, ok := m.probes.take(key); ok {
		fn(item{prefix, probeBit | arena.Ref(slot)})
		m.probes.drop(slot)
		return
	}
	m.mu.Lock()
	m.probes.keys[spareProbe] = key
	fn(item{prefix, probeBit | spareProbe})
	m.probes.keys[spareProbe] = nil
	m.mu.Unlock()
}

// find returns the header of the key's row; 0 if the key was never inserted.
//
// An empty set is recognized without a lock. Rows are counted once they are in the tree, before
// their insert returns: who must see a row comes after that, since it holds the row's lock or has a
// snapshot of a time when the row was published.
func (m *MemRowSet) find(key []byte) arena.Ref {
	if m.rows.Load() == 0 {
		return 0
	}
	probe := item{prefix: keyenc.Head(key)}
	if slot, ok := m.probes.take(key); ok {
		probe.ref = probeBit | arena.Ref(slot)
		m.mu.RLock()
		found, _ := m.tree.Get(probe)
		m.mu.RUnlock()
		m.probes.drop(slot)
		return found.ref
	}
	m.mu.Lock()
	m.probes.keys[spareProbe] = key
	probe.ref = probeBit | spareProbe
	found, _ := m.tree.Get(probe)
	m.probes.keys[spareProbe] = nil
	m.mu.Unlock()
	return found.ref
}

// EndsBefore reports whether all keys, ghosts' among them, come before key.
func (m *MemRowSet) EndsBefore(key []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	last, ok := m.tree.Max()
	return !ok || m.before(last, keyenc.Head(key), key)
}

// clone returns the tree as it is now, for reading only. All who ask between two inserts share one.
func (m *MemRowSet) clone() *btree.BTreeG[item] {
	m.mu.RLock()
	view := m.view
	m.mu.RUnlock()
	if view != nil {
		return view
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.view == nil {
		m.view = m.tree.Clone()
	}
	return m.view
}
