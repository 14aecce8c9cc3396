package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/fault"
)

// BloomFilter is one of HBase's compound Bloom filters: a part of its keys in each of its chunks.
//
// It keeps the index of the chunks. The chunks are read when they are needed, through the cache of
// the Reader. It may be used as long as its Reader and is safe for concurrent use.
// Source: hfile spec §7.3.
type BloomFilter struct {
	r      *Reader
	info   BloomInfo
	chunks []indexEntry
}

// BloomInfo describes a BloomFilter.
type BloomInfo struct {
	Kind        BloomKind // BloomNone if file info does not name it
	PrefixBytes int       // length of the prefixes of kind BloomRowPrefix
	Hash        BloomHash
	Hashes      int    // number of bits that a key sets
	Bytes       int64  // of all chunks
	Keys        int64  // number of keys
	Capacity    int64  // number of keys that the chunks have room for
	Chunks      int    // number of chunks
	Comparator  string // as in the file: a Java class; "" except with kind BloomRowCol
}

// filters are the Bloom filters of a Reader that have been parsed. HBase's filters are in blocks
// that Open reads; Hudi's filter is in a meta block.
type filters struct {
	general, deletes atomic.Pointer[BloomFilter]
	hudi             atomic.Pointer[HudiBloom]
}

// Bloom returns HBase's Bloom filter of rows or columns, nil if the file has none.
//
// Errors: ErrCorrupt, ErrUnsupported. Chunks are not read, see Check.
func (r *Reader) Bloom() (*BloomFilter, error) {
	return r.filter(&r.filters.general, magicBloomMeta)
}

// DeleteFamilyBloom returns HBase's Bloom filter of the rows with cells of type DeleteFamily or
// DeleteFamilyVersion, nil if the file has none. Its kind is BloomRow. Errors as in Bloom.
func (r *Reader) DeleteFamilyBloom() (*BloomFilter, error) {
	return r.filter(&r.filters.deletes, magicDeleteFamily)
}

// filter returns the filter whose metadata is in a block of the given type.
func (r *Reader) filter(known *atomic.Pointer[BloomFilter], magic string) (*BloomFilter, error) {
	if f := known.Load(); f != nil {
		return f, nil
	}
	var block *loadedBlock
	for _, b := range r.blooms {
		if b.header.magic != magic {
			continue
		}
		if block != nil {
			return nil, r.at(b.offset, fault.Corruptf("Bloom filter: another one is at byte %d", block.offset))
		}
		block = b
	}
	if block == nil {
		return nil, nil
	}
	f := &BloomFilter{r: r}
	err := f.setKind(magic)
	if err == nil {
		err = f.parse(block.payload)
	}
	if err != nil {
		return nil, r.at(block.offset, fmt.Errorf("Bloom filter: %w", err))
	}
	known.Store(f)
	return f, nil
}

// setKind sets the kind by file info.
func (f *BloomFilter) setKind(magic string) error {
	if magic == magicDeleteFamily {
		f.info.Kind = BloomRow
		return nil
	}
	name, ok := f.r.InfoValue(infoBloomKind)
	if !ok {
		return nil
	}
	switch string(name) {
	case BloomNone.String():
	case BloomRow.String():
		f.info.Kind = BloomRow
	case BloomRowCol.String():
		f.info.Kind = BloomRowCol
	case BloomRowPrefix.String():
		f.info.Kind = BloomRowPrefix
		param, _ := f.r.InfoValue(infoBloomParam)
		if len(param) != 4 || binary.BigEndian.Uint32(param) < 1 || binary.BigEndian.Uint32(param) > math.MaxInt32 {
			return fault.Corruptf("%s in file info is %x, want the length of prefixes in 4 bytes",
				infoBloomParam, param[:min(len(param), 16)])
		}
		f.info.PrefixBytes = int(binary.BigEndian.Uint32(param))
	default:
		return fault.Unsupportedf("kind %.100q", name)
	}
	return nil
}

