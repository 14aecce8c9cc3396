package hfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/keyheads"
)

// DefaultMaxBlockBytes is the largest payload of a block, uncompressed, that a Reader accepts by
// default.
const DefaultMaxBlockBytes = 32 << 20

// ReaderOptions are the options of a Reader. The zero value means the defaults.
type ReaderOptions struct {
	// MaxBlockBytes is the largest payload of a block, uncompressed. Reading a larger block returns
	// ErrUnsupported. 0 is DefaultMaxBlockBytes.
	MaxBlockBytes int
	// SkipChecksums does not verify the checksums of blocks.
	SkipChecksums bool
	// Cache keeps uncompressed blocks, other than those that Open reads. nil: no cache.
	Cache *cache.Cache
	// CacheID is the number of this file in Cache, different from every other file's number there.
	// 0 is the ID of the source.
	CacheID block.ID
}

// Reader reads one file.
//
// It keeps the blocks that Open reads: the root of the index, the index of meta blocks, file info,
// and the metadata of Bloom filters. Other blocks are read when they are needed. All methods are
// safe for concurrent use; a Cursor is not.
type Reader struct {
	src           block.Source
	end           int64 // of the blocks: the offset of the trailer
	trailer       Trailer
	maxBlock      int
	skipChecksums bool
	cache         *cache.Cache
	cacheID       uint64

	root   []indexEntry
	heads  keyheads.Heads // of the rows of root's keys
	midKey []byte         // position of the middle key, of midKeyLen bytes; nil if absent
	meta   []indexEntry
	byName []int // indexes of meta, in the order of names; nil if meta is in that order
	info   []InfoEntry
	blooms []*loadedBlock // metadata of HBase's Bloom filters

	filters filters

	layout   layout
	sequence atomic.Uint32 // the sequenceForm, once it is known
	cursors  sync.Pool     // of *Cursor, for Get
}

// Open reads the trailer and the section of a file that the trailer calls load-on-open.
//
// The Reader uses src until its last call. Errors: ErrCorrupt with the place, ErrUnsupported with
// the feature, errors of src.
func Open(src block.Source, o ReaderOptions) (*Reader, error) {
	r := &Reader{src: src, maxBlock: o.MaxBlockBytes, skipChecksums: o.SkipChecksums,
		cache: o.Cache, cacheID: uint64(o.CacheID)}
	if r.maxBlock == 0 {
		r.maxBlock = DefaultMaxBlockBytes
	}
	if r.maxBlock < 0 {
		return nil, fmt.Errorf("hfile: MaxBlockBytes is %d; use 0 for the default", o.MaxBlockBytes)
	}
	if r.cacheID == 0 {
		r.cacheID = uint64(src.ID())
	}
	var err error
	if r.trailer, r.end, err = readTrailer(src); err != nil {
		return nil, err
	}
	if err := r.loadOnOpen(); err != nil {
		return nil, err
	}
	return r, nil
}

// openFactor and openBytes limit the memory for the blocks that Open reads: openFactor times the
// size of the file and openBytes.
const (
	openFactor = 16
	openBytes  = 4 << 20
)

// loadOnOpen reads the blocks from the root index to the trailer: root index, meta index, file
// info, and metadata of Bloom filters. Source: hfile spec §10.1.
func (r *Reader) loadOnOpen() error {
	var (
		at     = r.trailer.LoadOnOpenOffset
		budget = openFactor*r.src.Size() + openBytes
	)
	next := func(factor int64, magic string) (*loadedBlock, error) {
		h, err := r.headerAt(at)
		if err != nil {
			return nil, err
		}
		if budget -= factor * int64(h.uncompressed); budget < 0 {
			return nil,
				r.at(at, fault.Unsupportedf("%d bytes of payload, too much memory for a file of %d bytes",
					h.uncompressed, r.src.Size()))
		}
		if magic == "" {
			magic = h.magic
		}
		b, err := r.loadBlock(new(blockBuffer), at, int32(h.size), magic)
		at += int64(h.size)
		return b, err
	}
	// The entries of an index take more memory than its payload, whose keys they use.
	const indexFactor = 1 + (indexEntryMemory+indexEntryLen)/(indexEntryLen+1)

	b, err := next(indexFactor, magicRootIndex)
	if err != nil {
		return err
	}
	if err := r.parseRoot(b.payload); err != nil {
		return r.at(b.offset, err)
	}
	if b, err = next(indexFactor, magicRootIndex); err != nil {
		return err
	}
	if err := r.parseMeta(b.payload); err != nil {
		return r.at(b.offset, err)
	}
	if at != r.trailer.FileInfoOffset {
		return r.at(at, fault.Corruptf("file info is at byte %d by the trailer", r.trailer.FileInfoOffset))
	}
	if b, err = next(indexFactor, magicFileInfo); err != nil {
		return err
	}
	if r.info, err = parseFileInfo(b.payload); err == nil {
		r.layout, err = layoutOf(r.InfoValue, r.Hudi())
	}
	if err != nil {
		return r.at(b.offset, err)
	}
	r.sequence.Store(uint32(r.layout.sequence))
	for at < r.end {
		if b, err = next(indexFactor, ""); err != nil {
			return err
		}
		if b.header.magic != magicBloomMeta && b.header.magic != magicDeleteFamily {
			return r.at(b.offset, fault.Corruptf("type %q after file info", b.header.magic))
		}
		r.blooms = append(r.blooms, b)
	}
	return nil
}

