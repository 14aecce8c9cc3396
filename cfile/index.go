package cfile

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyheads"
	"github.com/oribi-db/oribi/internal/kudupb"
)

// Payload of an index cblock: a node of a tree. Source: cfile spec §8.1.
//
//	offset   width    field    meaning
//	0        …        entries  back to back
//	…        4 each   offsets  of each entry, from the start of the payload
//	…        …        trailer  IndexBlockTrailerPB: count of entries, 0 for a leaf or 1 for an inner node
//	…        4        length   bytes of the trailer
//
// An entry:
//
//	offset   width    field    meaning
//	0        1–5      keyLen   base 128
//	…        keyLen   key      ordinal index: ordinal of the first row, 4 bytes big-endian;
//	                           value index: encoded first value, perhaps cut
//	…        1–10     offset   base 128: of the cblock that the entry leads to
//	…        1–5      size     base 128: its stored bytes
//
// One entry, ordinal 0, 41 bytes at byte 16: 04 00 00 00 00 10 29 00 00 00 00 08 01 10 00 04 00 00
// 00
const (
	indexOffsetLen  = 4  // file format: never change
	indexTrailerLen = 4  // width of length; file format: never change
	minTrailer      = 4  // bytes of the shortest trailer: two fields of two bytes
	minEntry        = 3  // bytes of the shortest entry: empty key, one byte each for offset and size
	maxTreeHeight   = 32 // levels of a tree; nodes of two entries already reach 2^32 cblocks
	ordinalKeyLen   = 4
)

// node is a parsed index cblock.
type node struct {
	payload []byte
	offsets []byte // little-endian, 4 bytes for each entry
	count   int
	inner   bool

	// Of a node that Reader.node returns.
	at    BlockPointer
	heads keyheads.Heads
}

// parseNode checks the trailer and the offsets of an index cblock; entry checks each entry. Source:
// cfile spec §12.3 items 30 to 33.
func parseNode(payload []byte) (node, error) {
	if len(payload) < minTrailer+indexTrailerLen {
		return node{}, fault.Corruptf("index: %d bytes are too short", len(payload))
	}
	rest := len(payload) - indexTrailerLen
	length := binary.LittleEndian.Uint32(payload[rest:])
	if length < minTrailer || int64(length) > int64(rest) {
		return node{}, fault.Corruptf("index: trailer of %d bytes, only %d left", length, rest)
	}
	rest -= int(length)
	var trailer kudupb.IndexBlockTrailerPB
	if err := proto.Unmarshal(payload[rest:rest+int(length)], &trailer); err != nil {
		return node{}, fault.Corruptf("index: trailer: %v", err)
	}
	count, kind := trailer.GetNumEntries(), trailer.GetType()
	leaf, inner := int32(kudupb.IndexBlockTrailerPB_LEAF), int32(kudupb.IndexBlockTrailerPB_INTERNAL)
	switch {
	case kind != leaf && kind != inner:
		return node{}, fault.Corruptf("index: unknown node type %d", kind)
	case count < 0 || int64(count)*(minEntry+indexOffsetLen) > int64(rest):
		return node{}, fault.Corruptf("index: %d entries do not fit in %d bytes", count, rest)
	}
	entries := rest - int(count)*indexOffsetLen
	return node{payload: payload[:entries:entries], offsets: payload[entries:rest], count: int(count),
		inner: kind == inner}, nil
}

// bounds returns the position of entry i in the payload. Entries follow one another without gaps.
func (n *node) bounds(i int) (from, to int, err error) {
	first := binary.LittleEndian.Uint32(n.offsets[i*indexOffsetLen:])
	last := uint32(len(n.payload))
	if i+1 < n.count {
		last = binary.LittleEndian.Uint32(n.offsets[(i+1)*indexOffsetLen:])
	}
	if first >= last || int64(last) > int64(len(n.payload)) || i == 0 && first != 0 {
		return 0, 0, fault.Corruptf("index: entry %d in bytes [%d,%d) of %d", i, first, last, len(n.payload))
	}
	return int(first), int(last), nil
}

// entry parses entry i. The key aliases the payload. Source: cfile spec §12.3 item 34.
func (n *node) entry(i int) (key []byte, p BlockPointer, err error) {
	from, to, err := n.bounds(i)
	if err != nil {
		return nil, p, err
	}
	b := n.payload[from:to]
	length, k, ok := coding.Uvarint32(b)
	if !ok || uint64(length) > uint64(len(b)-k) {
		return nil, p, fault.Corruptf("index: entry %d: key overruns its %d bytes", i, len(b))
	}
	b = b[k:]
	key, b = b[:length:length], b[length:]
	offset, k, ok := coding.Uvarint64(b)
	if !ok || offset > math.MaxInt64 {
		return nil, p, fault.Corruptf("index: entry %d: malformed offset", i)
	}
	size, m, ok := coding.Uvarint32(b[k:])
	if !ok || size > math.MaxInt32 || k+m != len(b) {
		return nil, p, fault.Corruptf("index: entry %d: malformed size", i)
	}
	return key, BlockPointer{int64(offset), int32(size)}, nil
}