// parse reads the metadata. Chunks must follow each other in the file, as their first keys do.
func (f *BloomFilter) parse(payload []byte) error {
	m, index, err := parseBloomMeta(payload)
	if err != nil {
		return err
	}
	f.info.Hash, f.info.Hashes, f.info.Comparator = m.hash, m.hashes, m.comparator
	f.info.Bytes, f.info.Keys, f.info.Capacity, f.info.Chunks = m.bytes, m.keys, m.capacity, int(m.chunks)
	chunks, rest, err := rootEntries(index, int(m.chunks))
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fault.Corruptf("%d bytes after %d chunks", len(rest), m.chunks)
	}
	if m.keys > 0 && len(chunks) == 0 {
		return fault.Corruptf("%d keys in 0 chunks", m.keys)
	}
	end := int64(0) // of the chunk before
	for i, c := range chunks {
		limit := f.r.trailer.LoadOnOpenOffset
		if c.offset < end || c.size < headerLen || int64(c.size) > limit || c.offset > limit-int64(c.size) {
			return fault.Corruptf("chunk %d: %d bytes at byte %d are outside of [%d, %d)",
				i, c.size, c.offset, end, limit)
		}
		end = c.offset + int64(c.size)
		if f.info.Kind == BloomRowCol {
			if _, ok := parseKey(c.key); !ok {
				return fault.Corruptf("chunk %d: malformed key of %d bytes", i, len(c.key))
			}
		}
		if i > 0 && f.compare(chunks[i-1].key, c.key) >= 0 {
			return fault.Corruptf("chunk %d: its first key is not after the first key of chunk %d", i, i-1)
		}
	}
	f.chunks = chunks
	return nil
}

// compare compares two keys of the filter, see bloomKey.
func (f *BloomFilter) compare(a, b []byte) int {
	if f.info.Kind != BloomRowCol {
		return bytes.Compare(a, b)
	}
	x, _ := parseKey(a)
	y, _ := parseKey(b)
	return x.Compare(y)
}

// Info describes the filter.
func (f *BloomFilter) Info() BloomInfo { return f.info }

// MayContain reports whether the file may have a cell of the row, or with kind BloomRowCol of the
// column; false means that it has none. qualifier is used with that kind only. A filter whose kind
// is not known is asked for the row.
//
// Errors: ErrCorrupt, ErrUnsupported, errors of the source.
func (f *BloomFilter) MayContain(row, qualifier []byte) (bool, error) {
	if len(row) > MaxRowBytes {
		return false, nil
	}
	var buf [256]byte
	key := bloomKey(buf[:0], f.info.Kind, f.info.PrefixBytes, row, qualifier)
	i := f.chunkOf(key)
	if i < 0 {
		return false, nil
	}
	b, err := f.r.readBlock(f.chunks[i].offset, f.chunks[i].size, magicBloomChunk)
	if err == nil {
		err = f.checkChunk(b)
	}
	if err != nil {
		return false, err
	}
	return bloomContains(b.payload, f.info.Hash, f.info.Hashes, key), nil
}

// chunkOf returns the index of the chunk that has the key if any has it, -1 if none does.
func (f *BloomFilter) chunkOf(key []byte) int {
	return sort.Search(len(f.chunks), func(i int) bool { return f.compare(f.chunks[i].key, key) > 0 }) - 1
}

// maxBloomChunkBytes is the largest chunk whose bits have 31-bit numbers.
const maxBloomChunkBytes = math.MaxInt32 / 8

func (f *BloomFilter) checkChunk(b *loadedBlock) error {
	if n := len(b.payload); n < 1 || n > maxBloomChunkBytes {
		return f.r.at(b.offset,
			fault.Corruptf("chunk of a Bloom filter of %d bytes, want 1 to %d", n, maxBloomChunkBytes))
	}
	return nil
}

