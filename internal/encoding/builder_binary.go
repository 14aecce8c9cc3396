package encoding

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
)

// binaryBuilder makes PLAIN payloads of byte strings.
type binaryBuilder struct {
	ends
	blockBytes int
	values     []byte
	offsets    []uint32 // of each value in the payload
	size       int      // of the payload, as Kudu estimates it: exact up to the last group's padding
}

func (b *binaryBuilder) Append(v *batch.Vector, from, to int) int {
	before, i := b.Len(), from
	for ; i < to && !b.Full(); i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, i)
	return i - from
}

func (b *binaryBuilder) AppendAll(v *batch.Vector, from, to int) {
	before := b.Len()
	for i := from; i < to; i++ {
		b.add(byteString(v, i))
	}
	b.note(before, v, from, to)
}

// add appends one value.
func (b *binaryBuilder) add(value []byte) {
	offset := uint32(binaryHeaderLen + len(b.values))
	b.size += sizeOf(len(b.offsets), offset, value)
	b.offsets = append(b.offsets, offset)
	b.values = append(b.values, value...)
}

// sizeOf returns how much value i, at offset, adds to binaryBuilder.size.
func sizeOf(i int, offset uint32, value []byte) int {
	size := (bits.Len32(offset)+7)/8 + len(value)
	if i%4 == 0 {
		size++ // selector of a group
	}
	return size
}

// fits reports whether Append would add all values.
func (b *binaryBuilder) fits(values [][]byte) bool {
	size, offset := b.size, binaryHeaderLen+len(b.values)
	for i, value := range values {
		if size > b.blockBytes {
			return false
		}
		size += sizeOf(len(b.offsets)+i, uint32(offset), value)
		offset += len(value)
	}
	return true
}

// value returns value i, which is valid until the next change of b.
func (b *binaryBuilder) value(i int) []byte {
	from, to := int(b.offsets[i])-binaryHeaderLen, len(b.values)
	if i+1 < len(b.offsets) {
		to = int(b.offsets[i+1]) - binaryHeaderLen
	}
	return b.values[from:to:to]
}

func (b *binaryBuilder) Full() bool { return b.size > b.blockBytes }
func (b *binaryBuilder) Len() int   { return len(b.offsets) }

func (b *binaryBuilder) Reset() {
	b.values, b.offsets, b.size = b.values[:0], b.offsets[:0], binaryHeaderLen
}

func (b *binaryBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(ord))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.offsets)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(binaryHeaderLen+len(b.values)))
	dst = append(dst, b.values...)
	return coding.AppendGroupVarintSeq(dst, b.offsets)
}

// prefixBuilder makes PREFIX payloads.
type prefixBuilder struct {
	ends
	blockBytes, interval int
	entries              []byte
	restarts             []uint32 // offsets in entries; the first entry is not listed
	previous             []byte
	n                    int
}

func (b *prefixBuilder) Append(v *batch.Vector, from, to int) int {
	return b.append(v, from, to, b.blockBytes)
}

func (b *prefixBuilder) AppendAll(v *batch.Vector, from, to int) {
	b.append(v, from, to, math.MaxInt)
}

// append appends cells [from, to) of v until the entries have more than limit bytes. It returns how
// many it appended.
func (b *prefixBuilder) append(v *batch.Vector, from, to, limit int) int {
	before, i, previous := b.n, from, b.previous
	for ; i < to && len(b.entries) <= limit; i++ {
		value := byteString(v, i)
		shared := 0
		if b.n%b.interval != 0 {
			shared = commonPrefix(previous, value)
		} else if b.n > 0 {
			b.restarts = append(b.restarts, uint32(len(b.entries)))
		}
		if shared|(len(value)-shared) < 1<<7 {
			b.entries = append(b.entries, byte(shared), byte(len(value)-shared)) // nearly all
		} else {
			b.entries = coding.AppendUvarint32(b.entries, uint32(shared))
			b.entries = coding.AppendUvarint32(b.entries, uint32(len(value)-shared))
		}
		b.entries = append(b.entries, value[shared:]...)
		previous = value
		b.n++
	}
	if i > from {
		b.previous = append(b.previous[:0], previous...)
	}
	b.note(before, v, from, i)
	return i - from
}

func (b *prefixBuilder) Full() bool { return len(b.entries) > b.blockBytes }
func (b *prefixBuilder) Len() int   { return b.n }

func (b *prefixBuilder) Reset() {
	b.entries, b.restarts, b.previous, b.n = b.entries[:0], b.restarts[:0], b.previous[:0], 0
}

func (b *prefixBuilder) Finish(dst []byte, ord batch.Ordinal) []byte {
	start := len(dst)
	dst = coding.AppendGroupVarint(dst, uint32(b.n), uint32(ord), uint32(b.interval), 0)
	header := uint32(len(dst) - start)
	dst = append(dst, b.entries...)
	for _, r := range b.restarts {
		dst = binary.LittleEndian.AppendUint32(dst, header+r)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(b.restarts)))
}