// parseRoot reads the root of the index.
func (r *Reader) parseRoot(payload []byte) error {
	entries, rest, err := parseIndex(payload, r.trailer.DataIndexCount, func(entries []indexEntry, rest []byte) error {
		return checkRoot(entries, rest, r.trailer.IndexLevels, r.trailer.LoadOnOpenOffset)
	})
	if err != nil {
		return err
	}
	r.root = entries
	r.heads = keyheads.Make(len(entries), func(i int) []byte { return indexRow(entries[i].key) })
	if len(rest) > 0 {
		r.midKey = rest
	}
	return nil
}

// parseMeta reads the index of meta blocks.
func (r *Reader) parseMeta(payload []byte) error {
	limit := r.trailer.LoadOnOpenOffset
	entries, _, err := parseIndex(payload, r.trailer.MetaIndexCount, func(entries []indexEntry, rest []byte) error {
		if len(rest) > 0 {
			return fault.Corruptf("meta index: %d bytes after %d entries", len(rest), len(entries))
		}
		for i, e := range entries {
			if e.offset < 0 || e.size < headerLen || int64(e.size) > limit || e.offset > limit-int64(e.size) {
				return fault.Corruptf("meta index: entry %d: %d bytes at byte %d are outside of [0, %d)", i, e.size,
					e.offset, limit)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.meta = entries
	byName := func(a, b indexEntry) int { return bytes.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(entries, byName) {
		r.byName = make([]int, len(entries))
		for i := range r.byName {
			r.byName[i] = i
		}
		slices.SortFunc(r.byName, func(i, j int) int {
			return cmp.Or(byName(entries[i], entries[j]), cmp.Compare(i, j))
		})
	}
	return nil
}

// Trailer returns the trailer.
func (r *Reader) Trailer() Trailer { return r.trailer }

// FileInfo returns the entries of file info in their order in the file. The caller must not change
// them.
func (r *Reader) FileInfo() []InfoEntry { return r.info }

// InfoValue returns the value of a key in file info. The caller must not change it.
func (r *Reader) InfoValue(key string) ([]byte, bool) {
	for _, e := range r.info {
		if string(e.Key) == key {
			return e.Value, true
		}
	}
	return nil, false
}

// Hudi reports whether the trailer names a comparator of Hudi: whether keys are only rows.
func (r *Reader) Hudi() bool { return isHudiComparator(r.trailer.Comparator) }

// Encoding returns the encoding of data blocks.
func (r *Reader) Encoding() Encoding { return r.layout.encoding }

// dataMagic returns the type of data blocks.
func (r *Reader) dataMagic() string {
	if r.layout.encoding != EncodingNone {
		return magicEncodedData
	}
	return magicData
}

// metaAt returns the i-th entry of the meta index in the order of names.
func (r *Reader) metaAt(i int) *indexEntry {
	if r.byName != nil {
		i = r.byName[i]
	}
	return &r.meta[i]
}

// Meta returns the content of the meta block with the given name; ok is false if the file has no
// such block. The caller must not change the content.
func (r *Reader) Meta(name string) (content []byte, ok bool, err error) {
	e := r.metaEntry(name)
	if e == nil {
		return nil, false, nil
	}
	b, err := r.readBlock(e.offset, e.size, magicMeta)
	if err != nil {
		return nil, false, err
	}
	return b.payload, true, nil
}

// metaEntry returns the first entry of the meta index with the given name, or nil.
func (r *Reader) metaEntry(name string) *indexEntry {
	i := sort.Search(len(r.meta), func(i int) bool { return string(r.metaAt(i).key) >= name })
	if i == len(r.meta) || string(r.metaAt(i).key) != name {
		return nil
	}
	return r.metaAt(i)
}

// MetaNames returns the names of the meta blocks in the order of the meta index.
func (r *Reader) MetaNames() []string {
	names := make([]string, len(r.meta))
	for i, e := range r.meta {
		names[i] = string(e.key)
	}
	return names
}

// MetaEntries returns the entries of the meta index in their order there. Keys are names.
func (r *Reader) MetaEntries() []IndexEntry {
	entries := make([]IndexEntry, len(r.meta))
	for i, e := range r.meta {
		entries[i] = IndexEntry{Offset: e.offset, Size: int(e.size), Key: e.key}
	}
	return entries
}

// cellLayout returns the layout of cells. Where file info does not say whether they end with a
// sequence ID, the first data block does. Source: hfile spec §5.1.
func (r *Reader) cellLayout() (layout, error) {
	l := r.layout
	l.sequence = sequenceForm(r.sequence.Load())
	if l.sequence != unknownSequence {
		return l, nil
	}
	e := r.root[0]
	for level := 1; level < r.trailer.IndexLevels; level++ {
		b, err := r.readBlock(e.offset, e.size, r.indexMagic(level))
		if err != nil {
			return l, err
		}
		e = nthEntry(b.payload, b.entries, 0)
	}
	b, err := r.readBlock(e.offset, e.size, magicData)
	if err != nil {
		return l, err
	}
	for _, l.sequence = range []sequenceForm{zeroSequence, noSequence} {
		if l.fits(b.payload) {
			break
		}
	}
	r.sequence.Store(uint32(l.sequence))
	return l, nil
}

// fits reports whether cells of this layout fill the payload of a block.
func (l layout) fits(payload []byte) bool {
	var w walker
	if w.open(l, payload) != nil {
		return false
	}
	for w.step() {
	}
	return w.err() == nil
}
