package hfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/internal/fault"
)

// Root index, meta index, and the chunk index of a Bloom filter: entries back to back; their number
// is in the trailer or before them. In an index of several levels the position of the middle key
// follows. Source: hfile spec §6.1, §6.2, §13.
//
//	width  field      meaning
//	8      offset     of the child block, big-endian
//	4      size       of the child block on disk, big-endian
//	vint   keyLength  Hudi 1.1.1: a varint as in protobuf, which differs from 128 on
//	…      key        of cells: see keyRowLen, or only row length and row; of meta blocks: the name
//
// The middle key: offset (8) and size (4) of its leaf block, number (4) of its entry there.
//
// The block of 130 bytes at offset 0, whose first row is "key1":
//
//	00 00 00 00 00 00 00 00  00 00 00 82  10  00 04 6b 65 79 31 00 7f ff ff ff ff ff ff ff 04
const (
	indexSizeOff   = 8  // file format: never change
	indexEntryLen  = 12 // file format: never change; without key length and key
	midKeyLen      = 16 // file format: never change
	midKeySizeOff  = 8  // file format: never change
	midKeyEntryOff = 12 // file format: never change
)

// A block of the index below the root: IDXINTE2 or IDXLEAF2. Source: hfile spec §6.3.
//
//	width      field    meaning
//	4          n        entries, big-endian, at least 1
//	4·(n+1)    offsets  of the entries, after this field; the last is the length of all entries
//	…          entries  as above without keyLength
//
// Rows "a" in 130 bytes at offset 0 and "bb" in 140 bytes at offset 130:
//
//	00 00 00 02  00 00 00 00  00 00 00 19  00 00 00 33
//	00 00 00 00 00 00 00 00  00 00 00 82  00 01 61 00 7f ff ff ff ff ff ff ff 04
//	00 00 00 00 00 00 00 82  00 00 00 8c  00 02 62 62 00 7f ff ff ff ff ff ff ff 04
const (
	indexCountLen  = 4 // file format: never change
	indexOffsetLen = 4 // file format: never change
)

// indexEntry is an entry of an index: a child block and its first key, or a key between the last
// one of the block before it and that.
type indexEntry struct {
	offset int64
	size   int32
	key    []byte
}

// indexEntryMemory is the size of an indexEntry in memory.
const indexEntryMemory = 40

// rootEntries reads n entries, with key lengths as Hadoop's integers, from the front of payload.
// Keys alias payload.
func rootEntries(payload []byte, n int) (entries []indexEntry, rest []byte, err error) {
	return readEntries(payload, n, vint)
}

// readEntries is rootEntries with the given form of key lengths.
func readEntries(
	payload []byte, n int, length func([]byte) (int64, int),
) (entries []indexEntry, rest []byte, err error) {
	if n < 0 || int64(n) > int64(len(payload)/(indexEntryLen+1)) {
		return nil, nil, fault.Corruptf("index: %d entries in %d bytes", n, len(payload))
	}
	entries = make([]indexEntry, n)
	rest = payload
	for i := range entries {
		if len(rest) < indexEntryLen {
			return nil, nil, fault.Corruptf("index: entry %d of %d: %d bytes left", i, n, len(rest))
		}
		e := &entries[i]
		e.offset = int64(binary.BigEndian.Uint64(rest))
		e.size = int32(binary.BigEndian.Uint32(rest[indexSizeOff:]))
		rest = rest[indexEntryLen:]
		l, w := length(rest)
		if w <= 0 || l < 0 || l > int64(len(rest)-w) {
			return nil, nil,
				fault.Corruptf("index: entry %d of %d: key of %d bytes, %d left", i, n, l, len(rest)-max(w, 0))
		}
		e.key = rest[w : w+int(l) : w+int(l)]
		rest = rest[w+int(l):]
	}
	return entries, rest, nil
}

// pbVarint reads a number as in protobuf, in the form that readEntries needs.
func pbVarint(b []byte) (v int64, n int) {
	u, n := protowire.ConsumeVarint(b)
	if n < 0 || u > math.MaxInt32 {
		return 0, 0
	}
	return int64(u), n
}

// parseIndex reads a root or meta index of n entries. Hudi releases wrote key lengths in two forms:
// where the first gives no index that check accepts, the second is tried. check is called with the
// entries and the bytes after them.
func parseIndex(
	payload []byte, n int, check func(entries []indexEntry, rest []byte) error,
) ([]indexEntry, []byte, error) {
	parse := func(length func([]byte) (int64, int)) (entries []indexEntry, rest []byte, err error) {
		if entries, rest, err = readEntries(payload, n, length); err == nil {
			err = check(entries, rest)
		}
		return entries, rest, err
	}
	entries, rest, err := parse(vint)
	if err != nil {
		if entries, rest, err2 := parse(pbVarint); err2 == nil {
			return entries, rest, nil
		}
		return nil, nil, err
	}
	return entries, rest, nil
}

