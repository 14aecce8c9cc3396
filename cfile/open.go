package cfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
)

// ReaderOptions configures a Reader. The zero value disables caching.
type ReaderOptions struct {
	// Cache keeps cblocks, decoded chunks, filters, indexes, dictionary and zone map between reads.
	// If it is nil, the Reader keeps the most recently used cblock, and all that is no cblock.
	// Sources with ID 0, which names no block, are never cached.
	Cache *cache.Cache
	// Indexes keeps what is no cblock if Cache is nil; nil = the Reader does.
	Indexes *cache.Cache
	// Arrays allows columns of arrays. Without it Open returns ErrUnsupported for them, which
	// protects callers that expect single cells.
	Arrays bool
	// NoHeader leaves the header unread, which saves a read of the other end of the file. It has
	// nothing but a magic, which the footer has too, and pairs, which the Reader then lacks. Verify
	// checks it.
	NoHeader bool
	// Limit bounds the memory of concurrent reads; nil = no bound.
	Limit Limiter
}

// Limiter bounds the memory of cblocks that are being read and decompressed. A read acquires bytes
// once, and releases all of them before the next read of the same goroutine.
type Limiter interface {
	Acquire(n int64) // may wait for a Release
	Add(n int64)     // acquires further bytes, does not wait
	Release(n int64)
}

// tailBytes is the size of the first read at the end of the file. Nearly every footer fits.
const tailBytes = 512

// headBytes is the size of the first read at the beginning. Nearly every header fits.
const headBytes = 128

// Open reads and checks the header and the footer of a file. Index trees, dictionary and zone map
// are read on first use, except those in the tail of a block.Tailed, which Open loads from there.
//
// src must stay open while the Reader is used; the Reader never closes it. Errors: ErrCorrupt;
// ErrUnsupported for features, types, encodings and codecs that this package does not know. Source:
// cfile spec §10.1, §12.3 items 1 to 21.
func Open(src block.Source, o ReaderOptions) (*Reader, error) {
	r := &Reader{src: src, size: src.Size(), limit: o.Limit}
	if src.ID() != 0 {
		r.cache, r.indexes, r.id = o.Cache, cmp.Or(o.Cache, o.Indexes), uint64(src.ID())
	}
	if t, ok := src.(block.Tailed); ok {
		r.tail = t.TakeTail()
	}
	footer, err := r.openFooter()
	if err != nil {
		return nil, err
	}
	r.dataStart = preludeLen
	header := new(kudupb.CFileHeaderPB)
	if !o.NoHeader {
		if header, err = r.openHeader(); err != nil {
			return nil, err
		}
	}
	if err := r.takeFooter(footer); err != nil {
		return nil, err
	}
	if r.info.Array && !o.Arrays {
		return nil, fault.Unsupportedf("cfile: block %v: column of arrays", src.ID())
	}
	for _, m := range append(header.GetMetadata(), footer.GetMetadata()...) {
		r.pairs = append(r.pairs, Pair{m.GetKey(), m.GetValue()})
	}
	r.headerPairs = len(header.GetMetadata())
	r.info.Keyed = r.isKeyed()
	if err := r.takePointers(footer); err != nil {
		return nil, err
	}
	r.loadTail()
	return r, nil
}

// errOutsideTail is the error of readAt for bytes that loadTail does not have.
var errOutsideTail = errors.New("cfile: not in the tail")

// maxExtension is the number of bytes by which extendTail extends the tail.
const maxExtension = 64 << 10

// extendTail reads on to the ordinal index if a dictionary, which comes after it, is so large that
// the tail does not reach it: one read for the index, the dictionary and the zone map.
func (r *Reader) extendTail() {
	from, to := r.ordinalRoot.Offset, r.size-int64(len(r.tail))
	if r.dictPointer.Size == 0 || !r.info.PositionalIndex || from >= to || to-from > maxExtension {
		return
	}
	more := make([]byte, r.size-from)
	if r.readAt(more[:to-from], from) == nil {
		copy(more[to-from:], r.tail)
		r.tail = more
	}
}

