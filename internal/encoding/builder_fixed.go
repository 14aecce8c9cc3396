package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// plainBuilder makes PLAIN payloads of fixed width.
type plainBuilder struct {
	width, blockBytes int
	cells             []byte
}

func (b *plainBuilder) Append(v *batch.Vector, from, to int) int {
	b.cells = append(b.cells, v.Data[from*b.width:to*b.width]...)
	return to - from
}

func (b *plainBuilder) AppendAll(v *batch.Vector, from, to int) { b.Append(v, from, to) }

func (b *plainBuilder) Full() bool    { return plainHeaderLen+len(b.cells) > b.blockBytes }
func (b *plainBuilder) Len() int      { return len(b.cells) / b.width }
func (b *plainBuilder) First() []byte { return b.cells[:b.width:b.width] }
func (b *plainBuilder) Last() []byte  { return b.cells[len(b.cells)-b.width:] }
func (b *plainBuilder) Reset()        { b.cells = b.cells[:0] }

func (b *plainBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	return append(appendPlainHeader(dst, ord, b.Len()), b.cells...)
}

// plainBoolBuilder makes PLAIN payloads of bool.
type plainBoolBuilder struct {
	blockBytes  int
	bits        []byte
	n           int
	first, last byte
}

func (b *plainBoolBuilder) Append(v *batch.Vector, from, to int) int {
	cells := v.Data[from:to]
	if len(cells) == 0 {
		return 0
	}
	if b.n == 0 {
		b.first = cells[0] & 1
	}
	b.last = cells[len(cells)-1] & 1
	for len(cells) > 0 {
		if b.n%8 == 0 && len(cells) >= 8 {
			b.bits = append(b.bits, gatherBits(binary.LittleEndian.Uint64(cells)))
			b.n, cells = b.n+8, cells[8:]
			continue
		}
		if b.n%8 == 0 {
			b.bits = append(b.bits, 0)
		}
		b.bits[b.n/8] |= cells[0] & 1 << (b.n % 8)
		b.n, cells = b.n+1, cells[1:]
	}
	return to - from
}

func (b *plainBoolBuilder) AppendAll(v *batch.Vector, from, to int) { b.Append(v, from, to) }

func (b *plainBoolBuilder) Full() bool    { return plainHeaderLen+len(b.bits) > b.blockBytes }
func (b *plainBoolBuilder) Len() int      { return b.n }
func (b *plainBoolBuilder) First() []byte { return boolCells[b.first] }
func (b *plainBoolBuilder) Last() []byte  { return boolCells[b.last] }
func (b *plainBoolBuilder) Reset()        { b.bits, b.n = b.bits[:0], 0 }

func (b *plainBoolBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	return append(appendPlainHeader(dst, ord, b.n), b.bits...)
}

// rleBuilder makes RLE payloads.
type rleBuilder struct {
	typ         schema.Type
	blockBytes  int
	runs        runWriter
	n           int
	first, last [8]byte
}

func (b *rleBuilder) Append(v *batch.Vector, from, to int) int {
	if from == to {
		return 0
	}
	width := b.typ.Width()
	cells := v.Data[from*width : to*width]
	if b.n == 0 {
		copy(b.first[:], cells[:width])
	}
	copy(b.last[:], cells[len(cells)-width:])
	mask := ^uint64(0) >> (64 - 8*width)
	if b.typ.Physical() == schema.Bool {
		mask = 1
	}
	for ; len(cells) >= 8; cells = cells[width:] {
		b.runs.put(binary.LittleEndian.Uint64(cells)&mask, 1)
	}
	for ; len(cells) > 0; cells = cells[width:] {
		b.runs.put(load64(cells)&mask, 1)
	}
	b.n += to - from
	return to - from
}

func (b *rleBuilder) AppendAll(v *batch.Vector, from, to int) { b.Append(v, from, to) }

// Full ignores the group that may still become part of a repeat.
func (b *rleBuilder) Full() bool    { return plainHeaderLen+len(b.runs.out) > b.blockBytes }
func (b *rleBuilder) Len() int      { return b.n }
func (b *rleBuilder) First() []byte { return b.first[:b.typ.Width()] }
func (b *rleBuilder) Last() []byte  { return b.last[:b.typ.Width()] }

func (b *rleBuilder) Reset() {
	b.n = 0
	if b.typ.Physical() == schema.Bool {
		b.runs.reset(1)
	} else {
		b.runs.reset(8 * b.typ.Width())
	}
}

