package hfile

import (
	"bytes"
	"encoding/binary"
	"math"
)

// maxWrittenLevels is how many levels of an index HBase writes at most.
const maxWrittenLevels = 16

// indexBuilder builds the data index: entries are collected into leaf blocks, which are written
// between the data blocks; the root, and the levels between it and the leaves, at the end of the
// file. It keeps the open leaf and an entry for each written one. Source: hfile spec §6.4.
type indexBuilder struct {
	blocks     *blockWriter
	maxBytes   int // size at which a leaf is written and above which the root is split
	minEntries int
	keyLen     func(dst []byte, n int) []byte // appends a key's length in root blocks

	leaf    indexChunk
	root    indexChunk
	entries int64 // of all leaves
	levels  int
	bytes   int64 // payloads of index blocks before compression
}

// indexChunk is the content of an index block.
type indexChunk struct {
	entries []indexChunkEntry
	keys    []byte
	rootLen int // number of bytes that appendRoot appends
}

type indexChunkEntry struct {
	blockAt
	keyEnd int   // end of the key in keys
	leaves int64 // in the root over leaves: entries of this leaf and of all before it
}

func (c *indexChunk) add(at blockAt, key []byte, leaves int64) {
	c.keys = append(c.keys, key...)
	c.entries = append(c.entries, indexChunkEntry{at, len(c.keys), leaves})
	c.rootLen += indexEntryLen + vintLen(int64(len(key))) + len(key)
}

func (c *indexChunk) clear() {
	c.entries, c.keys, c.rootLen = c.entries[:0], c.keys[:0], 0
}

func (c *indexChunk) key(i int) []byte {
	start := 0
	if i > 0 {
		start = c.entries[i-1].keyEnd
	}
	return c.keys[start:c.entries[i].keyEnd]
}

// nonRootLen returns the number of bytes that appendNonRoot appends.
func (c *indexChunk) nonRootLen() int {
	return indexCountLen + indexOffsetLen*(len(c.entries)+1) + indexEntryLen*len(c.entries) + len(c.keys)
}

// appendNonRoot appends the chunk as leaf and intermediate blocks have it.
func (c *indexChunk) appendNonRoot(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.entries)))
	dst = binary.BigEndian.AppendUint32(dst, 0)
	for i, e := range c.entries {
		dst = binary.BigEndian.AppendUint32(dst, uint32(indexEntryLen*(i+1)+e.keyEnd))
	}
	for i, e := range c.entries {
		dst = e.append(dst)
		dst = append(dst, c.key(i)...)
	}
	return dst
}

// append appends offset and size.
func (at blockAt) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(at.offset))
	return binary.BigEndian.AppendUint32(dst, uint32(at.size))
}

// appendRoot appends the chunk as root blocks have it.
func (c *indexChunk) appendRoot(dst []byte, keyLen func(dst []byte, n int) []byte) []byte {
	for i, e := range c.entries {
		dst = e.append(dst)
		dst = keyLen(dst, len(c.key(i)))
		dst = append(dst, c.key(i)...)
	}
	return dst
}

