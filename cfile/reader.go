package cfile

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Info describes a file, as read from its header and footer.
type Info struct {
	Type            schema.Type
	Encoding        schema.Encoding    // never Auto
	Compression     schema.Compression // never the default
	Nullable        bool
	Array           bool  // cells are arrays whose elements have type Type; Nullable applies to whole cells
	Rows            int64 // cells, NULLs included; 0 for a file of raw cblocks
	Bytes           int64 // of the file
	Checksums       bool
	Version         int // of the framing: 1 or 2
	PositionalIndex bool
	ValueIndex      bool
	ZoneMap         bool
	Keyed           bool // cells begin with keys, which the value index has; see AppendKeyed
}

// Reader is an open file. Its methods may be called concurrently; their results must not be
// changed. It owns no resources but memory, so there is nothing to close.
type Reader struct {
	// Where the bytes are and which caches keep them. limit, if it is not nil, is asked for memory
	// before a cblock of minLimited bytes or more is read.
	src     block.Source
	size    int64
	cache   *cache.Cache // nil = none
	indexes *cache.Cache // of the parts that loaded loads; nil = r keeps them
	id      uint64       // in the cache
	limit   Limiter      // nil = none
	largest atomic.Int64 // payload read so far

	// The header and the footer, which Open has read and checked. They take a few hundred bytes, so
	// they stay in memory; indexes, which grow with the file, do not.
	version int
	codec   compress.Codec
	info    Info

	dataStart, dataEnd int64 // range of bytes that may contain cblocks

	tail     []byte // the last bytes of the file; nil after Open
	onlyTail bool   // nothing else is to be read; false after Open

	ordinalRoot, valueRoot, dictPointer, zonePointer BlockPointer // Size 0 = none

	pairs       []Pair // header's, then footer's
	headerPairs int

	// The parts that loaded has loaded, each once until the cache for indexes drops it. load
	// serializes the loading: many readers that begin at once read an index once.
	load     sync.Mutex
	ordinals atomic.Pointer[part[ordinalIndex]]
	values   atomic.Pointer[part[valueIndex]]
	zones    atomic.Pointer[part[zones]]
	crcs     atomic.Pointer[part[[]uint32]]
	dict     atomic.Pointer[part[batch.Dictionary]]
	shared   weak.Pointer[batch.Dictionary] // the dictionary, while it is in use; guarded by load

	last     atomic.Pointer[dataBlock] // without a cache: the cblock last read by Cell or Seek
	lastNode atomic.Pointer[node]      // without a cache for indexes: the last result of node

	keyLimitForTest int
}

// Info returns the description of the file.
func (r *Reader) Info() Info { return r.info }

// Rows returns the number of cells, NULLs included.
func (r *Reader) Rows() int64 { return r.info.Rows }

// Metadata returns the value of the first pair with the given key, searching the header's pairs
// before the footer's. Source: cfile spec §2.7.
func (r *Reader) Metadata(key string) ([]byte, bool) {
	for i := range r.pairs {
		if r.pairs[i].Key == key {
			return r.pairs[i].Value, true
		}
	}
	return nil, false
}

// Pairs returns all pairs; the first inHeader of them are from the header.
func (r *Reader) Pairs() (pairs []Pair, inHeader int) { return r.pairs, r.headerPairs }

// ordinalIndex returns the ordinal tree, or an error if the file has none.
func (r *Reader) ordinalIndex() (*ordinalIndex, error) {
	return loaded(r, &r.ordinals, r.ordinalRoot, partOrdinals, r.loadOrdinals)
}

// valueIndex returns the value tree, or ErrUnsupported if the file has none.
func (r *Reader) valueIndex() (*valueIndex, error) {
	if !r.info.ValueIndex {
		return nil, r.errNoValues()
	}
	return loaded(r, &r.values, r.valueRoot, partValues, r.loadValues)
}

func (r *Reader) errNoValues() error {
	return fault.Unsupportedf("cfile: block %v: no value index", r.src.ID())
}

// blocks returns the data cblocks in row order, from whichever index the file has.
func (r *Reader) blocks() ([]BlockPointer, error) {
	if r.info.PositionalIndex {
		x, err := r.ordinalIndex()
		if err != nil {
			return nil, err
		}
		return x.blocks, nil
	}
	x, err := r.valueIndex()
	if err != nil {
		return nil, err
	}
	return x.blocks, nil
}

