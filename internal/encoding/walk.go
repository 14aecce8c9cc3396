package encoding

import (
	"encoding/binary"
	"slices"
	"sync"
	"unsafe"

	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
)

// planeWalk has the views of the chunks of a payload in which planes were recognized, so that
// a payload in the cache is searched for them once. Immutable.
type planeWalk struct {
	chunks []walkedChunk
	refs   []planeRef // of all chunks
}

// walkedChunk is the view of one chunk. Its refs are refs[first:first+n] of the walk.
type walkedChunk struct {
	ones  uint128
	first uint32
	n     uint8
	found bool // false if the chunk must be decompressed
	alike bool // it has the same constant and mixed planes as the chunk before, as many cells, and a constant top plane
}

// walkBytes returns the maximum memory of a walk.
func walkBytes(chunks, width int) int {
	return int(unsafe.Sizeof(planeWalk{})) +
		chunks*int(unsafe.Sizeof(walkedChunk{})+uintptr(8*width)*unsafe.Sizeof(planeRef{}))
}

// viewBuffer is memory for the view of one chunk.
type viewBuffer struct {
	refs [maxPlanes]planeRef
	rows rowsBuffer
}

var viewBuffers = sync.Pool{New: func() any { return new(viewBuffer) }}

// view returns the planes of chunk i, with the bits of its padding. The result is valid until buf
// is used again. It aliases the payload, or buf if the chunk had to be decompressed.
//
// If the block stays in a cache, the first call finds the planes of all chunks and keeps them.
func (b *shuffled) view(i int, buf *viewBuffer) (planeView, error) {
	w := b.walk.Load()
	if w == nil && b.cache != nil {
		b.walk.CompareAndSwap(nil, b.newWalk())
		w = b.walk.Load()
	}
	v, rows, err := b.findView(w, i, buf)
	if rows != nil {
		v = viewRows(rows, 8*v.row, v.width, &buf.refs)
	}
	return v, err
}

// viewOne is view for a read of few cells, which does not pay for the planes of all chunks. Planes
// in refs may be constant.
func (b *shuffled) viewOne(i int, buf *viewBuffer) (planeView, error) {
	w := b.walk.Load()
	if w == nil {
		v, err := viewAlone(b.stream(i), b.chunkCells(i), b.width, buf)
		if err != nil {
			err = fault.Corruptf("encoding: bitshuffle: chunk %d of %d: %v", i, len(b.chunks), err)
		}
		return v, err
	}
	v, rows, err := b.findView(w, i, buf)
	if rows != nil {
		v = viewAllRows(rows, 8*v.row, v.width, &buf.refs)
	}
	return v, err
}

// viewAlone returns the planes of a chunk of n cells, of width bytes, by its LZ4 block alone, as
// viewOne does.
func viewAlone(stream []byte, n, width int, buf *viewBuffer) (planeView, error) {
	v := planeView{base: stream, row: n / 8, width: width}
	found := false
	if v.refs, v.ones, found = recognize(stream, v.row, width, buf.refs[:0]); found {
		return v, nil
	}
	rows := buf.rows[:n*width]
	if err := compress.LZ4DecompressExact(rows, stream); err != nil {
		return v, err
	}
	return viewAllRows(rows, n, width, &buf.refs), nil
}

// findView returns the view of chunk i if its planes are recognized, in w unless that is nil.
// Otherwise it returns the decompressed rows, in buf.
func (b *shuffled) findView(w *planeWalk, i int, buf *viewBuffer) (v planeView, rows []byte, err error) {
	n := b.chunkCells(i)
	v = planeView{base: b.stream(i), row: n / 8, width: b.width}
	found := false
	if w != nil {
		c := &w.chunks[i]
		v.ones, v.refs, found = c.ones, w.refs[c.first:][:c.n], c.found
	} else {
		v.refs, v.ones, found = recognize(v.base, v.row, v.width, buf.refs[:0])
	}
	if found {
		return v, nil, nil
	}
	rows = buf.rows[:n*b.width]
	if err := b.unpack(i, rows); err != nil {
		return v, nil, err
	}
	return v, rows, nil
}

// newWalk finds the planes of all chunks.
func (b *shuffled) newWalk() *planeWalk {
	w := &planeWalk{chunks: make([]walkedChunk, len(b.chunks))}
	var memory [inlineChunks * 64]planeRef
	refs := memory[:0]
	for i := range w.chunks {
		c := &w.chunks[i]
		first := len(refs)
		refs, c.ones, c.found = recognize(b.stream(i), b.chunkCells(i)/8, b.width, refs)
		c.first, c.n = uint32(first), uint8(len(refs)-first)
		if i > 0 {
			c.alike = b.alike(&w.chunks[i-1], c, refs, i)
		}
	}
	w.refs = slices.Clone(refs)
	return w
}

// alike reports whether chunk i, whose views is d, is like the one before, whose view is c.
func (b *shuffled) alike(c, d *walkedChunk, refs []planeRef, i int) bool {
	if !c.found || !d.found || c.ones != d.ones || c.n != d.n || b.chunkCells(i-1) != b.chunkCells(i) {
		return false
	}
	x, y := refs[c.first:][:c.n], refs[d.first:]
	for k := range x {
		if x[k].plane != y[k].plane {
			return false
		}
	}
	return c.n == 0 || int(x[c.n-1].plane) < 8*b.width-1
}

// runOf returns the number of chunks, from the chunk of value from on, that are alike, contain only
// values in [from, from+n), and correspond to whole words of a selection from bit at on; at least
// 1.
func (b *shuffled) runOf(from, n, at int) int {
	w := b.walk.Load()
	if size := 1 << b.shift; !runs || w == nil || b.width > 8 || (from&(size-1)|at&63) != 0 || n < 2*size {
		return 1
	}
	i := from >> b.shift
	end := i + 1
	for end < i+n>>b.shift && w.chunks[end].alike {
		end++
	}
	return end - i
}

// viewRun sets v to the view of a run of chunks that begins with the chunk of value from.
func (b *shuffled) viewRun(v *planeView, from, chunks int, buf *viewBuffer) error {
	if err := b.viewPart(v, from, 1<<b.shift, buf); err != nil || chunks == 1 {
		return err
	}
	i := from >> b.shift
	v.offsets, v.payload = b.chunks[i:i+chunks], b.payload
	return nil
}

// stream returns the LZ4 block of chunk i.
func (b *shuffled) stream(i int) []byte {
	s := b.payload[b.chunks[i]:]
	return s[chunkHeaderLen:][:binary.BigEndian.Uint32(s)]
}

// unpack decompresses the bit rows of chunk i, which have as many bytes as its cells.
func (b *shuffled) unpack(i int, rows []byte) error {
	if err := compress.LZ4DecompressExact(rows, b.stream(i)); err != nil {
		return fault.Corruptf("encoding: bitshuffle: chunk %d of %d: %v", i, len(b.chunks), err)
	}
	return nil
}
