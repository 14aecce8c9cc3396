package hfile

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// Metadata of a compound Bloom filter, the payload of a block BLMFMET2 or DFBLMET2. Integers are
// big-endian.
//
//	width  field       meaning
//	4      version     3
//	8      bytes       total size of the chunks
//	4      hashes      number of hashes
//	4      hash        hash function: a BloomHash
//	8      keys        number of keys
//	8      capacity    number of keys for which the chunks have room
//	4      chunks      number of chunks
//	vint   n           length of comparator; 0 unless the kind is ROWCOL
//	n      comparator  class name
//	…      index       an entry for each chunk, as in the root index; its key is the chunk's first
//
// A chunk, the payload of a block BLMFBLK2, contains bits: bit p is bit p mod 8 of byte p/8. A key
// sets the bits |(h1 + i·h2) rem n| of its chunk for i from 0 to hashes-1, where n is the number of
// bits, h1 the hash of the key with seed 0, and h2 that with seed h1. All arithmetic has 32 bits
// and wraps around; rem has the sign of the dividend.
//
// ROW, 7 Murmur hashes, one chunk of 8 bytes in a block of 45 bytes at byte 15876, which starts
// with row "r" and contains 5 of at most 6 keys:
//
//	00 00 00 03 | 00 00 00 00 00 00 00 08 | 00 00 00 07 | 00 00 00 01 | 00 00 00 00 00 00 00 05
//	00 00 00 00 00 00 00 06 | 00 00 00 01 | 00 | 00 00 00 00 00 00 3e 04 00 00 00 2d 01 72
//
// Source: hfile spec §7.3.
const (
	bloomMetaVersion  = 3                                            // file format: never change
	bloomMetaFixedLen = 40                                           // file format: never change; up to chunks
	comparatorBloom   = "org.apache.hadoop.hbase.CellComparatorImpl" // file format: never change; of kind ROWCOL
)

// maxBloomHashes is more than any error rate needs: 1075 for the smallest positive float64.
const maxBloomHashes = 1100

// bloomMeta is the metadata up to the index.
type bloomMeta struct {
	bytes, keys, capacity int64
	hashes                int
	hash                  BloomHash
	chunks                int32
	comparator            string
}

func (m bloomMeta) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, bloomMetaVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.bytes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.hashes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.hash))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.keys))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.capacity))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.chunks))
	dst = appendVint(dst, int64(len(m.comparator)))
	return append(dst, m.comparator...)
}

// parseBloomMeta parses the metadata and returns the bytes of the index.
func parseBloomMeta(b []byte) (m bloomMeta, index []byte, err error) {
	if len(b) < 4 {
		return m, nil, fault.Corruptf("%d bytes are too short", len(b))
	}
	if version := int32(binary.BigEndian.Uint32(b)); version != bloomMetaVersion {
		return m, nil, fault.Unsupportedf("version %d", version)
	}
	if len(b) < bloomMetaFixedLen {
		return m, nil, fault.Corruptf("%d bytes are too short", len(b))
	}
	m.bytes = int64(binary.BigEndian.Uint64(b[4:]))
	hashes := int32(binary.BigEndian.Uint32(b[12:]))
	hash := int32(binary.BigEndian.Uint32(b[16:]))
	m.keys = int64(binary.BigEndian.Uint64(b[20:]))
	m.capacity = int64(binary.BigEndian.Uint64(b[28:]))
	m.chunks = int32(binary.BigEndian.Uint32(b[36:]))
	if hashes < 1 || hashes > maxBloomHashes {
		return m, nil, fault.Corruptf("%d hashes, want 1 to %d", hashes, maxBloomHashes)
	}
	if hash < 0 || hash > int32(Murmur3) {
		return m, nil, fault.Unsupportedf("hash function %d", hash)
	}
	m.hashes, m.hash = int(hashes), BloomHash(hash)
	if m.bytes < 0 || m.keys < 0 || m.capacity < 0 || m.chunks < 0 {
		return m, nil, fault.Corruptf("negative count: %d bytes, %d keys of %d, %d chunks",
			m.bytes, m.keys, m.capacity, m.chunks)
	}
	b = b[bloomMetaFixedLen:]
	length, n := vint(b)
	if n == 0 || length < 0 || length > int64(len(b)-n) {
		return m, nil, fault.Corruptf("comparator of %d bytes, %d are left", length, len(b)-n)
	}
	m.comparator = string(b[n : n+int(length)])
	return m, b[n+int(length):], nil
}

// bloomAdd sets the bits of a key.
func bloomAdd(bits []byte, hash BloomHash, hashes int, key []byte) {
	n := int32(8 * len(bits))
	h := hashBytes(hash, key, 0)
	step := hashBytes(hash, key, h)
	for range hashes {
		setBloomBit(bits, bloomPosition(h, n))
		h += step
	}
}

// bloomContains reports whether all bits of a key are set.
func bloomContains(bits []byte, hash BloomHash, hashes int, key []byte) bool {
	n := int32(8 * len(bits))
	h := hashBytes(hash, key, 0)
	step := hashBytes(hash, key, h)
	for range hashes {
		if !bloomBit(bits, bloomPosition(h, n)) {
			return false
		}
		h += step
	}
	return true
}