// checkRoot checks the root index of a file with the given number of levels, whose blocks end at
// end. rest has the bytes after the entries.
func checkRoot(entries []indexEntry, rest []byte, levels int, end int64) error {
	if len(rest) != 0 && (len(rest) != midKeyLen || levels == 1) {
		return fault.Corruptf("index: %d bytes after %d entries", len(rest), len(entries))
	}
	last := int64(0)
	for i, e := range entries {
		if err := e.check(last, end); err != nil {
			return fmt.Errorf("index: entry %d: %w", i, err)
		}
		last = e.offset + int64(e.size)
	}
	return nil
}

// check checks an entry that names a block of cells or of the index, from byte first to byte end.
func (e indexEntry) check(first, end int64) error {
	if e.offset < first || e.size < headerLen || int64(e.size) > end || e.offset > end-int64(e.size) {
		return fault.Corruptf("block of %d bytes at byte %d is outside of [%d, %d)", e.size, e.offset, first, end)
	}
	if _, ok := parseIndexKey(e.key); !ok {
		return fault.Corruptf("malformed key of %d bytes", len(e.key))
	}
	return nil
}

// parseIndexKey reads the key of an index entry: a key of a cell, or only row length and row, as
// Hudi writes them: the key of a Hudi record of that row. Its slices alias b.
func parseIndexKey(b []byte) (Key, bool) {
	if k, ok := parseKey(b); ok {
		return k, true
	}
	if row, ok := parseShortKey(b); ok {
		return Key{Row: row, Timestamp: math.MaxInt64, Type: Put}, true
	}
	return Key{}, false
}

// parseShortKey reads a key that ends after the row.
func parseShortKey(b []byte) (row []byte, ok bool) {
	if len(b) < keyRowLen {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if n > MaxRowBytes || n != len(b)-keyRowLen {
		return nil, false
	}
	return b[keyRowLen:], true
}

// checkIndexBlock checks the payload of a block of the index below the root and returns the number
// of its entries. end is where the blocks of the file end.
func checkIndexBlock(payload []byte, end int64) (n int, err error) {
	if len(payload) < indexCountLen {
		return 0, fault.Corruptf("index: %d bytes are too short", len(payload))
	}
	count := int32(binary.BigEndian.Uint32(payload))
	perEntry := indexOffsetLen + indexEntryLen
	if count < 1 || int64(count) > int64(len(payload)/perEntry) {
		return 0, fault.Corruptf("index: %d entries in %d bytes", count, len(payload))
	}
	n = int(count)
	all := len(payload) - indexCountLen - indexOffsetLen*(n+1)
	from, last := uint32(0), int64(0)
	for i := range n {
		start := binary.BigEndian.Uint32(payload[indexCountLen+indexOffsetLen*i:])
		next := binary.BigEndian.Uint32(payload[indexCountLen+indexOffsetLen*(i+1):])
		if start != from || next < start || next-start < indexEntryLen || int64(next) > int64(all) {
			return 0, fault.Corruptf("index: entry %d at bytes [%d, %d) of %d", i, start, next, all)
		}
		from = next
		e := nthEntry(payload, n, i)
		if err := e.check(last, end); err != nil {
			return 0, fmt.Errorf("index: entry %d: %w", i, err)
		}
		last = e.offset + int64(e.size)
	}
	if int64(from) != int64(all) {
		return 0, fault.Corruptf("index: %d bytes of entries, want %d", from, all)
	}
	return n, nil
}

// nthEntry returns entry i of a checked block of the index below the root, which has n entries.
func nthEntry(payload []byte, n, i int) indexEntry {
	entries := payload[indexCountLen+indexOffsetLen*(n+1):]
	b := entries[binary.BigEndian.Uint32(
		payload[indexCountLen+indexOffsetLen*i:]):binary.BigEndian.Uint32(payload[indexCountLen+indexOffsetLen*(i+1):])]
	return indexEntry{
		offset: int64(binary.BigEndian.Uint64(b)),
		size:   int32(binary.BigEndian.Uint32(b[indexSizeOff:])),
		key:    b[indexEntryLen:len(b):len(b)],
	}
}

// target is a key to look for.
type target struct {
	Key
	indexRows bool // compare only rows with keys of the index
	cellRows  bool // compare only rows with keys of cells
}

// after reports whether the block of an index entry begins after the target, judging by its key,
// which has been checked.
func (t *target) after(key []byte) bool {
	if t.indexRows {
		return bytes.Compare(indexRow(key), t.Row) > 0
	}
	k, _ := parseIndexKey(key)
	return t.Compare(k) < 0
}

// indexRow returns the row of a key of the index, which has been checked.
func indexRow(key []byte) []byte { return key[keyRowLen : keyRowLen+int(binary.BigEndian.Uint16(key))] }

// floorRoot returns the last entry of the root whose key is not after t, or -1.
func (r *Reader) floorRoot(t *target) int {
	if len(r.root) == 0 || t.after(r.root[0].key) {
		return -1
	}
	i, _ := r.heads.Find(t.Row, func(i int) (bool, error) { return !t.after(r.root[i].key), nil })
	return i
}

// floorBlock is floorRoot for a block of the index below the root.
func floorBlock(b *loadedBlock, t *target) int {
	return sort.Search(b.entries, func(i int) bool { return t.after(nthEntry(b.payload, b.entries, i).key) }) - 1
}
