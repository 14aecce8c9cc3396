package cfile

import (
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
)

// DataBlocks is the number of data cblocks. What is kept of them as a whole, by ParsedBlock, is for
// files of keys and of deltas: NULLs and arrays, of which a few bytes may stand for any number, are
// ErrUnsupported.
func (r *Reader) DataBlocks() (int, error) {
	if r.info.Nullable || r.info.Array {
		return 0, fault.Unsupportedf("cfile: block %v: whole cblocks of a nullable column or one of arrays", r.src.ID())
	}
	bs, err := r.blocks()
	return len(bs), err
}

// FindData is the number of the last data cblock whose key in the value index is at or before key,
// −1 if the first key is behind it or there is none. Where keys rise, cells that are at or behind
// key stand there or later. Source: cfile spec §8.5.
func (r *Reader) FindData(key []byte) (int, error) {
	x, err := r.valueIndex()
	if err != nil {
		return -1, err
	}
	return r.find(x, key)
}

// Cells is a data cblock whose cells are read one by one where they stand, so that a search in it
// decodes no others. Immutable.
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
		err = r.mayHold(b, bs[i])
	}
	return Cells{r, b, bs[i]}, err
}

// Len is the number of cells.
func (c Cells) Len() int { return c.b.rows }

// Cell is cell i, below Len. A byte string holds as long as it is referenced.
func (c Cells) Cell(i int) ([]byte, error) {
	cell, err := c.b.values.Cell(i)
	if err != nil {
		return nil, c.r.at(c.p, err)
	}
	return cell, nil
}

// ParsedBlock returns what parse makes of all cells of data cblock i, one of DataBlocks, through
// the cache, which keeps that instead of the cblock. parse makes the same of a cblock always; first
// is the row of the first cell. It returns what it made and the bytes that this takes. The vector
// and its cells hold during the call only.
func (r *Reader) ParsedBlock(i int, parse func(first batch.Ordinal, cells *batch.Vector) (v any, bytes int64, err error)) (any, error) {
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
		err = r.mayHold(b, p)
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
	if r.cache != nil {
		r.cache.Put(key, v, bytes)
	}
	return v, nil
}

// parsing is the memory of a ParsedBlock.
type parsing struct {
	scratch
	cells batch.Vector
}

var parsings = sync.Pool{New: func() any { return new(parsing) }}

func (s *parsing) release() {
	if cap(s.stored)+cap(s.payload) <= maxPooled && s.cells.Len <= maxPooled/sliceHeader {
		parsings.Put(s)
	}
}

// mayHold tells whether all cells of a data cblock, which stands at p, can be in memory at once.
// Bytes of a codec's stream may stand for millions of empty byte strings, and a run for any number
// of cells; keys and deltas that are all different take more bytes than that.
func (r *Reader) mayHold(b *dataBlock, p BlockPointer) error {
	size := int64(r.info.Type.Width())
	if size == 0 {
		size = sliceHeader
	}
	if int64(b.rows)*size > 1<<19+32*int64(p.Size) {
		return r.at(p, fault.Unsupportedf("%d cells in %d bytes are too many to be read at once", b.rows, p.Size))
	}
	return nil
}

// FindBlock finds the last cblock whose key in the value index is at or before key; ok is false if
// the first key is behind it, or there is none. Source: cfile spec §8.5.
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

// ReadBlock returns what parse makes of the payload of the cblock at p, through the cache, which
// keeps that: for files of raw cblocks, as RawWriter makes them. It may alias the payload and must
// not be changed. parse is always the same for a file.
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

// rawBytes is what may be made of a raw cblock beside its payload, about.
const rawBytes = 64

// sliceHeader is the memory of a byte string beside its bytes.
const sliceHeader = 24

// BlockPointers returns where the data cblocks stand, in the order of their rows. It must not be
// changed.
func (r *Reader) BlockPointers() ([]BlockPointer, error) { return r.blocks() }

// errNotFound is for a row behind the last.
func (r *Reader) errNotFound(ord batch.Ordinal) error {
	return fmt.Errorf("cfile: block %v: row %d of %d: %w", r.src.ID(), ord, r.info.Rows, fault.ErrNotFound)
}