func (b *rleBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	return append(appendPlainHeader(dst, ord, b.n), b.runs.finish()...)
}

// shuffleBuilder makes BIT_SHUFFLE payloads.
type shuffleBuilder struct {
	typ      schema.Type
	capacity int    // values
	exact    bool   // Kudu's bytes
	cells    []byte // as given, full width
	narrow   []byte // working memory for narrowed cells
	chunks   chunkPacker
}

func (b *shuffleBuilder) Append(v *batch.Vector, from, to int) int {
	n := min(to-from, b.capacity-b.Len())
	b.AppendAll(v, from, from+n)
	return n
}

func (b *shuffleBuilder) AppendAll(v *batch.Vector, from, to int) {
	w := b.typ.Width()
	copy(b.extend((to-from)*w), v.Data[from*w:to*w])
}

// extend appends n bytes of cells, which the caller fills. The memory of a payload that is not
// small is allocated at once.
func (b *shuffleBuilder) extend(n int) []byte {
	from, to := len(b.cells), len(b.cells)+n
	if to > cap(b.cells) {
		full := b.capacity * b.typ.Width()
		size := max(to, 2*cap(b.cells))
		if size > full/8 {
			size = max(size, full)
		}
		b.cells = append(make([]byte, 0, size), b.cells...)
	}
	b.cells = b.cells[:to]
	return b.cells[from:]
}

func (b *shuffleBuilder) Full() bool    { return b.Len() >= b.capacity }
func (b *shuffleBuilder) Len() int      { return len(b.cells) / b.typ.Width() }
func (b *shuffleBuilder) First() []byte { return b.cells[:b.typ.Width():b.typ.Width()] }
func (b *shuffleBuilder) Last() []byte  { return b.cells[len(b.cells)-b.typ.Width():] }
func (b *shuffleBuilder) Reset()        { b.cells = b.cells[:0] }

func (b *shuffleBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	start, count := len(dst), b.Len()
	cells, width := b.narrowed()
	padded := (count + 7) &^ 7
	dst = binary.LittleEndian.AppendUint32(dst, uint32(ord))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(count))
	dst = append(dst, 0, 0, 0, 0) // the size, below
	dst = binary.LittleEndian.AppendUint32(dst, uint32(padded))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(width))
	b.chunks.reset(b.exact)
	rows, pad := rowsBuffers.Get().(*rowsBuffer), rowsBuffers.Get().(*rowsBuffer)
	defer rowsBuffers.Put(rows)
	defer rowsBuffers.Put(pad)
	for left := padded * width; left > 0; left -= chunkBytes {
		size := min(left, chunkBytes)
		chunk := cells[:min(size, len(cells))]
		cells = cells[len(chunk):]
		if len(chunk) < size {
			clear(pad[copy(pad[:], chunk):size])
			chunk = pad[:size]
		}
		shuffle(rows[:size], chunk, size/width, width)
		at := len(dst)
		dst = b.chunks.append(append(dst, 0, 0, 0, 0), rows[:size], size/(8*width))
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-chunkHeaderLen))
	}
	binary.LittleEndian.PutUint32(dst[start+shuffleSizeOff:], uint32(len(dst)-start))
	return dst
}

// narrowed returns the cells and their width. For uint32 it is the least of 1, 2 and 4 bytes that
// the greatest cell fits: cells up to 255 have width 1.
func (b *shuffleBuilder) narrowed() (cells []byte, width int) {
	if b.typ != schema.Uint32 {
		return b.cells, b.typ.Width()
	}
	var seen uint64 // of pairs of cells
	c := b.cells
	for ; len(c) >= 8; c = c[8:] {
		seen |= binary.LittleEndian.Uint64(c)
	}
	seen |= seen >> 32
	if len(c) > 0 {
		seen |= uint64(binary.LittleEndian.Uint32(c))
	}
	n := len(b.cells) / 4
	switch greatest := uint32(seen); {
	case greatest <= 0xff:
		b.narrow = slices.Grow(b.narrow[:0], n)[:n]
		for i := range b.narrow {
			b.narrow[i] = b.cells[4*i]
		}
		return b.narrow, 1
	case greatest <= 0xffff:
		b.narrow = slices.Grow(b.narrow[:0], 2*n)[:2*n]
		for i := range n {
			b.narrow[2*i], b.narrow[2*i+1] = b.cells[4*i], b.cells[4*i+1]
		}
		return b.narrow, 2
	}
	return b.cells, 4
}