// treeEntry is an entry of one level, to be checked against its child node.
type treeEntry struct {
	p   BlockPointer
	key uint64 // length and CRC of the key, which must be the first key of the child
}

// keyMark returns a fingerprint of a key that detects accidental damage. A deliberate collision
// gives an attacker nothing.
func keyMark(key []byte) uint64 { return uint64(len(key))<<32 | uint64(coding.CRC32C(key)) }

// walkTree calls fn for all leaf entries of the tree at root, in order, and returns the pointers of
// its nodes, inner nodes before leaves. leaf is the number of the leaf.
//
// The tree is read level by level, with one node in memory at a time. On each level pointers ascend
// and do not overlap, and every child is before its parent. Therefore a tree has fewer nodes than
// the file has bytes, and no cycles. Source: cfile spec §8.3, §12.2, §12.3 items 35 and 36.
func (r *Reader) walkTree(root BlockPointer,
	fn func(leaf int, key []byte, p BlockPointer) error) (nodes []BlockPointer, err error) {
	level := []treeEntry{{p: root}}
	for height := 1; len(level) > 0; height++ {
		if height > maxTreeHeight {
			return nil, r.at(root, fault.Corruptf("index: more than %d levels", maxTreeHeight))
		}
		if level, err = r.walkLevel(level, height == 1, &nodes, fn); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// walkLevel reads the nodes of one level and returns the entries of the next; there are none below
// the leaves.
func (r *Reader) walkLevel(level []treeEntry, isRoot bool, nodes *[]BlockPointer,
	fn func(leaf int, key []byte, p BlockPointer) error) (next []treeEntry, err error) {
	inner := false
	end := r.dataStart
	for i, t := range level {
		payload, _, err := r.readBlock(t.p, nil)
		if err != nil {
			return nil, err
		}
		n, err := parseNode(payload)
		if err != nil {
			return nil, r.at(t.p, err)
		}
		if i == 0 {
			inner = n.inner
		}
		if n.inner != inner || n.count == 0 && (inner || !isRoot) {
			return nil, r.at(t.p, fault.Corruptf("index: node of %d entries, inner = %v, want %v", n.count,
				n.inner, inner))
		}
		*nodes = append(*nodes, t.p)
		for k := range n.count {
			key, p, err := n.entry(k)
			if err == nil && (p.Offset < end || p.Size <= 0 || int64(p.Size) > t.p.Offset-p.Offset) {
				err = fault.Corruptf("index: entry %d leads to %v: want bytes [%d,%d)", k, p, end, t.p.Offset)
			}
			if err == nil && k == 0 && !isRoot && keyMark(key) != t.key {
				err = fault.Corruptf("index: first key %x differs from the parent's key", key)
			}
			if err == nil && !inner {
				err = fn(i, key, p)
			}
			if err != nil {
				return nil, r.at(t.p, err)
			}
			end = p.end()
			if inner {
				next = append(next, treeEntry{p, keyMark(key)})
			}
		}
	}
	return next, nil
}

// ordinalIndex is the ordinal tree as a flat list: cblock i begins with row first[i]. Immutable.
type ordinalIndex struct {
	blocks []BlockPointer
	first  []uint32
	nodes  []BlockPointer
}

// loadOrdinals reads the ordinal tree. Source: cfile spec §8.2, §12.3 item 37.
func (r *Reader) loadOrdinals() (*ordinalIndex, int64, error) {
	x := new(ordinalIndex)
	nodes, err := r.walkTree(r.ordinalRoot, func(_ int, key []byte, p BlockPointer) error {
		if len(key) != ordinalKeyLen {
			return fault.Corruptf("ordinal index: key of %d bytes, want %d", len(key), ordinalKeyLen)
		}
		first, n := binary.BigEndian.Uint32(key), len(x.first)
		if n == 0 && first != 0 || n > 0 && first <= x.first[n-1] || int64(first) >= r.info.Rows {
			return fault.Corruptf("ordinal index: cblock %d begins with row %d in a file of %d rows", n,
				first, r.info.Rows)
		}
		x.first, x.blocks = append(x.first, first), append(x.blocks, p)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if len(x.first) == 0 && r.info.Rows > 0 {
		return nil, 0, r.corruptf("ordinal index: no cblock for %d rows", r.info.Rows)
	}
	x.nodes = nodes
	return x, int64(pointerBytes*(cap(x.blocks)+cap(x.nodes)) + 4*cap(x.first)), nil
}

// pointerBytes is the memory of a BlockPointer.
const pointerBytes = 16

// find returns the number of the cblock that contains row ord, which is below the number of rows.
func (x *ordinalIndex) find(ord uint32) int {
	lo, hi := 0, len(x.first) // first[lo] ≤ ord < first[hi]
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if x.first[mid] <= ord {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