// blockAt returns data cblock i of the list bs, through the cache.
func (r *Reader) blockAt(bs []BlockPointer, i int) (*dataBlock, error) {
	if r.cache == nil {
		if b := r.last.Load(); b != nil && b.index == i {
			return b, nil
		}
		b, err := r.readData(i, bs[i], nil)
		if err == nil {
			r.last.Store(b)
		}
		return b, err
	}
	key := cache.Key{Block: r.id, Offset: uint64(bs[i].Offset), Part: partWhole}
	if v, ok := r.cache.Get(key); ok {
		return v.(*dataBlock), nil
	}
	b, err := r.readData(i, bs[i], nil)
	if err == nil {
		r.cache.PutAgain(key, b, b.bytes) // a whole cblock for one cell
	}
	return b, err
}

// checkOrdinal compares data cblock i, which has rows from first on, with its entry in the ordinal
// tree: no gap, no overlap. Source: cfile spec §12.3 item 41.
func (r *Reader) checkOrdinal(x *ordinalIndex, i int, first int64, rows int) error {
	end := r.info.Rows
	if i+1 < len(x.first) {
		end = int64(x.first[i+1])
	}
	if first != int64(x.first[i]) || first+int64(rows) != end {
		return r.at(x.blocks[i],
			fault.Corruptf("rows [%d,%d), index has [%d,%d)", first, first+int64(rows), x.first[i], end))
	}
	return nil
}

// findRow returns the data cblock that contains row ord, which is below the number of rows; get
// returns cblock i.
//
// Without an ordinal index only the cblocks themselves contain their rows, so a binary search reads
// about log2 of the cblocks.
func (r *Reader) findRow(ord int64, get func(bs []BlockPointer, i int) (*dataBlock, error)) (*dataBlock, error) {
	if r.info.PositionalIndex {
		x, err := r.ordinalIndex()
		if err != nil {
			return nil, err
		}
		return r.rowIn(x, ord, get)
	}
	bs, err := r.blocks()
	if err != nil {
		return nil, err
	}
	for lo, hi := 0, len(bs); lo < hi; {
		mid := int(uint(lo+hi) >> 1)
		b, err := get(bs, mid)
		switch {
		case err != nil:
			return nil, err
		case ord < b.first:
			hi = mid
		case ord >= b.first+int64(b.rows):
			lo = mid + 1
		default:
			return b, nil
		}
	}
	return nil, r.corruptf("no cblock has row %d of %d", ord, r.info.Rows)
}

// rowIn is findRow in a file with an ordinal index.
func (r *Reader) rowIn(x *ordinalIndex, ord int64,
	get func(bs []BlockPointer, i int) (*dataBlock, error)) (*dataBlock, error) {
	b, err := get(x.blocks, x.find(uint32(ord)))
	if err != nil {
		return nil, err
	}
	return b, r.checkOrdinal(x, b.index, b.first, b.rows)
}

// Cell returns cell ord: nil for NULL, otherwise the byte string or the Width bytes of the cell,
// little-endian.
//
// In a bitshuffle cblock Cell decodes one chunk of 8 KiB, which stays in the cache. If the cache has
// no room for the cblock, but marks of it, Cell reads that chunk alone. Errors: ErrNotFound if ord is
// after the last row; ErrUnsupported for a column of arrays, which ColumnReader reads. Source: cfile
// spec §10.2.
func (r *Reader) Cell(ord batch.Ordinal) ([]byte, error) {
	if r.info.Array {
		return nil, fault.Unsupportedf("cfile: block %v: cannot read a single cell of a column of arrays", r.src.ID())
	}
	if int64(ord) >= r.info.Rows {
		return nil, r.errNotFound(ord)
	}
	if r.cache != nil && r.info.PositionalIndex {
		return r.cellAlone(ord)
	}
	b, err := r.findRow(int64(ord), r.blockAt)
	if err != nil {
		return nil, err
	}
	return r.ownCell(b, ord)
}

// cellAlone is Cell in a file with an ordinal index and a cache.
func (r *Reader) cellAlone(ord batch.Ordinal) (cell []byte, err error) {
	x, err := r.ordinalIndex()
	if err != nil {
		return nil, err
	}
	i := x.find(uint32(ord))
	if cell, ok, err := r.quickCell(x, i, ord); ok {
		return cell, err
	}
	err = r.visitAlone(x.blocks, i, func(b *dataBlock) error {
		if err := r.checkOrdinal(x, i, b.first, b.rows); err != nil {
			return err
		}
		cell, err = r.ownCell(b, ord)
		return err
	})
	return cell, err
}

// quickCell is Cell in data cblock i of x if the cache has the cblock or marks of it.
func (r *Reader) quickCell(x *ordinalIndex, i int, ord batch.Ordinal) (cell []byte, ok bool, err error) {
	p := x.blocks[i]
	if v, ok := r.cache.Get(r.partKey(p, partWhole)); ok {
		b := v.(*dataBlock)
		if err := r.checkOrdinal(x, i, b.first, b.rows); err != nil {
			return nil, true, err
		}
		cell, err = r.cellOf(b, ord)
		return cell, true, err
	}
	m := r.marks(p)
	if m == nil {
		return nil, false, nil
	}
	cell, err = r.markedCell(x, i, m, ord)
	return cell, true, err
}

