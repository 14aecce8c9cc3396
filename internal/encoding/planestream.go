package encoding

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/compress"
)

// A chunk's rows are 8·width planes: plane i has bit i of every cell, 8·byte + bit. The functions
// here write them as an LZ4 block in which each plane that is not constant is one piece, so that
// a reader finds it without decompressing the block (see recognize.go). Constant planes, and
// repetitions of a plane, become matches. Every match ends with a plane, except the last match if
// the rules for the end of an LZ4 block shorten it. Source: planes spec §2.

// appendPlanes appends planes of row bytes each as one LZ4 block, at most 34 bytes longer than
// rows.
func appendPlanes(dst, rows []byte, row int) []byte {
	literal := 0 // what comes before this is in dst
	for at := 0; at < len(rows); {
		plane := rows[at : at+row]
		end := at + row
		for end < len(rows) && bytes.Equal(rows[end:end+row], plane) {
			end += row
		}
		offset, from := row, at+row
		if constantRow(plane) {
			offset, from = 1, at+1
		}
		stop := min(end, len(rows)-compress.LZ4LastLiterals)
		if stop-from >= compress.LZ4MinMatch && from <= len(rows)-compress.LZ4LastMatch {
			dst = compress.AppendLZ4Sequence(dst, rows[literal:from], offset, stop-from)
			literal = stop
		}
		at = end
	}
	return compress.AppendLZ4Sequence(dst, rows[literal:], 0, 0)
}

// constantRow reports whether all bits of a plane are equal.
func constantRow(plane []byte) bool {
	return plane[0]+1 <= 1 && bytes.Equal(plane[1:], plane[:len(plane)-1])
}

const (
	// A chunk is stored in real LZ4 if that has at most this percentage of the bytes. Sorted
	// numbers, for example, take half of them if LZ4 may find repetitions inside of planes.
	realPercent = 85
	// Both forms are compared for one of this many chunks, and the result is used for those that
	// follow. For lineitem that makes no difference in bytes, and writing numbers takes a quarter
	// less CPU time than with both forms of all chunks.
	comparedChunks = 8
)

// chunkPacker writes the LZ4 blocks of the chunks of a payload.
type chunkPacker struct {
	exact bool   // Kudu's form: real LZ4
	next  int    // index of the next chunk
	real  bool   // real LZ4 is smaller
	lz4   []byte // working memory
}

// reset begins a payload.
func (p *chunkPacker) reset(exact bool) { p.exact, p.next = exact, 0 }

// append appends the LZ4 block of the next chunk, of planes of row bytes.
func (p *chunkPacker) append(dst, rows []byte, row int) []byte {
	i := p.next
	p.next++
	switch {
	case p.exact:
		return compress.LZ4CompressChunk(dst, rows)
	case i%comparedChunks == 0:
		start := len(dst)
		dst = appendPlanes(dst, rows, row)
		p.lz4 = compress.LZ4CompressChunk(p.lz4[:0], rows)
		if p.real = 100*len(p.lz4) <= realPercent*(len(dst)-start); p.real {
			dst = append(dst[:start], p.lz4...)
		}
		return dst
	case p.real:
		return compress.LZ4CompressChunk(dst, rows)
	}
	return appendPlanes(dst, rows, row)
}