// vintKeyLen and uvarintKeyLen append the length of a key in a root block: as the format has it,
// and as hudi-io 1.1.1 wrote it.
func vintKeyLen(dst []byte, n int) []byte    { return appendVint(dst, int64(n)) }
func uvarintKeyLen(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func newIndexBuilder(blocks *blockWriter, o *WriterOptions) *indexBuilder {
	x := &indexBuilder{blocks: blocks, maxBytes: o.IndexBlockBytes, minEntries: o.IndexMinEntries,
		levels: 1, keyLen: vintKeyLen}
	if o.Like == Hudi111 {
		x.keyLen = uvarintKeyLen
	}
	return x
}

// add enters a data block.
func (x *indexBuilder) add(at blockAt, key []byte) {
	x.leaf.add(at, key, 0)
	x.entries++
}

// endLeaf writes the leaf if it is full or, when closing, there are others: a leaf that is the only
// one becomes the root.
func (x *indexBuilder) endLeaf(closing bool) error {
	switch {
	case len(x.leaf.entries) == 0:
		return nil
	case closing && len(x.root.entries) == 0:
		x.leaf, x.root = x.root, x.leaf
		return nil
	case !closing && x.leaf.nonRootLen() < x.maxBytes:
		return nil
	}
	return x.writeLeaf()
}

func (x *indexBuilder) writeLeaf() error {
	at, err := x.write(leafIndexBlock, x.leaf.appendNonRoot(nil))
	if err != nil {
		return err
	}
	x.root.add(at, x.leaf.key(0), x.entries)
	x.leaf.clear()
	x.levels = 2
	return nil
}

func (x *indexBuilder) write(kind blockKind, payload []byte) (blockAt, error) {
	x.bytes += int64(len(payload))
	return x.blocks.writePayload(kind, payload)
}

// writeLevels writes the intermediate levels.
func (x *indexBuilder) writeLevels() (midKey []byte, err error) {
	if x.levels == 1 {
		return nil, nil
	}
	midKey = x.midKey()
	for x.root.rootLen > x.maxBytes && len(x.root.entries) > x.minEntries && x.levels < maxWrittenLevels {
		if err := x.splitRoot(); err != nil {
			return nil, err
		}
		x.levels++
	}
	return midKey, nil
}

// splitRoot writes the root as intermediate blocks and makes a new root of their entries.
func (x *indexBuilder) splitRoot() error {
	var parent, inner indexChunk
	writeInner := func() error {
		at, err := x.write(innerIndexBlock, inner.appendNonRoot(nil))
		if err != nil {
			return err
		}
		parent.add(at, inner.key(0), 0)
		inner.clear()
		return nil
	}
	for i, e := range x.root.entries {
		inner.add(e.blockAt, x.root.key(i), 0)
		// i counts the entries of the whole level, not of this block, as HBase does.
		if i >= x.minEntries && inner.rootLen >= x.maxBytes {
			if err := writeInner(); err != nil {
				return err
			}
		}
	}
	if len(inner.entries) > 0 {
		if err := writeInner(); err != nil {
			return err
		}
	}
	x.root = parent
	return nil
}

// midKey returns where the middle entry of the leaves is: the end of the root of an index with
// several levels. Source: hfile spec §6.2.
func (x *indexBuilder) midKey() []byte {
	middle := (x.entries - 1) / 2
	var before int64
	for _, e := range x.root.entries {
		if middle < e.leaves {
			return binary.BigEndian.AppendUint32(e.append(make([]byte, 0, midKeyLen)), uint32(middle-before))
		}
		before = e.leaves
	}
	return nil
}

// writeRoot writes the root block.
func (x *indexBuilder) writeRoot(midKey []byte) error {
	_, err := x.write(rootIndexBlock, append(x.root.appendRoot(nil, x.keyLen), midKey...))
	return err
}

// appendSeparator appends a key S with left < S ≤ right that is as short as HBase makes it.
// left and right are neighbors of one family, left ≤ right. Source: hfile spec §6.5.
func appendSeparator(dst []byte, left, right Key) []byte {
	if !bytes.Equal(left.Row, right.Row) {
		return appendKey(dst, FirstOnRow(shortBetween(left.Row, right.Row)))
	}
	if !bytes.Equal(left.Qualifier, right.Qualifier) {
		qualifier := shortBetween(left.Qualifier, right.Qualifier)
		return appendKey(dst, Key{Row: right.Row, Family: right.Family, Qualifier: qualifier,
			Timestamp: math.MaxInt64, Type: Maximum})
	}
	return appendKey(dst, right)
}

// shortBetween returns a short s with left < s ≤ right, for left < right.
func shortBetween(left, right []byte) []byte {
	n := commonPrefix(left, right)
	s := bytes.Clone(right[:n+1])
	switch {
	case n == len(left):
		s[n] = 0
	case left[n]+1 < right[n]: // no overflow: left[n] < right[n]
		s[n] = left[n] + 1
	}
	return s
}
