package encoding

import (
	"github.com/oribi-db/oribi/internal/coding"
)

// Prologue of a data cblock of an array column; the payload proper, of the elements that are not
// NULL, follows. Source: cfile spec §7.2.
//
//	width   field     meaning
//	varint  elements  of all cells, NULL ones included
//	varint  cells     rows of the cblock, NULL and empty ones included
//	varint  size      bytes of the next field; 0 if there are no elements
//	size    present   runs (see rle.go) of one bit an element: 1 is present, 0 is NULL
//	varint  size      bytes of the next field
//	size    counts    runs of 16 bits a cell: its elements, 0 for a NULL or empty one
//	varint  size      bytes of the next field
//	size    whole     runs of one bit a cell: 1 is present, 0 is NULL; also where no cell can be NULL
//
// {1,2} {} NULL {3,4} {5,6,7,8} {NULL} {9}:
// 0a 07 04 10 01 03 02 0f 03 02 00 00 00 00 00 02 00 04 00 01 00 01 00 02 03 7b
const countBits = 16 // of a count; file format: never change

// MaxElements is the maximum number of elements of one array.
const MaxElements = 1<<countBits - 1

// ArrayPrologue builds the prologue of a cblock of arrays, byte for byte as Kudu does. Calls for
// cells and calls for elements may be interleaved: only the order within each kind matters. Call
// Reset before first use. For one goroutine.
type ArrayPrologue struct {
	present, counts, whole runWriter
	elements, cells        int
}

// Reset empties p.
func (p *ArrayPrologue) Reset() {
	p.present.reset(1)
	p.counts.reset(countBits)
	p.whole.reset(1)
	p.elements, p.cells = 0, 0
}

// AddCell appends a cell of n elements, at most MaxElements; it is not NULL.
func (p *ArrayPrologue) AddCell(n int) {
	p.counts.put(uint64(n), 1)
	p.whole.put(1, 1)
	p.cells++
}

// AddNulls appends n NULL cells.
func (p *ArrayPrologue) AddNulls(n int) {
	p.counts.put(0, n)
	p.whole.put(0, n)
	p.cells += n
}

// AddElements appends n elements that all are present or all NULL.
func (p *ArrayPrologue) AddElements(n int, present bool) {
	bit := uint64(0)
	if present {
		bit = 1
	}
	p.present.put(bit, n)
	p.elements += n
}

// Cells returns the number of cells since Reset, Elements the number of elements.
func (p *ArrayPrologue) Cells() int    { return p.cells }
func (p *ArrayPrologue) Elements() int { return p.elements }

// Finish appends the prologue to dst. The next call must be Reset.
func (p *ArrayPrologue) Finish(dst []byte) []byte {
	dst = coding.AppendUvarint32(dst, uint32(p.elements))
	dst = coding.AppendUvarint32(dst, uint32(p.cells))
	for _, w := range [...]*runWriter{&p.present, &p.counts, &p.whole} {
		stream := w.finish()
		dst = coding.AppendUvarint32(dst, uint32(len(stream)))
		dst = append(dst, stream...)
	}
	return dst
}
