package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyheads"
	"github.com/oribi-db/oribi/keyenc"
)

// valueIndex is the value tree as a flat list: cblock i has key i. Immutable.
//
// If all keys together exceed Reader.keyLimit, they are not kept in memory: a search reads them from
// their leaf, and common is empty.
type valueIndex struct {
	blocks []BlockPointer
	nodes  []BlockPointer
	heads  keyheads.Heads

	keys []byte // all keys, key i ending at ends[i]
	ends []uint32

	leaves    []BlockPointer // instead of keys
	leafFirst []int          // number of the first key of each leaf
}

// keyLimit returns how many bytes of keys may be kept in memory. This limit plus 32 bytes for each
// cblock keeps an index within the bound on a Reader's memory, however well the file compresses.
func (r *Reader) keyLimit() int {
	if r.keyLimitForTest > 0 {
		return r.keyLimitForTest
	}
	return int(min(1<<19+32*r.size, 1<<31-1))
}

// loadValues reads the value tree. Keys must not descend, except in delta files. Source: cfile spec
// §8.2, §12.3 item 37.
func (r *Reader) loadValues() (*valueIndex, int64, error) {
	x := new(valueIndex)
	_, unsorted := r.Metadata(DeltaStatsKey)
	limit, held := r.keyLimit(), true
	var last []byte
	var heads []uint64
	lastLeaf := -1
	nodes, err := r.walkTree(r.valueRoot, func(leaf int, key []byte, p BlockPointer) error {
		if !unsorted && len(x.blocks) > 0 && bytes.Compare(key, last) < 0 {
			return fault.Corruptf("value index: key %x follows %x", key, last)
		}
		last = append(last[:0], key...)
		if leaf != lastLeaf {
			x.leafFirst = append(x.leafFirst, len(x.blocks))
			lastLeaf = leaf
		}
		x.blocks, heads = append(x.blocks, p), append(heads, keyenc.Head(key))
		if held = held && len(x.keys)+len(key) <= limit; held {
			x.keys = append(x.keys, key...)
			x.ends = append(x.ends, uint32(len(x.keys)))
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	x.nodes = nodes
	if held {
		x.leafFirst = nil
		x.heads = keyheads.Make(len(x.ends), x.held)
	} else {
		x.keys, x.ends, x.heads = nil, nil, keyheads.Of(heads)
		x.leaves = nodes[len(nodes)-len(x.leafFirst):]
	}
	return x, x.bytes(), nil
}

// bytes returns the approximate memory of x.
func (x *valueIndex) bytes() int64 {
	return int64(pointerBytes*(cap(x.blocks)+cap(x.nodes))+8*cap(x.leafFirst)+4*cap(x.ends)+cap(x.keys)) + x.heads.Bytes()
}

// held returns key i if keys are kept in memory.
func (x *valueIndex) held(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.keys[from:x.ends[i]]
}

// key returns key i. It aliases x or new memory.
func (r *Reader) key(x *valueIndex, i int) ([]byte, error) {
	if x.leaves == nil {
		return x.held(i), nil
	}
	leaf := len(x.leaves) - 1
	for leaf > 0 && x.leafFirst[leaf] > i {
		leaf--
	}
	payload, _, err := r.readBlock(x.leaves[leaf], nil)
	if err != nil {
		return nil, err
	}
	n, err := parseNode(payload)
	if err == nil && i-x.leafFirst[leaf] >= n.count {
		err = fault.Corruptf("index: leaf now has %d entries, fewer than when it was loaded", n.count)
	}
	if err != nil {
		return nil, r.at(x.leaves[leaf], err)
	}
	key, _, err := n.entry(i - x.leafFirst[leaf])
	return key, err
}

// find returns the number of the last cblock whose key is at or before probe, −1 if the first key
// is after it. Source: cfile spec §8.5.
func (r *Reader) find(x *valueIndex, probe []byte) (int, error) {
	if len(x.blocks) == 0 {
		return -1, nil
	}
	first, err := r.key(x, 0)
	if err != nil || bytes.Compare(first, probe) > 0 {
		return -1, err
	}
	return x.heads.Find(probe, func(i int) (bool, error) {
		key, err := r.key(x, i)
		return err == nil && bytes.Compare(key, probe) <= 0, err
	})
}