// QuickCell is like Cell but reads at most a part of a cblock: ok is false if it would have to read a
// cblock or an index. Callers that need cells of several files use it to read the missing ones
// concurrently.
func (r *Reader) QuickCell(ord batch.Ordinal) (cell []byte, ok bool, err error) {
	if r.info.Array || int64(ord) >= r.info.Rows || r.cache == nil || r.ordinalRoot.Size == 0 {
		return nil, false, nil
	}
	x := present(r, &r.ordinals, r.ordinalRoot, partOrdinals)
	if x == nil {
		return nil, false, nil
	}
	return r.quickCell(x, x.find(uint32(ord)), ord)
}

// cached returns the data cblock of row ord, which is below the number of rows, if it is in the
// cache and the ordinal index is loaded.
func (r *Reader) cached(ord int64) (*ordinalIndex, *dataBlock) {
	if r.cache == nil || r.ordinalRoot.Size == 0 {
		return nil, nil
	}
	x := present(r, &r.ordinals, r.ordinalRoot, partOrdinals)
	if x == nil {
		return nil, nil
	}
	v, ok := r.cache.Get(cache.Key{Block: r.id, Offset: uint64(x.blocks[x.find(uint32(ord))].Offset), Part: partWhole})
	if !ok {
		return nil, nil
	}
	return x, v.(*dataBlock)
}

// cellOf returns the cell of row ord, which must be in b.
func (r *Reader) cellOf(b *dataBlock, ord batch.Ordinal) ([]byte, error) {
	v, present := b.locate(int(int64(ord) - b.first))
	if !present {
		return nil, nil
	}
	cell, err := b.values.Cell(v)
	if err != nil {
		return nil, fmt.Errorf("cfile: block %v: row %d: %w", r.src.ID(), ord, err)
	}
	return cell, nil
}

// ownCell is cellOf for a cblock that the cache may not have kept: a small cell is copied, so that
// a caller who keeps it does not keep the cblock.
func (r *Reader) ownCell(b *dataBlock, ord batch.Ordinal) ([]byte, error) {
	cell, err := r.cellOf(b, ord)
	if cell != nil && int64(len(cell))*spareOfKept < b.bytes {
		cell = bytes.Clone(cell)
	}
	return cell, err
}

// Seek finds the first value at or after key in a file with a value index; exact reports whether it
// equals key. If all values are before key, ord is Rows.
//
// key is a cell of the file's type. Errors: ErrUnsupported if there is no value index.
// Source: cfile spec §10.3.
func (r *Reader) Seek(key []byte) (ord batch.Ordinal, exact bool, err error) {
	x, err := r.valueIndex()
	if err != nil {
		return 0, false, err
	}
	if r.info.Nullable || r.info.Keyed {
		return 0, false, fault.Unsupportedf("cfile: block %v: cannot seek in a nullable column, or in cells with keys",
			r.src.ID())
	}
	if len(x.blocks) == 0 {
		return 0, false, nil
	}
	var buf [16]byte
	if !r.info.Type.Variable() && len(key) != r.info.Type.Width() {
		return 0, false, fmt.Errorf("cfile: key of %d bytes in a column of %s: %w", len(key), r.info.Type, fault.ErrSchema)
	}
	probe := r.probe(buf[:0], key)
	i, err := r.find(x, probe)
	if err != nil {
		return 0, false, err
	}
	// The key of the first cblock is at most the first cell, so key is before all cells.
	return r.seekIn(x.blocks, max(i, 0), key, probe)
}

// seekIn is Seek in data cblock i of bs. A cut key in the value index may lead to the cblock before the
// value's. Then ord is the first row of the next cblock.
func (r *Reader) seekIn(bs []BlockPointer, i int, key, probe []byte) (ord batch.Ordinal, exact bool, err error) {
	seek := func(b *dataBlock) error {
		v, found, err := b.values.Seek(key)
		if err != nil {
			return r.at(bs[i], err)
		}
		ord, exact = batch.Ordinal(b.first+int64(v)), found
		return nil
	}
	if r.cache == nil {
		b, err := r.blockAt(bs, i)
		if err == nil {
			err = seek(b)
		}
		return ord, exact, err
	}
	if v, ok := r.cache.Get(r.partKey(bs[i], partWhole)); ok {
		err = seek(v.(*dataBlock))
		return ord, exact, err
	}
	if m := r.marks(bs[i]); m != nil {
		v, exact, err := r.markedSeek(bs[i], m, key, probe)
		return batch.Ordinal(m.first + int64(v)), exact, err
	}
	err = r.visitAlone(bs, i, seek)
	return ord, exact, err
}
