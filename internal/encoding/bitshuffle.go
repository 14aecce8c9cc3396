package encoding

import (
	"encoding/binary"
	"math/bits"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// BIT_SHUFFLE payload. Source: cfile spec §6.4.
//
//	offset  width  field    meaning
//	0       4      ordinal  row of the cblock's first row
//	4       4      count    values
//	8       4      size     bytes of the payload, these 20 included
//	12      4      padded   count rounded up to a multiple of 8; the added cells are arbitrary
//	16      4      width    bytes of a cell as stored: 1, 2, 4, 8 or 16; for uint32 it may be less than 4
//	20      …      chunks
//
//	chunk: 8192 bytes of cells, fewer in the last; none if count is 0
//	0       4      n        bytes of the next field, BIG-endian
//	4       n      rows     one LZ4 block of the cells' bits in rows (see transpose.go)
//
// The LZ4 block may be any. Ours has one of two forms: planes (see planestream.go), or what the C
// library writes, as Kudu does.
//
// int32 1, 2, 3 from row 0: 00 00 00 00 03 00 00 00 25 00 00 00 08 00 00 00 04 00 00 00 00 00 00 0d
// 3f 05 06 00 01 00 05 50 00 00 00 00 00
const (
	shuffleCountOff  = 4    // file format: never change
	shuffleSizeOff   = 8    // file format: never change
	shufflePaddedOff = 12   // file format: never change
	shuffleWidthOff  = 16   // file format: never change
	shuffleHeaderLen = 20   // file format: never change
	chunkHeaderLen   = 4    // file format: never change
	chunkBytes       = 8192 // file format: never change
)

// inlineChunks is the number of chunk offsets kept in the block itself: enough for a cblock of 256
// KiB, 32 chunks of 8 KiB.
const inlineChunks = 32

// shuffled is a BIT_SHUFFLE payload.
type shuffled struct {
	typ     schema.Type
	width   int // of a cell as stored; below the type's for narrowed uint32
	shift   int // log2 of the cells in a chunk
	ordinal batch.Ordinal
	count   int
	payload []byte
	chunks  []uint32 // offset of each chunk's length
	inline  [inlineChunks]uint32
	cache   Chunks

	// The following fields remember earlier calls, to make the next one faster. A block in the cache
	// is used concurrently, so they are atomic, and a lost update costs time only.

	// kept is the last partly decoded chunk, or nil while a call uses it. A call that takes it owns
	// it until it puts it back, so that concurrent calls do not share it.
	kept atomic.Pointer[chunkBuffer]

	firsts atomic.Pointer[[]byte]    // the first cells of the chunks of such a block, once it was searched
	walk   atomic.Pointer[planeWalk] // of a block that stays in the cache, once it was scanned
	// asked has the chunks of the last reads of few cells: 15 bits of each index, after a 1, the
	// newest in the lowest bits.
	asked atomic.Uint64
	end   atomic.Uint32 // after the last value of the last call of decode
}

// chunkBuffer is one decoded chunk.
type chunkBuffer struct {
	block *shuffled // the block of the chunk; nil if the buffer is empty
	index int
	cells [chunkBytes]byte
}

var chunkBuffers = sync.Pool{New: func() any { return new(chunkBuffer) }}

// rowsBuffer is one chunk of rows, and memory for words that begin in the last one.
type rowsBuffer [chunkBytes + laneBytes]byte

var rowsBuffers = sync.Pool{New: func() any { return new(rowsBuffer) }}

func parseBitshuffle(payload []byte, t schema.Type, cache Chunks) (*shuffled, error) {
	b := new(shuffled)
	if err := b.parse(payload, t, cache); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *shuffled) parse(payload []byte, t schema.Type, cache Chunks) error {
	if len(payload) < shuffleHeaderLen {
		return fault.Corruptf("encoding: bitshuffle: %d bytes, the header has %d", len(payload), shuffleHeaderLen)
	}
	le := binary.LittleEndian
	ord, count := le.Uint32(payload), le.Uint32(payload[shuffleCountOff:])
	size := le.Uint32(payload[shuffleSizeOff:])
	padded, width := le.Uint32(payload[shufflePaddedOff:]), le.Uint32(payload[shuffleWidthOff:])
	if err := checkRange("bitshuffle", ord, count); err != nil {
		return err
	}
	narrowed := t == schema.Uint32 && (width == 1 || width == 2)
	switch {
	case uint64(size) != uint64(len(payload)):
		return fault.Corruptf("encoding: bitshuffle: header says %d bytes, there are %d", size, len(payload))
	case uint64(padded) != (uint64(count)+7)&^7:
		return fault.Corruptf("encoding: bitshuffle: %d values padded to %d", count, padded)
	case int64(width) != int64(t.Width()) && !narrowed:
		return fault.Corruptf("encoding: bitshuffle: cells of %d bytes for %s", width, t)
	}
	*b = shuffled{typ: t, width: int(width), shift: bits.TrailingZeros32(chunkBytes / width),
		ordinal: batch.Ordinal(ord),
		count:   int(count), payload: payload, cache: cache}
	return b.findChunks()
}

// findChunks records the offsets of the chunks and checks that they fill the payload.
func (b *shuffled) findChunks() error {
	n := (b.count + 1<<b.shift - 1) >> b.shift
	if n > (len(b.payload)-shuffleHeaderLen)/chunkHeaderLen {
		return fault.Corruptf("encoding: bitshuffle: %d values of %d bytes in a payload of %d", b.count,
			b.width, len(b.payload))
	}
	if b.chunks = b.inline[:0]; n > inlineChunks {
		b.chunks = make([]uint32, 0, n)
	}
	offset := shuffleHeaderLen
	for range n {
		b.chunks = append(b.chunks, uint32(offset))
		if len(b.payload)-offset < chunkHeaderLen {
			return fault.Corruptf("encoding: bitshuffle: chunk %d of %d: no length", len(b.chunks)-1, n)
		}
		size := binary.BigEndian.Uint32(b.payload[offset:])
		if offset += chunkHeaderLen; uint64(size) > uint64(len(b.payload)-offset) {
			return fault.Corruptf("encoding: bitshuffle: chunk %d of %d: %d bytes, %d left", len(b.chunks)-1, n,
				size, len(b.payload)-offset)
		}
		offset += int(size)
	}
	if offset != len(b.payload) {
		return fault.Corruptf("encoding: bitshuffle: %d bytes after the last chunk", len(b.payload)-offset)
	}
	return nil
}

func (b *shuffled) Ordinal() batch.Ordinal { return b.ordinal }
func (b *shuffled) Len() int               { return b.count }

// Footprint includes the chunk and the walk that the block may keep.
func (b *shuffled) Footprint() int {
	n := int(unsafe.Sizeof(*b) + unsafe.Sizeof(chunkBuffer{}))
	if len(b.chunks) > inlineChunks {
		n += 4 * cap(b.chunks)
	}
	if b.cache != nil {
		n += walkBytes(len(b.chunks), b.width) + len(b.chunks)*b.width
	}
	return n
}

// chunkCells returns the number of cells of chunk i, including padding.
func (b *shuffled) chunkCells(i int) int {
	return min((b.count+7)&^7-i<<b.shift, 1<<b.shift)
}

// decodeChunk decodes chunk i into dst, of chunkCells(i) × width bytes.
func (b *shuffled) decodeChunk(i int, dst []byte) error {
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	v, err := b.view(i, buf)
	if err == nil {
		v.cells(dst)
	}
	return err
}

// take makes the cells of chunk i available until the next call of give, with the buffer to pass to
// it, which is nil if the cache owns the chunk.
//
// keep means that more cells of the chunk will be read one by one, so that it should be added to
// the cache.
func (b *shuffled) take(i int, keep bool) (cells []byte, buf *chunkBuffer, err error) {
	size := b.chunkCells(i) * b.width
	if b.cache != nil {
		if cells = b.cache.Get(i); len(cells) == size {
			return cells, nil, nil
		}
		if keep {
			cells = make([]byte, size)
			if err := b.decodeChunk(i, cells); err != nil {
				return nil, nil, err
			}
			b.cache.Put(i, cells)
			return cells, nil, nil
		}
	}
	if buf = b.kept.Swap(nil); buf == nil {
		buf = chunkBuffers.Get().(*chunkBuffer)
		buf.block = nil // it may contain a chunk of an earlier block, or of this one
	}
	if buf.block != b || buf.index != i {
		buf.block = nil
		if err := b.decodeChunk(i, buf.cells[:size]); err != nil {
			chunkBuffers.Put(buf)
			return nil, nil, err
		}
		buf.block, buf.index = b, i
	}
	return buf.cells[:size], buf, nil
}

// give returns the buffer of a chunk.
func (b *shuffled) give(buf *chunkBuffer) {
	if buf != nil && !b.kept.CompareAndSwap(nil, buf) {
		buf.block = nil
		chunkBuffers.Put(buf)
	}
}

// decode writes values [from, from+n), width bytes each, to dst.
func (b *shuffled) decode(from, n int, dst []byte) error {
	goesOn := b.end.Swap(uint32(from+n)) == uint32(from)
	for n > 0 {
		i := from >> b.shift
		skip := from - i<<b.shift
		k := min(n, 1<<b.shift-skip)
		part := dst[:k*b.width]
		if skip == 0 && k == b.chunkCells(i) {
			if err := b.decodeChunk(i, part); err != nil {
				return err
			}
		} else if err := b.decodePart(i, skip, part, goesOn); err != nil {
			return err
		}
		from, n, dst = from+k, n-k, dst[len(part):]
	}
	return nil
}

// fewCells is the fraction of a chunk's cells below which only the requested cells are decoded.
const fewCells = 4

// decodePart writes len(dst)/width cells of chunk i to dst, starting with cell skip. If they are
// few, and do not continue the previous call, it decodes only them.
func (b *shuffled) decodePart(i, skip int, dst []byte, goesOn bool) error {
	var cells []byte
	var buf *chunkBuffer
	var err error
	if b.cache == nil || goesOn || fewCells*len(dst) > b.chunkCells(i)*b.width {
		cells, buf, err = b.take(i, false)
	} else {
		cells, buf, err = b.near(i)
	}
	switch {
	case err != nil:
		return err
	case cells == nil:
		return b.gatherCells(i, skip, dst)
	}
	copy(dst, cells[skip*b.width:])
	b.give(buf)
	return nil
}

// gatherCells writes cells of chunk i, which is not decoded, to dst, starting with cell skip.
func (b *shuffled) gatherCells(i, skip int, dst []byte) error {
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	v, err := b.viewOne(i, buf)
	if err == nil {
		v.someCells(dst, skip)
	}
	return err
}

// decode32 writes values [from, from+n) of a uint32 payload, narrowed or not, to dst, and returns
// their maximum, or 0 if n is 0.
func (b *shuffled) decode32(from int, dst []uint32) (greatest uint32, err error) {
	if b.width == 4 {
		if err := b.decode(from, len(dst), uint32Bytes(dst)); err != nil {
			return 0, err
		}
		for _, v := range dst {
			greatest = max(greatest, v)
		}
		return greatest, nil
	}
	buf := chunkBuffers.Get().(*chunkBuffer)
	defer chunkBuffers.Put(buf)
	buf.block = nil
	for len(dst) > 0 {
		k := min(len(dst), 1<<b.shift-from&(1<<b.shift-1))
		cells := buf.cells[:k*b.width]
		if err := b.decode(from, k, cells); err != nil {
			return 0, err
		}
		greatest = max(greatest, widen(dst[:k], cells, b.width))
		from, dst = from+k, dst[k:]
	}
	return greatest, nil
}

// widen converts len(dst) cells of 1 or 2 bytes to uint32 and returns the maximum.
func widen(dst []uint32, cells []byte, width int) (greatest uint32) {
	if width == 1 {
		var even, odd uint32 // two maxima, so that neither computation waits for the other
		for ; len(dst) >= 8; dst, cells = dst[8:], cells[8:] {
			c, d := (*[8]byte)(cells), (*[8]uint32)(dst)
			v0, v1, v2, v3 := uint32(c[0]), uint32(c[1]), uint32(c[2]), uint32(c[3])
			v4, v5, v6, v7 := uint32(c[4]), uint32(c[5]), uint32(c[6]), uint32(c[7])
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = v0, v1, v2, v3, v4, v5, v6, v7
			even = max(even, max(max(v0, v2), max(v4, v6)))
			odd = max(odd, max(max(v1, v3), max(v5, v7)))
		}
		greatest = max(even, odd)
		for i := range dst {
			v := uint32(cells[i])
			dst[i], greatest = v, max(greatest, v)
		}
		return greatest
	}
	for i := range dst {
		v := uint32(binary.LittleEndian.Uint16(cells[2*i:]))
		dst[i], greatest = v, max(greatest, v)
	}
	return greatest
}

// uint32Bytes returns the memory of v.
func uint32Bytes(v []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func (b *shuffled) Decode(from, n int, dst *batch.Vector, at int) error {
	if b.width != b.typ.Width() {
		_, err := b.decode32(from, batch.Raw[uint32](dst)[at:at+n])
		return err
	}
	return b.decode(from, n, dst.Data[at*b.width:(at+n)*b.width])
}

// Cell decodes only value i if its chunk is not in the cache and was not read recently.
func (b *shuffled) Cell(i int) ([]byte, error) {
	var cell []byte
	cells, buf, err := b.near(i >> b.shift)
	switch {
	case err != nil:
		return nil, err
	case cells == nil:
		cell = make([]byte, b.typ.Width())
		return cell, b.gather(i, cell[:b.width])
	}
	o := (i & (1<<b.shift - 1)) * b.width
	cell = cells[o : o+b.width : o+b.width]
	if buf != nil || b.width != b.typ.Width() {
		wide := make([]byte, b.typ.Width())
		copy(wide, cell)
		cell = wide
	}
	b.give(buf)
	return cell, nil
}

// uint32At returns value i of a uint32 payload.
func (b *shuffled) uint32At(i int) (uint32, error) {
	cells, buf, err := b.near(i >> b.shift)
	if err != nil {
		return 0, err
	}
	if cells == nil {
		var cell [4]byte
		err := b.gather(i, cell[:b.width])
		return binary.LittleEndian.Uint32(cell[:]), err
	}
	o := (i & (1<<b.shift - 1)) * b.width
	v := uint32(load64(cells[o : o+b.width]))
	b.give(buf)
	return v, nil
}

// near takes chunk c for a read of a few cells if decoding all of it is worthwhile: if there is no
// cache, if the chunk is in the cache, or if it was among the chunks read last. Otherwise cells is
// nil. Decoding a chunk of 8 KiB for one cell would evict other chunks, and whole rows, from the
// cache.
func (b *shuffled) near(c int) (cells []byte, buf *chunkBuffer, err error) {
	if b.cache == nil {
		return b.take(c, true)
	}
	if cells = b.cache.Get(c); len(cells) == b.chunkCells(c)*b.width {
		return cells, nil, nil
	}
	tag, last := uint64(c)&0x7fff|0x8000, b.asked.Load()
	for rest := last; rest != 0; rest >>= 16 {
		if rest&0xffff == tag {
			return b.take(c, true)
		}
	}
	b.asked.CompareAndSwap(last, last<<16|tag)
	return nil, nil, nil
}

// gather reads value i, whose chunk is not decoded, from one bit of each plane.
func (b *shuffled) gather(i int, cell []byte) error {
	buf := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(buf)
	v, err := b.viewOne(i>>b.shift, buf)
	if err != nil {
		return err
	}
	words := v.cell(i & (1<<b.shift - 1))
	var wide [maxWidth]byte
	words.put(&wide)
	copy(cell, wide[:])
	return nil
}

func (b *shuffled) Seek(target []byte) (int, bool, error) {
	if err := checkTarget(b.typ, target); err != nil {
		return 0, false, err
	}
	return b.search(target, orderTo(b.typ, target))
}

// orderTo returns a function that compares cells of a type, as stored, with target.
func orderTo(t schema.Type, target []byte) func(cell []byte) int {
	return func(cell []byte) int {
		if len(cell) == len(target) {
			return batch.Compare(t, cell, target)
		}
		var wide [4]byte
		copy(wide[:], cell)
		return batch.Compare(t, wide[:], target)
	}
}

// search finds the first of the sorted values for which order, which compares a value with the
// target, returns at least 0, and reports whether it returns 0. It does a binary search over the
// first values of the chunks, then searches the cells of one chunk. target may be nil.
func (b *shuffled) search(target []byte, order func(cell []byte) int) (i int, exact bool, err error) {
	lo, hi := 0, len(b.chunks) // the chunks before lo begin below the target
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		first, err := b.firstCell(mid)
		if err != nil {
			return 0, false, err
		}
		if order(first[:b.width]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		n := min(b.count-(lo-1)<<b.shift, 1<<b.shift)
		if i, exact, err = b.searchChunk(lo-1, n, target, order); err != nil {
			return 0, false, err
		}
		if i += (lo - 1) << b.shift; exact || i < lo<<b.shift || i >= b.count {
			return i, exact, nil
		}
	}
	// The result is the first value of chunk lo, if there is such a chunk.
	if lo == len(b.chunks) {
		return b.count, false, nil
	}
	first, err := b.firstCell(lo)
	if err != nil {
		return 0, false, err
	}
	return lo << b.shift, order(first[:b.width]) == 0, nil
}

// firstCell returns the first value of chunk i. A block that stays in the cache remembers the first
// values of all chunks: to decode a chunk for each comparison would take longer than all else.
func (b *shuffled) firstCell(i int) (cell [maxWidth]byte, err error) {
	firsts := b.firsts.Load()
	if firsts == nil && b.cache == nil {
		cells, buf, err := b.take(i, false)
		if err == nil {
			copy(cell[:], cells[:b.width])
			b.give(buf)
		}
		return cell, err
	}
	if firsts == nil {
		all := make([]byte, len(b.chunks)*b.width)
		for k := range b.chunks {
			if err := b.gather(k<<b.shift, all[k*b.width:][:b.width]); err != nil {
				return cell, err
			}
		}
		firsts = &all
		b.firsts.Store(firsts)
	}
	copy(cell[:], (*firsts)[i*b.width:][:b.width])
	return cell, nil
}

// searchChunk is search among the n values of chunk c. It decodes all of them, or only those that it
// compares, as near says.
func (b *shuffled) searchChunk(c, n int, target []byte, order func(cell []byte) int) (i int, exact bool, err error) {
	cells, buf, err := b.near(c)
	if err != nil {
		return 0, false, err
	}
	if cells != nil {
		i, exact = searchNear(n, guess(b.typ, cells[:n*b.width], n, target),
			func(i int) int { return order(cells[i*b.width:][:b.width]) })
		b.give(buf)
		return i, exact, nil
	}
	memory := viewBuffers.Get().(*viewBuffer)
	defer viewBuffers.Put(memory)
	v, err := b.viewOne(c, memory)
	if err != nil {
		return 0, false, err
	}
	i, exact = v.search(n, b.width, order)
	return i, exact, nil
}

// search is shuffled.search among the first n cells of v, of the given width.
func (v *planeView) search(n, width int, order func(cell []byte) int) (i int, exact bool) {
	var cell [maxWidth]byte
	return searchOrdered(n, func(i int) int {
		v.cell(i).put(&cell)
		return order(cell[:width])
	})
}

// searchOrdered returns the first of n for which order, which ascends, returns at least 0, and reports
// whether it returns 0.
func searchOrdered(n int, order func(i int) int) (i int, exact bool) {
	return sort.Find(n, func(i int) int { return -order(i) })
}