// Check reads and checks all chunks. The cache is not used. Errors as in MayContain.
func (f *BloomFilter) Check() error {
	var (
		b     loadedBlock
		buf   blockBuffer
		total int64
	)
	for _, c := range f.chunks {
		if err := f.r.loadInto(&b, &buf, c.offset, c.size, magicBloomChunk); err != nil {
			return err
		}
		if err := f.checkChunk(&b); err != nil {
			return err
		}
		total += int64(len(b.payload))
	}
	if total != f.info.Bytes {
		return f.r.at(f.r.trailer.LoadOnOpenOffset,
			fault.Corruptf("Bloom filter: its chunks have %d bytes, its metadata says %d", total, f.info.Bytes))
	}
	return nil
}

// bloomVerifier compares a filter with the cells of the file, which come in order.
type bloomVerifier struct {
	f     *BloomFilter
	key   []byte
	chunk int // index of the chunk in b, -1 for none
	b     loadedBlock
	buf   blockBuffer
}

func newBloomVerifier(f *BloomFilter) *bloomVerifier { return &bloomVerifier{f: f, chunk: -1} }

// check returns an error if the filter excludes the key of a cell.
func (v *bloomVerifier) check(k Key) error {
	f := v.f
	v.key = bloomKey(v.key[:0], f.info.Kind, f.info.PrefixBytes, k.Row, k.Qualifier)
	i := f.chunkOf(v.key)
	if i >= 0 && i != v.chunk {
		v.chunk = -1
		if err := f.r.loadInto(&v.b, &v.buf, f.chunks[i].offset, f.chunks[i].size, magicBloomChunk); err != nil {
			return err
		}
		if err := f.checkChunk(&v.b); err != nil {
			return err
		}
		v.chunk = i
	}
	if i < 0 || !bloomContains(v.b.payload, f.info.Hash, f.info.Hashes, v.key) {
		return fault.Corruptf("hfile: the Bloom filter of kind %v excludes row %.100q, column %.100q, which is in "+
			"the file", f.info.Kind, k.Row, k.Qualifier)
	}
	return nil
}

// HudiBloom returns Hudi's Bloom filter of keys, nil if the file has none: a meta block of its name
// and a type in file info. The Reader keeps it.
//
// Errors: ErrCorrupt, ErrUnsupported, errors of the source. Add must not be called on the result.
func (r *Reader) HudiBloom() (*HudiBloom, error) {
	if f := r.filters.hudi.Load(); f != nil {
		return f, nil
	}
	typeCode, ok := r.InfoValue(infoHudiBloomType)
	if !ok {
		return nil, nil
	}
	e := r.metaEntry(hudiBloomMeta)
	if e == nil {
		return nil, nil
	}
	b, err := r.readBlock(e.offset, e.size, magicMeta)
	if err != nil {
		return nil, err
	}
	f, err := ParseHudiBloom(string(typeCode), b.payload)
	if err != nil {
		return nil, r.at(e.offset, err)
	}
	r.filters.hudi.Store(f)
	return f, nil
}

// mayContain asks the Bloom filters of rows. One in a form that this package does not read is no
// reason to fail.
func (r *Reader) mayContain(row []byte) (bool, error) {
	// Hudi adds keys as UTF-8. A row that is not cannot be looked up as it was added.
	if hudi, err := r.HudiBloom(); err != nil && !errors.Is(err, ErrUnsupported) ||
		hudi != nil && utf8.Valid(row) && !hudi.MayContain(row) {
		return false, err
	}
	return r.ask(row, nil, BloomRow, BloomRowPrefix)
}

// mayContainColumn asks the Bloom filters of rows and columns.
func (r *Reader) mayContainColumn(row, qualifier []byte) (bool, error) {
	if ok, err := r.ask(row, qualifier, BloomRowCol); !ok {
		return false, err
	}
	return r.mayContain(row)
}

// ask asks HBase's filter if it has one of the given kinds.
func (r *Reader) ask(row, qualifier []byte, kinds ...BloomKind) (ok bool, err error) {
	f, err := r.Bloom()
	if err == nil {
		if f == nil || !slices.Contains(kinds, f.info.Kind) {
			return true, nil
		}
		ok, err = f.MayContain(row, qualifier)
	}
	if errors.Is(err, ErrUnsupported) {
		return true, nil
	}
	return ok, err
}
