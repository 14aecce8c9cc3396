package hfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Sizes of a chunk that HBase chooses by default. Source: measured on HBase's own files; the spec
// has none.
const (
	bloomErrorRate  = 0.01 // of false positives in a full chunk
	bloomBlockBytes = 128 << 10

	bloomFoldUnit      = 128      // a chunk's size in bytes is a multiple, so that it can be halved
	maxBloomBlockBytes = 32 << 20 // a reader's default limit for a block
)

// bloomBuilder makes one of HBase's compound Bloom filters: chunks as keys arrive, then the
// metadata. It keeps the open chunk, the chunks that are full but not yet written, and the index of
// the written ones.
//
//	b.add(key)                 // for each cell, ascending; equal keys count once
//	for b.ready(closing) {     // at the end of each data block; closing at the end of the file
//		chunk := b.takeChunk() // payload of a block BLMFBLK2
//		…
//		b.chunkWritten(offset, size)
//	}
//	b.meta()                   // payload of the block BLMFMET2
//
// It is for use by one goroutine. Source: hfile spec §7.3.
type bloomBuilder struct {
	kind        BloomKind
	hash        BloomHash
	prefixBytes int
	chunkBytes  int // of a chunk before it is folded
	chunkKeys   int // capacity of a chunk
	hashes      int

	key, next []byte // last key added, as hashed; scratch for the next one

	open    bloomChunk   // open.keys is 0 if no chunk is open
	waiting []bloomChunk // full, not yet taken
	taken   bloomChunk   // until chunkWritten
	free    []byte       // bits of a written chunk, for reuse

	index                     []byte // entries of written chunks
	chunks                    int32
	totalBytes, totalCapacity int64
	totalKeys                 int64
}

// bloomChunk is the bits of consecutive keys.
type bloomChunk struct {
	bits  []byte
	first []byte // first key, as in the chunk index
	keys  int
}

// newBloomBuilder returns a builder for a filter of the given kind, not BloomNone. blockBytes is
// the size of a chunk, rounded up to a multiple of 128; 0 is HBase's default of 128 KiB.
// prefixBytes is the length of the prefixes of kind BloomRowPrefix.
func newBloomBuilder(kind BloomKind, hash BloomHash, blockBytes, prefixBytes int) (*bloomBuilder, error) {
	if blockBytes == 0 {
		blockBytes = bloomBlockBytes
	}
	switch {
	case kind != BloomRow && kind != BloomRowCol && kind != BloomRowPrefix:
		return nil, fmt.Errorf("hfile: unknown %v", kind)
	case hash > Murmur3:
		return nil, fmt.Errorf("hfile: unknown Bloom %v", hash)
	case blockBytes < 1 || blockBytes > maxBloomBlockBytes:
		return nil, fmt.Errorf("hfile: Bloom blocks of %d bytes, want 1 to %d", blockBytes, maxBloomBlockBytes)
	case kind == BloomRowPrefix && (prefixBytes < 1 || prefixBytes > MaxRowBytes):
		return nil, fmt.Errorf("hfile: Bloom prefixes of %d bytes, want 1 to %d", prefixBytes, MaxRowBytes)
	}
	rate := float32(bloomErrorRate) // as in HBase, whose rounding decides the capacity
	if kind == BloomRowCol {
		// A lookup of HBase asks twice: for the column and for deletes of the family.
		rate = float32(1 - math.Sqrt(float64(1-rate)))
	}
	b := &bloomBuilder{kind: kind, hash: hash, prefixBytes: prefixBytes, key: []byte{}, next: []byte{}}
	b.chunkBytes = (blockBytes + bloomFoldUnit - 1) / bloomFoldUnit * bloomFoldUnit
	b.hashes, b.chunkKeys = bloomCapacity(8*b.chunkBytes, float64(rate))
	return b, nil
}

// bloomCapacity returns the number of hashes for a chunk, and how many keys give the error rate.
// It rounds as HBase does.
func bloomCapacity(bits int, rate float64) (hashes, keys int) {
	ideal := int(float64(bits) * (math.Ln2 * math.Ln2 / -math.Log(rate)))
	hashes = int(math.Ceil(math.Ln2 * float64(bits/ideal)))
	return hashes, int(-float64(bits) / float64(hashes) * math.Log(1-math.Exp(math.Log(rate)/float64(hashes))))
}

