package hfile

import (
	"encoding/binary"
	"iter"

	"github.com/oribi-db/oribi/internal/fault"
)

// BlockInfo describes a block of a file.
type BlockInfo struct {
	Offset           int64
	Type             string // the magic, such as "DATABLK*"
	Size             int    // of the whole block in the file
	UncompressedSize int    // of the payload
	PrevOffset       int64  // as stored: of the previous block of this type, or -1; a hint
	Checksum         Checksum
	BytesPerChecksum int
	DataSize         int    // of header and stored payload: Size without the checksums
	Payload          []byte // uncompressed; valid until the next step of the iteration
}

// Blocks returns all blocks in the order of the file, from byte 0 to the trailer. Every block is
// verified and uncompressed; the cache is not used. The iteration ends with the first error.
func (r *Reader) Blocks() iter.Seq2[BlockInfo, error] {
	return func(yield func(BlockInfo, error) bool) {
		var (
			b   loadedBlock
			buf blockBuffer
		)
		for at := int64(0); at < r.end; at += int64(b.header.size) {
			h, err := r.headerAt(at)
			if err == nil {
				err = r.loadInto(&b, &buf, at, int32(h.size), h.magic)
			}
			if err != nil {
				yield(BlockInfo{}, err)
				return
			}
			info := BlockInfo{
				Offset:           at,
				Type:             h.magic,
				Size:             h.size,
				UncompressedSize: h.uncompressed,
				PrevOffset:       h.prev,
				Checksum:         h.checksum,
				BytesPerChecksum: h.bytesPerChecksum,
				DataSize:         h.dataSize,
				Payload:          b.payload,
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// IndexEntry is an entry of an index.
type IndexEntry struct {
	Depth  int    // 0 in the root
	Offset int64  // of the child block
	Size   int    // of the child block in the file
	Key    []byte // see ParseKey; the caller must not change it
}

// ParseKey reads the key of an index entry. ok is false if it ends after the row, as in files of
// Hudi 1.1.1 and 1.2.0. The slices of k alias b.
func ParseKey(b []byte) (k Key, ok bool) { return parseKey(b) }

// IndexEntries returns the entries of all levels of the data index, depth first: each entry of an
// upper level before the entries of its child block. The iteration ends with the first error.
func (r *Reader) IndexEntries() iter.Seq2[IndexEntry, error] {
	return func(yield func(IndexEntry, error) bool) {
		w := indexWalk{r: r, last: make([]int64, r.trailer.IndexLevels)}
		for _, e := range r.root {
			if !w.entry(e, 0, yield) {
				return
			}
		}
	}
}

// indexWalk visits the entries of an index depth first.
//
// Blocks of one level ascend in the file. The walk checks that, so it visits no block twice: an
// index whose blocks name each other would otherwise have exponentially many paths.
type indexWalk struct {
	r    *Reader
	last []int64 // by depth: the end of the child block before
}

// entry yields e, which is an entry at the given depth, and those below it.
func (w *indexWalk) entry(e indexEntry, depth int, yield func(IndexEntry, error) bool) bool {
	if e.offset < w.last[depth] {
		yield(IndexEntry{}, w.r.at(e.offset, errNotAscending(w.last[depth])))
		return false
	}
	w.last[depth] = e.offset + int64(e.size)
	if !yield(IndexEntry{depth, e.offset, int(e.size), e.key}, nil) {
		return false
	}
	if depth == w.r.trailer.IndexLevels-1 {
		return true
	}
	b, err := w.r.readBlock(e.offset, e.size, w.r.indexMagic(depth+1))
	if err != nil {
		yield(IndexEntry{}, err)
		return false
	}
	for i := range b.entries {
		if !w.entry(nthEntry(b.payload, b.entries, i), depth+1, yield) {
			return false
		}
	}
	return true
}

// errNotAscending is the error of a block of the index, or of data, that is before the end of the
// previous one of its level.
func errNotAscending(end int64) error {
	return fault.Corruptf("index: the previous block of this level ends at byte %d", end)
}

// indexMagic returns the type of the blocks of the index at a depth from 1 on.
func (r *Reader) indexMagic(depth int) string {
	if depth == r.trailer.IndexLevels-1 {
		return magicLeafIndex
	}
	return magicInnerIndex
}

// MidKey returns the key in the middle of the index, where HBase splits a file. It is the key of
// the middle data block; see ParseKey. It is nil in a file without cells and in an index of several
// levels that does not name it. The caller must not change it.
func (r *Reader) MidKey() ([]byte, error) {
	if len(r.root) == 0 || r.trailer.IndexLevels > 1 && r.midKey == nil {
		return nil, nil
	}
	if r.midKey == nil {
		return r.root[len(r.root)/2].key, nil
	}
	offset := int64(binary.BigEndian.Uint64(r.midKey))
	size := int32(binary.BigEndian.Uint32(r.midKey[midKeySizeOff:]))
	i := int32(binary.BigEndian.Uint32(r.midKey[midKeyEntryOff:]))
	b, err := r.readBlock(offset, size, magicLeafIndex)
	if err != nil {
		return nil, err
	}
	if i < 0 || int(i) >= b.entries {
		return nil, r.at(offset, fault.Corruptf("index: middle key is entry %d of %d", i, b.entries))
	}
	return nthEntry(b.payload, b.entries, int(i)).key, nil
}