// loadTail loads the indexes, the dictionary and the zone map that are in the tail of the file, and
// forgets the tail. After an error, which is mostly that not all is there, they are read on first
// use, with the same result if the file is damaged.
func (r *Reader) loadTail() {
	if r.tail == nil {
		return
	}
	r.extendTail()
	r.onlyTail = true
	if r.info.Keyed && r.indexes != nil {
		r.loadNodes()
	} else {
		if r.info.ValueIndex {
			r.valueIndex()
		}
		if r.info.PositionalIndex {
			r.ordinalIndex()
		}
	}
	r.zoneCRCs()
	r.dictionary()
	r.tail, r.onlyTail = nil, false
}

// openFooter reads the footer and sets version, checksums and dataEnd.
func (r *Reader) openFooter() (*kudupb.CFileFooterPB, error) {
	if r.size <= preludeLen {
		return nil, r.corruptf("file of %d bytes is too short", r.size)
	}
	tail := make([]byte, min(r.size, tailBytes))
	if err := r.readAt(tail, r.size-int64(len(tail))); err != nil {
		return nil, err
	}
	prelude := tail[len(tail)-preludeLen:]
	if r.version = versionOf(prelude[:magicLen]); r.version == 0 {
		return nil, r.corruptf("footer: magic %q", prelude[:magicLen])
	}
	length := int64(binary.LittleEndian.Uint32(prelude[magicLen:]))
	// The header is at least as long as the footer without its message, so this also keeps the two
	// from overlapping.
	if length > maxMessage || length+2*preludeLen > r.size {
		return nil, r.corruptf("footer: message of %d bytes in a file of %d", length, r.size)
	}
	// The message, and the checksum if the file has checksums, which the message says.
	want := min(length+preludeLen+checksumLen, r.size)
	if int64(len(tail)) < want {
		tail = make([]byte, want)
		if err := r.readAt(tail, r.size-want); err != nil {
			return nil, err
		}
	}
	covered := tail[int64(len(tail))-length-preludeLen:]
	footer := new(kudupb.CFileFooterPB)
	if err := proto.Unmarshal(covered[:length], footer); err != nil {
		return nil, r.corruptf("footer: %v", err)
	}
	r.dataEnd = r.size - int64(len(covered))
	if r.info.Checksums = footer.GetIncompatibleFeatures()&featureChecksum != 0; r.info.Checksums {
		if r.dataEnd -= checksumLen; r.dataEnd < preludeLen {
			return nil, r.corruptf("footer: no room for the checksum")
		}
		stored := tail[len(tail)-len(covered)-checksumLen:]
		if crc, want := coding.CRC32C(covered), binary.LittleEndian.Uint32(stored); crc != want {
			return nil, r.corruptf("footer: crc %08x, want %08x", crc, want)
		}
	}
	return footer, nil
}

// openHeader reads the header and sets dataStart.
func (r *Reader) openHeader() (*kudupb.CFileHeaderPB, error) {
	whole := make([]byte, min(r.size, headBytes))
	if err := r.readAt(whole, 0); err != nil {
		return nil, err
	}
	prelude := whole[:preludeLen]
	switch versionOf(prelude[:magicLen]) {
	case r.version:
	case 0:
		return nil, r.corruptf("header: magic %q", prelude[:magicLen])
	default:
		return nil, r.corruptf("header: magic %q, footer: %q", prelude[:magicLen], magicOf(r.version))
	}
	length := int64(binary.LittleEndian.Uint32(prelude[magicLen:]))
	if length > maxMessage {
		return nil, r.corruptf("header: message of %d bytes, at most %d", length, maxMessage)
	}
	r.dataStart = preludeLen + length
	if r.info.Checksums {
		r.dataStart += checksumLen
	}
	if r.dataStart > r.dataEnd {
		return nil, r.corruptf("header: message of %d bytes runs into the footer", length)
	}
	if int64(len(whole)) < r.dataStart {
		whole = make([]byte, r.dataStart)
		if err := r.readAt(whole, 0); err != nil {
			return nil, err
		}
	}
	covered := whole[:preludeLen+length]
	if r.info.Checksums {
		if crc, want := coding.CRC32C(covered), binary.LittleEndian.Uint32(whole[len(covered):]); crc != want {
			return nil, r.corruptf("header: crc %08x, want %08x", crc, want)
		}
	}
	header := new(kudupb.CFileHeaderPB)
	if err := proto.Unmarshal(covered[preludeLen:], header); err != nil {
		return nil, r.corruptf("header: %v", err)
	}
	return header, nil
}

