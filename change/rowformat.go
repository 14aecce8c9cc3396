package change

import (
	"encoding/binary"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// A row image contains the cells of one row for all n columns of a schema.
//
//	width      field
//	⌈n/8⌉      NULL bitmap, bit i (lowest first) is column i, 1 = NULL; only if the schema has a nullable column
//	fixed part, the columns in schema order:
//	  Width    a column of fixed width: its cell, little-endian; zeros for NULL
//	  4        a byte string: its end offset in the heap, uint32; it begins where the previous one ends
//	rest       heap: the byte strings, back to back; nothing for NULL
//
// Each row has exactly one valid image: unused bits and the cells of NULLs are zero, and the heap
// ends with the last byte string.
//
// (INT32 key 7, nullable INT32 NULL, nullable STRING "hi"):
// 02 07 00 00 00 00 00 00 00 02 00 00 00 68 69
const endWidth = 4 // bytes of an end offset; file format: never change

// RowFormat describes where the cells are in the row images of one schema. It is immutable and safe
// for concurrent use.
type RowFormat struct {
	schema  *schema.Schema
	columns []slot
	bitmap  int // bytes of the NULL bitmap
	head    int // bytes before the heap
	strings int // number of byte-string columns
	last    int // offset of the last byte string's end; −1 if there is no byte string
}

// slot is the position of one column.
type slot struct {
	off      int // of the cell, or of the byte string's end, from the start of the image
	prev     int // offset of the previous byte string's end; −1 for the first
	width    int // 0 = byte string
	nullable bool
}

// NewRowFormat returns the format of s's row images.
func NewRowFormat(s *schema.Schema) *RowFormat {
	f := &RowFormat{schema: s, columns: make([]slot, len(s.Columns)), last: -1}
	for i := range s.Columns {
		if s.Columns[i].Nullable {
			f.bitmap = (len(s.Columns) + 7) / 8
		}
	}
	f.head = f.bitmap
	for i := range s.Columns {
		c := &f.columns[i]
		*c = slot{off: f.head, prev: f.last, width: s.Columns[i].Type.Width(), nullable: s.Columns[i].Nullable}
		if c.width == 0 {
			f.last = f.head
			f.strings++
			f.head += endWidth
		} else {
			f.head += c.width
		}
	}
	return f
}

// Schema returns the schema of the format.
func (f *RowFormat) Schema() *schema.Schema { return f.schema }

// AppendRow appends the image of a row with the given cells, one for each column in schema order.
// It panics if a cell is NULL in a column that is not nullable, or has the wrong width.
func (f *RowFormat) AppendRow(dst []byte, cells [][]byte) []byte {
	at := len(dst)
	dst = appendZeros(dst, f.head)
	for i, cell := range cells[:len(f.columns)] {
		c := &f.columns[i]
		switch {
		case cell == nil:
			if !c.nullable {
				panic(fmt.Sprintf("change: NULL in column %q, which is not nullable", f.schema.Columns[i].Name))
			}
			dst[at+i>>3] |= 1 << (i & 7)
			if c.width == 0 {
				putEnd(dst[at:], c.off, len(dst)-at-f.head)
			}
		case c.width == 0:
			dst = append(dst, cell...)
			putEnd(dst[at:], c.off, len(dst)-at-f.head)
		case len(cell) != c.width:
			panic(fmt.Sprintf("change: %d bytes in column %q of width %d", len(cell), f.schema.Columns[i].Name,
				c.width))
		default:
			copy(dst[at+c.off:], cell)
		}
	}
	return dst
}

func appendZeros(dst []byte, n int) []byte {
	const chunk = 64
	var zeros [chunk]byte
	for ; n > chunk; n -= chunk {
		dst = append(dst, zeros[:]...)
	}
	return append(dst, zeros[:n]...)
}

func putEnd(row []byte, off, end int) { binary.LittleEndian.PutUint32(row[off:], uint32(end)) }

func endAt(row []byte, off int) int {
	if off < 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(row[off:]))
}

// RowSize returns the length of the image of a row with the given cells, as of AppendRow.
func (f *RowFormat) RowSize(cells [][]byte) int {
	n := f.head
	for i, cell := range cells[:len(f.columns)] {
		if f.columns[i].width == 0 {
			n += len(cell)
		}
	}
	return n
}

// Size returns the length of the image of row i of vectors, one for each column in schema order.
func (f *RowFormat) Size(vectors []*batch.Vector, i int) int {
	n := f.head
	for c, v := range vectors {
		if f.columns[c].width == 0 {
			n += len(v.Cell(i))
		}
	}
	return n
}

// isNull reports whether column col's bit is set; only for formats with a bitmap.
func isNull(row []byte, col int) bool { return row[col>>3]>>(col&7)&1 != 0 }

// Cell returns the cell of one column, nil for NULL; it aliases row.
func (f *RowFormat) Cell(row []byte, col int) []byte {
	c := &f.columns[col]
	if c.nullable && isNull(row, col) {
		return nil
	}
	if c.width != 0 {
		return row[c.off : c.off+c.width : c.off+c.width]
	}
	from, to := f.head+endAt(row, c.prev), f.head+endAt(row, c.off)
	return row[from:to:to]
}

// AppendCells appends all cells of a row to dst, in schema order; they alias row.
func (f *RowFormat) AppendCells(dst [][]byte, row []byte) [][]byte {
	for i := range f.columns {
		dst = append(dst, f.Cell(row, i))
	}
	return dst
}

// Check returns an error unless row is an image of this format: offsets ascend within the heap,
// columns that are not nullable have no NULL, and AppendRow could have written the bytes. Errors:
// ErrCorrupt, with the column.
func (f *RowFormat) Check(row []byte) error {
	if len(row) < f.head {
		return fault.Corruptf("row image: %d bytes, want at least %d", len(row), f.head)
	}
	if n := len(f.columns); f.bitmap > 0 && n&7 != 0 && row[f.bitmap-1]>>(n&7) != 0 {
		return fault.Corruptf("row image: NULL bits after the last of %d columns", n)
	}
	heap, end := len(row)-f.head, 0
	for i := range f.columns {
		c := &f.columns[i]
		null := f.bitmap > 0 && isNull(row, i)
		if null && !c.nullable {
			return fault.Corruptf("row image: column %d is NULL, but not nullable", i)
		}
		if c.width != 0 {
			if null && !allZero(row[c.off:c.off+c.width]) {
				return fault.Corruptf("row image: column %d is NULL and has a value", i)
			}
			continue
		}
		next := endAt(row, c.off)
		if next < end || next > heap || null && next != end {
			return fault.Corruptf("row image: column %d: byte string [%d, %d) of a heap of %d bytes", i,
				end, next, heap)
		}
		if col := &f.schema.Columns[i]; col.Type == schema.Array && !null {
			if err := schema.CheckArray(col.Element, row[f.head+end:f.head+next]); err != nil {
				return fmt.Errorf("row image: column %d: %w", i, err)
			}
		}
		end = next
	}
	if end != heap {
		return fault.Corruptf("row image: %d bytes after the last byte string", heap-end)
	}
	return nil
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