// add adds the key of a cell. Keys must ascend. The filter contains only a part of a key, for
// example the row; a key whose part equals the previous key's is ignored.
func (b *bloomBuilder) add(k Key) {
	key := bloomKey(b.next[:0], b.kind, b.prefixBytes, k.Row, k.Qualifier)
	b.next = key
	if b.totalKeys > 0 && bytes.Equal(key, b.key) {
		return
	}
	b.key, b.next = key, b.key
	if b.open.keys == 0 {
		b.open = bloomChunk{bits: b.free, first: bytes.Clone(key)}
		if b.free = nil; b.open.bits == nil {
			b.open.bits = make([]byte, b.chunkBytes)
		}
	}
	bloomAdd(b.open.bits, b.hash, b.hashes, key)
	b.open.keys++
	b.totalKeys++
	if b.open.keys == b.chunkKeys {
		b.closeChunk()
	}
}

// bloomKey appends what a filter contains of a row and qualifier.
//
//	kind            bytes
//	ROW             the row
//	ROWPREFIX_…     the first bytes of the row
//	ROWCOL          the first possible key of the column, without family (see appendKey)
//
// Row "r", qualifier "q", ROWCOL:
//
//	00 01  72  00  71  7f ff ff ff ff ff ff ff  ff
func bloomKey(dst []byte, kind BloomKind, prefixBytes int, row, qualifier []byte) []byte {
	switch kind {
	case BloomRowCol:
		return appendKey(dst, Key{Row: row, Qualifier: qualifier, Timestamp: math.MaxInt64, Type: Maximum})
	case BloomRowPrefix:
		return append(dst, row[:min(prefixBytes, len(row))]...)
	}
	return append(dst, row...)
}

// closeChunk queues the open chunk. A chunk less than half full is folded: its two halves are
// combined, so that a bit's position modulo the new size remains valid.
func (b *bloomBuilder) closeChunk() {
	c := b.open
	b.open = bloomChunk{}
	capacity := b.chunkKeys
	for len(c.bits)%2 == 0 && capacity > 2*c.keys {
		half := len(c.bits) / 2
		for i, bits := range c.bits[half:] {
			c.bits[i] |= bits
		}
		c.bits = c.bits[:half]
		capacity /= 2
	}
	b.totalBytes += int64(len(c.bits))
	b.totalCapacity += int64(capacity)
	b.waiting = append(b.waiting, c)
}

// ready reports whether a chunk must be written now. closing also closes the open chunk: there are
// no further keys.
func (b *bloomBuilder) ready(closing bool) bool {
	if closing && b.open.keys > 0 {
		b.closeChunk()
	}
	return len(b.waiting) > 0
}

// takeChunk returns the bits of the oldest chunk that is ready. They are valid until chunkWritten,
// which must be the next call.
func (b *bloomBuilder) takeChunk() []byte {
	b.taken = b.waiting[0]
	b.waiting[0] = bloomChunk{}
	b.waiting = b.waiting[1:]
	return b.taken.bits
}

// chunkWritten enters the block with the chunk that was taken in the index.
func (b *bloomBuilder) chunkWritten(offset int64, size int32) {
	b.index = binary.BigEndian.AppendUint64(b.index, uint64(offset))
	b.index = binary.BigEndian.AppendUint32(b.index, uint32(size))
	b.index = appendVint(b.index, int64(len(b.taken.first)))
	b.index = append(b.index, b.taken.first...)
	b.chunks++
	if bits := b.taken.bits; len(bits) == b.chunkBytes {
		clear(bits)
		b.free = bits
	}
	b.taken = bloomChunk{}
}

// meta returns the metadata, nil if no key was added. All chunks must have been written.
func (b *bloomBuilder) meta() []byte {
	if b.totalKeys == 0 {
		return nil
	}
	m := bloomMeta{hash: b.hash, hashes: b.hashes, bytes: b.totalBytes, keys: b.totalKeys,
		capacity: b.totalCapacity, chunks: b.chunks}
	if b.kind == BloomRowCol {
		m.comparator = comparatorBloom
	}
	return append(m.append(nil), b.index...)
}

// lastKey returns the last key added, as file info has it; nil if no key was added.
func (b *bloomBuilder) lastKey() []byte {
	if b.totalKeys == 0 {
		return nil
	}
	return b.key
}
