package change

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/keyenc"
)

// Gather reads one column of many row images into dst, which it resets to len(rows) cells of the
// column's type. Byte strings alias the images. Cells of fixed width are copied by a loop for each
// width.
func (f *RowFormat) Gather(rows [][]byte, col int, dst *batch.Vector) {
	c := &f.columns[col]
	dst.Type = f.schema.Columns[col].Type
	dst.Reset(len(rows))
	if c.width == 0 {
		f.gatherStrings(rows, c, dst.Bytes)
	} else {
		gatherFixed(rows, c, dst.Data)
	}
	if !c.nullable {
		return
	}
	at, bit := col>>3, byte(1)<<(col&7)
	for i, row := range rows {
		if row[at]&bit != 0 {
			dst.NeedPresent().Clear(i)
			if c.width == 0 {
				dst.Bytes[i] = nil
			}
		}
	}
}

func gatherFixed(rows [][]byte, c *slot, out []byte) {
	off := c.off
	switch c.width {
	case 1:
		for i, row := range rows {
			out[i] = row[off]
		}
	case 2:
		for i, row := range rows {
			binary.LittleEndian.PutUint16(out[2*i:], binary.LittleEndian.Uint16(row[off:]))
		}
	case 4:
		for i, row := range rows {
			binary.LittleEndian.PutUint32(out[4*i:], binary.LittleEndian.Uint32(row[off:]))
		}
	case 8:
		for i, row := range rows {
			binary.LittleEndian.PutUint64(out[8*i:], binary.LittleEndian.Uint64(row[off:]))
		}
	default:
		for i, row := range rows {
			copy(out[i*c.width:(i+1)*c.width], row[off:])
		}
	}
}

func (f *RowFormat) gatherStrings(rows [][]byte, c *slot, out [][]byte) {
	head, off := f.head, c.off
	if c.prev < 0 {
		for i, row := range rows {
			to := head + int(binary.LittleEndian.Uint32(row[off:]))
			out[i] = row[head:to:to]
		}
		return
	}
	prev := c.prev
	for i, row := range rows {
		from, to := head+int(binary.LittleEndian.Uint32(row[prev:])), head+int(binary.LittleEndian.Uint32(row[off:]))
		out[i] = row[from:to:to]
	}
}

// AppendVectorRows appends to buf the images of rows [from, to) of vectors given in schema order,
// and to ends, for each row, the offset in buf of the end of its image.
//
// A nil vector means a column that is not set: every row gets the column's default, or NULL. The
// vectors have no NULL in columns that are not nullable. Columns are written one after another.
func (f *RowFormat) AppendVectorRows(buf []byte, ends []int, vectors []*batch.Vector, from, to int) ([]byte, []int) {
	n := to - from
	if n <= 0 {
		return buf, ends
	}
	p := placement{starts: make([]int, n), heaps: make([]int, n)}
	sizes := p.heaps // first the size of each heap, then the filled bytes of it
	words := make([][][]byte, len(f.columns))
	for i := range f.columns {
		if f.columns[i].width == 0 {
			words[i] = f.stringCells(vectors[i], i, from, to)
			for k, cell := range words[i] {
				sizes[k] += len(cell)
			}
		}
	}
	at := len(buf)
	for k, size := range sizes {
		p.starts[k] = at
		at += f.head + size
		ends = append(ends, at)
		sizes[k] = 0
	}
	buf = grow(buf, at)
	for i := range f.columns {
		c := &f.columns[i]
		if c.width == 0 {
			f.putStrings(buf, &p, c, words[i])
		} else {
			f.putFixed(buf, &p, c, i, vectors[i], from)
		}
		if c.nullable {
			f.putNulls(buf, &p, i, vectors[i], from)
		}
	}
	return buf, ends
}

// placement has the positions of images while their columns are written: row k begins at starts[k]
// and has heaps[k] bytes in its heap.
type placement struct{ starts, heaps []int }

// grow extends buf to n bytes; the new ones are zero.
func grow(buf []byte, n int) []byte {
	if cap(buf) < n {
		larger := make([]byte, n, max(n, 2*cap(buf)))
		copy(larger, buf)
		return larger
	}
	at := len(buf)
	buf = buf[:n]
	clear(buf[at:])
	return buf
}

// stringCells returns the cells of a byte-string column for rows [from, to), nil or empty for NULL.
func (f *RowFormat) stringCells(v *batch.Vector, col, from, to int) [][]byte {
	if v != nil && v.Dict == nil && v.Present == nil {
		return v.Bytes[from:to]
	}
	cells := make([][]byte, to-from)
	for k := range cells {
		if v == nil {
			cells[k] = f.schema.Columns[col].Default
		} else {
			cells[k] = v.Cell(from + k)
		}
	}
	return cells
}

func (f *RowFormat) putStrings(buf []byte, p *placement, c *slot, cells [][]byte) {
	for k, cell := range cells {
		start := p.starts[k]
		copy(buf[start+f.head+p.heaps[k]:], cell)
		p.heaps[k] += len(cell)
		putEnd(buf[start:], c.off, p.heaps[k])
	}
}

// putFixed writes the cells of a column of fixed width. It also writes bytes for NULLs, which
// putNulls clears.
func (f *RowFormat) putFixed(buf []byte, p *placement, c *slot, col int, v *batch.Vector, from int) {
	off := c.off
	if v == nil {
		if d := f.schema.Columns[col].Default; d != nil {
			for _, start := range p.starts {
				copy(buf[start+off:], d)
			}
		}
		return
	}
	cells := v.Data[from*c.width:]
	switch c.width {
	case 1:
		for k, start := range p.starts {
			buf[start+off] = cells[k]
		}
	case 4:
		for k, start := range p.starts {
			binary.LittleEndian.PutUint32(buf[start+off:], binary.LittleEndian.Uint32(cells[4*k:]))
		}
	case 8:
		for k, start := range p.starts {
			binary.LittleEndian.PutUint64(buf[start+off:], binary.LittleEndian.Uint64(cells[8*k:]))
		}
	default:
		for k, start := range p.starts {
			copy(buf[start+off:start+off+c.width], cells[k*c.width:])
		}
	}
}

func (f *RowFormat) putNulls(buf []byte, p *placement, col int, v *batch.Vector, from int) {
	if v == nil && f.schema.Columns[col].Default != nil || v != nil && v.Present == nil {
		return
	}
	c := &f.columns[col]
	for k, start := range p.starts {
		if v == nil || !v.Present.Get(from+k) {
			buf[start+col>>3] |= 1 << (col & 7)
			clear(buf[start+c.off : start+c.off+c.width])
		}
	}
}

// AppendVectorKeys appends the encoded keys of rows [from, to) to dst. vectors has the key columns
// first, none of their cells NULL. The keys may alias the vectors' cells (see
// keyenc.Encoder.AppendKeys).
func AppendVectorKeys(dst [][]byte, e *keyenc.Encoder, vectors []*batch.Vector, from, to int) [][]byte {
	var few [8]keyenc.Column
	columns := few[:0]
	for _, v := range vectors[:e.Columns()] {
		v.Materialize()
		columns = append(columns, keyenc.Column{Data: v.Data, Bytes: v.Bytes})
	}
	return e.AppendKeys(dst, columns, from, to)
}
