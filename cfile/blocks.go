package cfile

import (
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
)

// DataBlocks returns the number of data cblocks. Reading whole cblocks by ParsedBlock is for files
// of keys and of deltas. Nullable columns and columns of arrays return ErrUnsupported, since a few
// of their bytes may encode any number of cells.
func (r *Reader) DataBlocks() (int, error) {
	if r.info.Nullable || r.info.Array {
		return 0, fault.Unsupportedf("cfile: block %v: cannot read whole cblocks of a nullable column or "+
			"a column of arrays", r.src.ID())
	}
	bs, err := r.blocks()
	return len(bs), err
}

// FindData returns the number of the last data cblock whose key in the value index is at or before
// key, or −1 if the first key is after it or there is none. If keys ascend, cells at or after key
// are in that cblock or a later one. Source: cfile spec §8.5.
func (r *Reader) FindData(key []byte) (int, error) {
	x, err := r.valueIndex()
	if err != nil {
		return -1, err
	}
	return r.find(x, key)
}

// Cells is a data cblock whose cells are decoded one at a time, so that a search decodes only the
// cells it compares. Immutable.
type Cells struct {
	r *Reader
	b *dataBlock
	p BlockPointer
}

// DataBlock returns data cblock i, one of DataBlocks, through the cache.
func (r *Reader) DataBlock(i int) (Cells, error) {
	bs, err := r.blocks()
	if err != nil {
		return Cells{}, err
	}
	b, err := r.blockAt(bs, i)
	if err == nil {
		err = r.checkFits(b, bs[i])
	}
	return Cells{r, b, bs[i]}, err
}

// Len returns the number of cells.
func (c Cells) Len() int { return c.b.rows }

// Cell returns cell i, which must be below Len. Byte strings are never overwritten.
func (c Cells) Cell(i int) ([]byte, error) {
	cell, err := c.b.values.Cell(i)
	if err != nil {
		return nil, c.r.at(c.p, err)
	}
	return cell, nil
}

// VisitData calls visit with data cblock i, one of DataBlocks, and the row of its first cell. It
// reads the cblock into memory that is used again: the cells are valid during the call only. The
// cache is neither asked nor filled, so this is for cblocks of which a caller needs one cell and
// keeps a copy. Errors: ErrCorrupt, with block and byte offset; visit's.
func (r *Reader) VisitData(i int, visit func(first batch.Ordinal, cells Cells) error) error {
	bs, err := r.blocks()
	if err != nil {
		return err
	}
	return r.visit(i, bs[i], visit)
}

// VisitEach is VisitData for each data cblock, in the order of rows, until an error. It reads the
// index once, also if the cache does not keep it.
func (r *Reader) VisitEach(visit func(first batch.Ordinal, cells Cells) error) error {
	bs, err := r.blocks()
	for i := 0; i < len(bs) && err == nil; i++ {
		err = r.visit(i, bs[i], visit)
	}
	return err
}

// visit is VisitData for data cblock i, which is at p.
func (r *Reader) visit(i int, p BlockPointer, visit func(first batch.Ordinal, cells Cells) error) error {
	s := scratches.Get().(*scratch)
	defer s.release()
	b, err := r.readData(i, p, s)
	if err == nil {
		err = r.checkFits(b, p)
	}
	if err != nil {
		return err
	}
	return visit(batch.Ordinal(b.first), Cells{r, b, p})
}

// ParsedBlock returns the result of parse on all cells of data cblock i, one of DataBlocks. The
// result comes from the cache, which keeps it instead of the cblock, so parse must be a pure
// function of the cblock. Its argument first is the row of the first cell; it returns the result
// and the result's size in bytes, or a negative size for a result that the cache must not keep. The
// vector and its cells are valid during the call only.
func (r *Reader) ParsedBlock(i int,
	parse func(first batch.Ordinal, cells *batch.Vector) (v any, bytes int64, err error)) (any, error) {
	bs, err := r.blocks()
	if err != nil {
		return nil, err
	}
	p := bs[i]
	key := cache.Key{Block: r.id, Offset: uint64(p.Offset), Part: partRaw}
	if r.cache != nil {
		if v, ok := r.cache.Get(key); ok {
			return v, nil
		}
	}
	s := parsings.Get().(*parsing)
	defer s.release()
	b, err := r.readData(i, p, &s.scratch)
	if err == nil {
		err = r.checkFits(b, p)
	}
	if err != nil {
		return nil, err
	}
	s.cells.Type = r.info.Type
	s.cells.Reset(b.rows)
	if err := b.decode(0, b.rows, &s.cells, 0); err != nil {
		return nil, r.at(p, err)
	}
	v, bytes, err := parse(batch.Ordinal(b.first), &s.cells)
	if err != nil {
		return nil, r.at(p, err)
	}
	if r.cache != nil && bytes >= 0 {
		r.cache.Put(key, v, bytes)
	}
	return v, nil
}

