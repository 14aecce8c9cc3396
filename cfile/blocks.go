package cfile

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cache"
	"github.com/oribi-db/oribi/internal/fault"
)

// BlockIterator visits the data cblocks of a file one after the other, whole, and so takes the memory of all their
// cells: it is for files of keys and of deltas, whose cblocks are small. For one goroutine.
//
// It begins before the first cblock:
//
//	it := r.Blocks()
//	it.SeekAtOrBefore(key) // optional, and at any time
//	for it.Next() {
//		use(it.Cells())
//	}
//	return it.Err()
//
// To search in a cblock, Enter takes the place of Next, and Len and Cell that of Cells: then nothing is decoded but
// the cells asked for.
type BlockIterator struct {
	r      *Reader
	blocks []BlockPointer
	next   int        // number of the cblock that Next visits
	block  *dataBlock // that Enter went to last
	have   int        // number of the cblock in cells, -1 = none
	first  batch.Ordinal
	cells  batch.Vector
	err    error
}

// Blocks makes an iterator over the data cblocks, in the order of their rows. NULLs and arrays, of which a few bytes
// may stand for any number, are fault.ErrUnsupported.
func (r *Reader) Blocks() *BlockIterator {
	it := &BlockIterator{r: r, have: -1, cells: batch.Vector{Type: r.info.Type}}
	if r.info.Nullable || r.info.Array {
		it.err = fault.Unsupportedf("cfile: block %v: whole cblocks of a nullable column or one of arrays", r.src.ID())
		return it
	}
	it.blocks, it.err = r.blocks()
	return it
}

// SeekAtOrBefore makes Next visit the last cblock whose key in the value index is at or before key, or the first
// cblock if its key is behind it. Where keys rise, cells that are at or behind key stand there or later. What went
// wrong before is forgotten; what goes wrong here is told by Next and Err. Source: cfile spec §8.5.
func (it *BlockIterator) SeekAtOrBefore(key []byte) {
	x, err := it.r.valueIndex()
	if it.err = err; err != nil {
		return
	}
	i, err := it.r.find(x, key)
	it.blocks, it.next, it.err = x.blocks, max(i, 0), err
}

// Next goes to the next cblock; false is the end, or an error.
func (it *BlockIterator) Next() bool {
	if it.err == nil && it.next == it.have {
		it.next++
		return true // a leap that ends where it began
	}
	it.have = -1
	if !it.Enter() {
		return false
	}
	b := it.block
	it.cells.Reset(b.rows)
	if err := b.decode(0, b.rows, &it.cells, 0); err != nil {
		it.err = it.r.at(it.blocks[b.index], err)
		return false
	}
	it.have, it.first = b.index, batch.Ordinal(b.first)
	return true
}

// Enter is Next without the cells: Len and Cell tell of them, Cells, Vector and First do not.
func (it *BlockIterator) Enter() bool {
	it.block = nil
	if it.err != nil || it.next >= len(it.blocks) {
		return false
	}
	i := it.next
	it.next++
	b, err := it.r.blockAt(it.blocks, i)
	if err == nil {
		err = it.r.mayHold(b, it.blocks[i])
	}
	if it.err = err; err != nil {
		return false
	}
	it.block = b
	return true
}

// Len is the number of cells of the cblock that Enter went to.
func (it *BlockIterator) Len() int { return it.block.rows }

// Cell is cell i, below Len, of the cblock that Enter went to. A byte string holds as long as it is referenced.
func (it *BlockIterator) Cell(i int) ([]byte, error) {
	cell, err := it.block.values.Cell(i)
	if err != nil {
		return nil, it.r.at(it.blocks[it.block.index], err)
	}
	return cell, nil
}

// Release lets go of the cblock that Enter went to, for who keeps the iterator.
func (it *BlockIterator) Release() { it.block = nil }

// mayHold tells whether all cells of a data cblock, which stands at p, can be in memory at once. Bytes of a codec's stream
// may stand for millions of empty byte strings, and a run for any number of cells; keys and deltas that are all
// different take more bytes than that.
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

// Cells returns the cells of the cblock that Next went to, of a type of byte strings: nil for NULL. The slice holds until the next
// call of Next, the byte strings as long as they are referenced.
func (it *BlockIterator) Cells() [][]byte { return it.cells.Bytes }

// Vector returns the same of any type. It holds until the next call of Next.
func (it *BlockIterator) Vector() *batch.Vector { return &it.cells }

// First is the row of the first cell.
func (it *BlockIterator) First() batch.Ordinal { return it.first }

// Err is the error that ended the iteration; nil at the end of the file.
func (it *BlockIterator) Err() error { return it.err }

// FindBlock finds the last cblock whose key in the value index is at or before key; ok is false if the first key
// is behind it, or there is none. Source: cfile spec §8.5.
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

// ReadBlock returns what parse makes of the payload of the cblock at p, through the cache, which keeps that: for files of
// raw cblocks, as RawWriter makes them. It may alias the payload and must not be changed. parse is always the same for a file.
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

// BlockPointers returns where the data cblocks stand, in the order of their rows. It must not be changed.
func (r *Reader) BlockPointers() ([]BlockPointer, error) { return r.blocks() }

// errNotFound is for a row behind the last.
func (r *Reader) errNotFound(ord batch.Ordinal) error {
	return fmt.Errorf("cfile: block %v: row %d of %d: %w", r.src.ID(), ord, r.info.Rows, fault.ErrNotFound)
}
