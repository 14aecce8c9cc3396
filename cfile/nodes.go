package cfile

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyheads"
)

// A file with cblocks of a few kilobytes has large indexes: of a row file, one part in a hundred.
// The value index of such a file is in the cache in nodes.

// keyedNodeBytes is the size of a node of the value index of a Keyed file. A lookup beyond the
// cache reads one.
const keyedNodeBytes = 8 << 10

// maxLateLeaves is how many bytes of leaves of a Keyed file's value index are kept to be written
// side by side at its end, where one read gets all of them.
const maxLateLeaves = 1 << 20

// nodeOverhead is the size of a node apart from its payload, or the size of a part that loaded
// loads apart from its slices.
const nodeOverhead = 128

// node returns the index node at p, through the cache for indexes, if the Reader has one.
func (r *Reader) node(p BlockPointer) (*node, error) {
	key := r.partKey(p, partNode)
	if r.indexes != nil {
		if v, ok := r.indexes.Get(key); ok {
			return v.(*node), nil
		}
	} else if n := r.lastNode.Load(); n != nil && n.at == p {
		return n, nil
	}
	payload, _, err := r.readBlock(p, nil)
	if err != nil {
		return nil, err
	}
	n, err := parseNode(payload)
	if err == nil {
		err = n.prepare()
	}
	if err != nil {
		return nil, r.at(p, err)
	}
	n.at = p
	if r.indexes != nil {
		r.indexes.Put(key, &n, int64(cap(payload))+n.heads.Bytes()+nodeOverhead)
	} else {
		r.lastNode.Store(&n)
	}
	return &n, nil
}

// prepare checks all entries and makes n ready for search.
func (n *node) prepare() (err error) {
	for i := range n.count {
		if _, _, err := n.entry(i); err != nil {
			return err
		}
	}
	n.heads = keyheads.Make(n.count, n.key)
	return nil
}

// key returns the key of an entry that was checked.
func (n *node) key(i int) []byte {
	b := n.payload[binary.LittleEndian.Uint32(n.offsets[i*indexOffsetLen:]):]
	length, k, _ := coding.Uvarint32(b)
	return b[k : k+int(length)]
}

// search returns the last entry whose key is at or before key, or −1 if all keys are after key.
func (n *node) search(key []byte) (i int) {
	if n.count == 0 || bytes.Compare(n.key(0), key) > 0 {
		return -1
	}
	i, _ = n.heads.Find(key, func(i int) (bool, error) { return bytes.Compare(n.key(i), key) <= 0, nil })
	return i
}

// findNode returns the last cblock whose key in the value index is at or before key; ok is false if
// all keys are after key.
func (r *Reader) findNode(key []byte) (p BlockPointer, ok bool, err error) {
	n, i, err := r.findEntry(key)
	if n == nil || err != nil {
		return p, false, err
	}
	_, p, err = n.entry(i)
	return p, err == nil, err
}

// findEntry returns the last entry of the leaves of the value index whose key is at or before key, by
// its leaf and its number there; leaf is nil if all keys are after key. It reads one node of each
// level of the tree. Unlike valueIndex, it does not compare all keys with one another. Source: cfile
// spec §8.5.
func (r *Reader) findEntry(key []byte) (leaf *node, i int, err error) {
	p := r.valueRoot
	for range maxTreeHeight {
		n, err := r.node(p)
		if err != nil {
			return nil, 0, err
		}
		i := n.search(key)
		if i < 0 {
			return nil, 0, nil
		}
		_, child, err := n.entry(i)
		if err == nil && (child.Size <= 0 || child.Offset < r.dataStart || int64(child.Size) > p.Offset-child.Offset) {
			err = fault.Corruptf("index: entry %d leads to %v: want bytes [%d,%d)", i, child, r.dataStart, p.Offset)
		}
		if err != nil {
			return nil, 0, r.at(p, err)
		}
		if !n.inner {
			return n, i, nil
		}
		p = child
	}
	return nil, 0, r.at(r.valueRoot, fault.Corruptf("index: more than %d levels", maxTreeHeight))
}

// loadNodes puts the root of the value index and the nodes below it into the cache for indexes, as
// far as they are in the tail of the file.
func (r *Reader) loadNodes() {
	root, err := r.node(r.valueRoot)
	if err != nil || !root.inner {
		return
	}
	end := r.size - int64(len(r.tail))
	for i := range root.count {
		_, p, err := root.entry(i)
		if err != nil || p.Offset < end {
			continue // before the tail, or not after the node before it, as in no valid file
		}
		if _, err := r.node(p); err != nil {
			return
		}
		end = p.end()
	}
}

// part is a decoded cblock that is not column data: an index, the dictionary, the zone map. It
// grows with the file, so the cache for indexes counts it and may drop it. Until then, the Reader
// has a direct reference, which takes less time than a lookup. See cache.Holder.
type part[T any] struct {
	value *T
	slot  *atomic.Pointer[part[T]] // the Reader's reference
	used  atomic.Bool
}

// Used implements cache.Holder.
func (p *part[T]) Used() bool { return p.used.Swap(false) }

// Dropped implements cache.Holder.
func (p *part[T]) Dropped() { p.slot.CompareAndSwap(p, nil) }

// loaded returns what load makes of the cblock at at, with its approximate memory. Without a cache
// for indexes, or if the cache declines it, the Reader keeps it: otherwise it would be read again
// for each cblock.
func loaded[T any](r *Reader, slot *atomic.Pointer[part[T]], at BlockPointer, number uint32,
	load func() (*T, int64, error)) (*T, error) {
	if x := present(r, slot, at, number); x != nil {
		return x, nil
	}
	r.load.Lock() // several goroutines would read it at a time
	defer r.load.Unlock()
	if x := present(r, slot, at, number); x != nil {
		return x, nil
	}
	x, bytes, err := load()
	if err != nil {
		return nil, err
	}
	p := &part[T]{value: x, slot: slot}
	slot.Store(p) // before the cache can drop it
	if r.indexes != nil {
		r.indexes.Put(r.partKey(at, number), p, bytes+nodeOverhead)
	}
	return x, nil
}

// present is loaded, or nil if that would have to load it.
func present[T any](r *Reader, slot *atomic.Pointer[part[T]], at BlockPointer, number uint32) *T {
	if p := slot.Load(); p != nil {
		if !p.used.Load() {
			p.used.Store(true)
		}
		return p.value
	}
	if r.indexes == nil {
		return nil
	}
	if v, ok := r.indexes.Get(r.partKey(at, number)); ok {
		return v.(*part[T]).value // of another Reader of the block
	}
	return nil
}

// partKey returns the key of a part of the cblock at p.
func (r *Reader) partKey(p BlockPointer, number uint32) cache.Key {
	return cache.Key{Block: r.id, Offset: uint64(p.Offset), Part: number}
}