// parsing is the working memory of ParsedBlock.
type parsing struct {
	scratch
	cells batch.Vector
}

var parsings = sync.Pool{New: func() any { return new(parsing) }}

func (s *parsing) release() {
	if cap(s.stored)+cap(s.payload)+4*cap(s.offsets) <= maxPooled && s.cells.Len <= maxPooled/sliceHeader {
		parsings.Put(s)
	}
}

// checkFits returns an error if the data cblock at p may have too many cells to be in memory at
// once. A few compressed bytes may encode millions of empty byte strings, and a run any number of
// cells. Keys and deltas are distinct and take more bytes.
func (r *Reader) checkFits(b *dataBlock, p BlockPointer) error {
	size := int64(r.info.Type.Width())
	if size == 0 {
		size = sliceHeader
	}
	if int64(b.rows)*size > 1<<19+32*int64(p.Size) {
		return r.at(p, fault.Unsupportedf("%d cells in %d bytes are too many to read at once", b.rows, p.Size))
	}
	return nil
}

// FindBlock finds the last cblock whose key in the value index is at or before key. ok is false if
// the first key is after it or there is none. Source: cfile spec §8.5.
func (r *Reader) FindBlock(key []byte) (p BlockPointer, ok bool, err error) {
	x, err := r.valueIndex()
	if err != nil {
		return p, false, err
	}
	i, err := r.find(x, key)
	if i < 0 || err != nil {
		return p, false, err
	}
	return x.blocks[i], true, nil
}

// ReadBlock returns the result of parse on the payload of the cblock at p. The result comes from
// the cache, which keeps it. It may alias the payload and must not be changed. All calls for a file
// must pass the same parse. It is for files of raw cblocks, which RawWriter writes.
func (r *Reader) ReadBlock(p BlockPointer, parse func(payload []byte) (any, error)) (any, error) {
	key := cache.Key{Block: r.id, Offset: uint64(p.Offset), Part: partRaw}
	if r.cache != nil {
		if v, ok := r.cache.Get(key); ok {
			return v, nil
		}
	}
	payload, _, err := r.readBlock(p, nil)
	if err != nil {
		return nil, err
	}
	v, err := parse(payload)
	if err != nil {
		return nil, r.at(p, err)
	}
	if r.cache != nil {
		r.cache.Put(key, v, int64(cap(payload))+rawBytes)
	}
	return v, nil
}

// CachedBlock is like ReadBlock but never reads the file: ok is false if the cache does not have the
// cblock at p.
func (r *Reader) CachedBlock(p BlockPointer) (v any, ok bool) {
	if r.cache == nil {
		return nil, false
	}
	return r.cache.Get(cache.Key{Block: r.id, Offset: uint64(p.Offset), Part: partRaw})
}

// KeepDerived adds to the cache a value that a caller has derived from the file, with its size in
// bytes. kind is a small number for the kind of value, number the part of the file from which it
// was derived, for instance a data cblock. Without a cache KeepDerived does nothing, and the cache
// may decline the value.
func (r *Reader) KeepDerived(kind, number uint32, v any, bytes int64) {
	if r.cache != nil {
		r.cache.Put(cache.Key{Block: r.id, Offset: uint64(number), Part: partDerived - kind}, v, bytes)
	}
}

// Derived returns a value of KeepDerived; ok is false if the cache does not have it.
func (r *Reader) Derived(kind, number uint32) (v any, ok bool) {
	if r.cache == nil {
		return nil, false
	}
	return r.cache.Get(cache.Key{Block: r.id, Offset: uint64(number), Part: partDerived - kind})
}

// Cached reports whether the file has a cache.
func (r *Reader) Cached() bool { return r.cache != nil }

// rawBytes is the approximate size of a parsed raw cblock, apart from its payload.
const rawBytes = 64

// sliceHeader is the size of a slice header, the memory of a byte string apart from its bytes.
const sliceHeader = 24

// BlockPointers returns the pointers of the data cblocks in row order. The result must not be
// changed.
func (r *Reader) BlockPointers() ([]BlockPointer, error) { return r.blocks() }

// errNotFound returns the error for a row after the last.
func (r *Reader) errNotFound(ord batch.Ordinal) error {
	return fmt.Errorf("cfile: block %v: row %d of %d: %w", r.src.ID(), ord, r.info.Rows, fault.ErrNotFound)
}