// takeFooter checks the footer's description of the values and stores it.
func (r *Reader) takeFooter(f *kudupb.CFileFooterPB) error {
	unsupported := func(format string, args ...any) error {
		return fault.Unsupportedf("cfile: block %v: "+format, append([]any{r.src.ID()}, args...)...)
	}
	features := f.GetIncompatibleFeatures()
	if features&^featuresKnown != 0 {
		return unsupported("unknown feature bits in %#x, known are %#x", features, featuresKnown)
	}
	if f.GetIsTypeArray() != (features&featureArray != 0) {
		return r.corruptf("is_type_array is %v, feature bits %#x", f.GetIsTypeArray(), features)
	}
	if f.GetIsTypeArray() && f.ValidxInfo != nil {
		return unsupported("value index of a column of arrays")
	}
	t, e := schema.Type(f.GetDataType()), schema.Encoding(f.GetEncoding())
	if !t.Scalar() {
		return unsupported("data type %d", f.GetDataType())
	}
	if e = e.Resolve(t); !e.Allowed(t) {
		return unsupported("encoding %v for type %v", e, t)
	}
	codec, err := compress.Lookup(f.GetCompression())
	if err != nil {
		return unsupported("compression %d", f.GetCompression())
	}
	if f.GetNumValues() < 0 || f.GetNumValues() > math.MaxUint32 {
		return r.corruptf("footer: %d values", f.GetNumValues())
	}
	r.codec = codec
	r.info = Info{
		Type: t, Encoding: e, Compression: schema.Compression(f.GetCompression()), Nullable: f.GetIsTypeNullable(),
		Array: f.GetIsTypeArray(), Rows: f.GetNumValues(), Checksums: r.info.Checksums, Version: r.version,
		Bytes:           r.size,
		PositionalIndex: f.PosidxInfo != nil, ValueIndex: f.ValidxInfo != nil,
	}
	return nil
}

// takePointers checks that the footer's pointers are within the file, and stores them.
func (r *Reader) takePointers(f *kudupb.CFileFooterPB) error {
	take := func(m *kudupb.BlockPointerPB, dst *BlockPointer, name string) error {
		p := pointerOf(m)
		if p.Offset < r.dataStart || p.Size <= 0 || int64(p.Size) > r.dataEnd-p.Offset {
			return r.corruptf("footer: pointer to %s, %v: want a cblock within bytes [%d,%d)", name, p,
				r.dataStart, r.dataEnd)
		}
		*dst = p
		return nil
	}
	if f.PosidxInfo != nil {
		if err := take(f.PosidxInfo.RootBlock, &r.ordinalRoot, "the ordinal index"); err != nil {
			return err
		}
	}
	if f.ValidxInfo != nil {
		if err := take(f.ValidxInfo.RootBlock, &r.valueRoot, "the value index"); err != nil {
			return err
		}
	}
	if f.DictBlockPtr != nil {
		if err := take(f.DictBlockPtr, &r.dictPointer, "the dictionary"); err != nil {
			return err
		}
	}
	value, ok := r.Metadata(zoneMapKey)
	if !ok || !r.info.Checksums || r.info.Array {
		return nil
	}
	m := new(kudupb.BlockPointerPB)
	if err := proto.Unmarshal(value, m); err != nil {
		return r.corruptf("footer: pair %s: %v", zoneMapKey, err)
	}
	r.info.ZoneMap = true
	return take(m, &r.zonePointer, "the zone map")
}
