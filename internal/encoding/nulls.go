package encoding

import (
	"math/bits"
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
)

// Prologue of a data cblock of a nullable column; the payload proper follows. Source: cfile spec
// §7.1.
//
//	width   field   meaning
//	varint  rows    rows of the cblock, NULLs included
//	varint  size    bytes of the next field
//	size    bitmap  runs (see rle.go) of rows values of one bit: 1 is present, 0 is NULL
//
// 10, NULL, NULL, 20, 30, NULL: 06 02 03 19

// bitmapWriters are reused for the next prologue.
var bitmapWriters = sync.Pool{New: func() any { return new(runWriter) }}

// AppendNullPrologue appends the prologue for rows rows, of which those with a 1 in present have a
// value; nil means all. The bytes equal Kudu's.
func AppendNullPrologue(dst []byte, rows int, present batch.Bitmap) []byte {
	w := bitmapWriters.Get().(*runWriter)
	defer bitmapWriters.Put(w)
	w.reset(1)
	if present == nil {
		w.put(1, rows)
	}
	for i := 0; present != nil && i < rows; {
		n := sameBits(present, i, rows)
		w.put(uint64(present[i>>6]>>(uint(i)&63)&1), n)
		i += n
	}
	stream := w.finish()
	dst = coding.AppendUvarint32(dst, uint32(rows))
	dst = coding.AppendUvarint32(dst, uint32(len(stream)))
	return append(dst, stream...)
}

// sameBits returns the length of the run of bits equal to bit i that begins at i and ends by end.
func sameBits(b batch.Bitmap, i, end int) int {
	flip := -(b[i>>6] >> (uint(i) & 63) & 1) // all ones if bit i is 1, to find the first 0
	from := i
	for i < end {
		if x := (b[i>>6] ^ flip) >> (uint(i) & 63); x != 0 {
			return min(i+bits.TrailingZeros64(x), end) - from
		}
		i = i&^63 + 64
	}
	return end - from
}
