package cfile

import (
	"bytes"
	"sort"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
)

// A file with cblocks of a few kilobytes has large indexes: of a row file, one part in a hundred. A
// Reader with ReaderOptions.Indexes does not keep them. It keeps them in the cache: the value index
// in nodes, which are searched as they are stored, and the ordinal index as a list.

// keyedNodeBytes is the size of a node of the value index of a Keyed file. A lookup beyond the
// cache reads one.
const keyedNodeBytes = 8 << 10

// maxLateLeaves is how many bytes of leaves of a Keyed file's value index are kept to be written
// side by side at its end, where one read gets all of them.
const maxLateLeaves = 1 << 20

// nodeOverhead is the size of a node apart from its payload, or of an ordinal index apart from its
// entries.
const nodeOverhead = 128

// node returns the index node at p, through the cache for indexes if there is one.
func (r *Reader) node(p BlockPointer) (*node, error) {
	key := cache.Key{Block: r.id, Offset: uint64(p.Offset), Part: partNode}
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
	if err != nil {
		return nil, r.at(p, err)
	}
	n.at = p
	if r.indexes != nil {
		r.indexes.Put(key, &n, int64(cap(payload))+nodeOverhead)
	} else {
		r.lastNode.Store(&n)
	}
	return &n, nil
}

// search returns the last entry whose key is at or before key, −1 if there is none.
func (n *node) search(key []byte) (i int, err error) {
	i = sort.Search(n.count, func(i int) bool {
		at, _, bad := n.entry(i)
		if bad != nil {
			err = bad
		}
		return bytes.Compare(at, key) > 0
	})
	return i - 1, err
}

// findNode returns the last cblock whose key in the value index is at or before key; ok is false if
// there is none. It reads one node of each level of the tree. Unlike valueIndex, it does not compare
// all keys with one another. Source: cfile spec §8.5.
func (r *Reader) findNode(key []byte) (p BlockPointer, ok bool, err error) {
	p = r.valueRoot
	for range maxTreeHeight {
		n, err := r.node(p)
		if err != nil {
			return p, false, err
		}
		i, err := n.search(key)
		if err == nil && i < 0 {
			return p, false, nil
		}
		var child BlockPointer
		if err == nil {
			_, child, err = n.entry(i)
		}
		if err == nil && (child.Size <= 0 || child.Offset < r.dataStart || int64(child.Size) > p.Offset-child.Offset) {
			err = fault.Corruptf("index: entry %d leads to %v: want bytes [%d,%d)", i, child, r.dataStart, p.Offset)
		}
		if err != nil {
			return p, false, r.at(p, err)
		}
		if p = child; !n.inner {
			return p, true, nil
		}
	}
	return p, false, r.at(r.valueRoot, fault.Corruptf("index: more than %d levels", maxTreeHeight))
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

// cachedOrdinals returns the ordinal tree through the cache for indexes.
func (r *Reader) cachedOrdinals() (*ordinalIndex, error) {
	key := cache.Key{Block: r.id, Offset: uint64(r.ordinalRoot.Offset), Part: partOrdinals}
	if v, ok := r.indexes.Get(key); ok {
		return v.(*ordinalIndex), nil
	}
	r.load.Lock() // several goroutines would read it at a time
	defer r.load.Unlock()
	if v, ok := r.indexes.Get(key); ok {
		return v.(*ordinalIndex), nil
	}
	x, err := r.loadOrdinals()
	if err == nil {
		r.indexes.Put(key, x, int64(16*(cap(x.blocks)+cap(x.nodes))+4*cap(x.first))+nodeOverhead)
	}
	return x, err
}
