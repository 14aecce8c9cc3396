package keyenc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Column has the cells of one key column, none of them NULL, in one of the two forms of a decoded
// vector: Data has Width bytes for each cell, little-endian, back to back; Bytes has one slice for
// each cell.
type Column struct {
	Data  []byte
	Bytes [][]byte
}

// AppendKeys appends the keys of rows [from, to) to dst. columns has one entry for each key column,
// with at least to cells.
//
// The keys are in one new buffer, except that the keys of a single byte-string column are the cells
// themselves. Columns are encoded one at a time in loops specialized by type, without a call for
// each cell. Source: tablet spec §3.1.
func (e *Encoder) AppendKeys(dst [][]byte, columns []Column, from, to int) [][]byte {
	n := to - from
	if n <= 0 {
		return dst
	}
	if len(e.columns) == 1 && e.fixed == 0 {
		return append(dst, columns[0].Bytes[from:to]...)
	}
	if e.fixed != 0 {
		return e.appendFixed(dst, columns, from, to)
	}

	// ends[i] is first the length of key i, then the position of its next column.
	ends := make([]int, n)
	for k := range e.columns {
		c := &e.columns[k]
		switch {
		case c.width != 0:
			for i := range ends {
				ends[i] += c.width
			}
		case c.last:
			for i, cell := range columns[k].Bytes[from:to] {
				ends[i] += len(cell)
			}
		default:
			for i, cell := range columns[k].Bytes[from:to] {
				ends[i] += len(cell) + bytes.Count(cell, zero) + 2
			}
		}
	}
	at := len(dst)
	dst = append(dst, make([][]byte, n)...)
	keys := dst[at:]
	total := 0
	for _, length := range ends {
		total += length
	}
	buf := make([]byte, total)
	start := 0
	for i, length := range ends {
		keys[i] = buf[start : start+length : start+length]
		ends[i] = start
		start += length
	}
	for k := range e.columns {
		c, column := &e.columns[k], &columns[k]
		switch {
		case c.width != 0:
			putIntegers(buf, ends, column.Data[from*c.width:to*c.width], c.width, c.signed)
		case c.last:
			for i, cell := range column.Bytes[from:to] {
				copy(buf[ends[i]:], cell)
			}
		default:
			for i, cell := range column.Bytes[from:to] {
				ends[i] = len(appendTerminated(buf[:ends[i]], cell)) // cannot grow: the length was counted above
			}
		}
	}
	return dst
}

var zero = []byte{0}

// appendFixed encodes keys that all have the same width.
func (e *Encoder) appendFixed(dst [][]byte, columns []Column, from, to int) [][]byte {
	n, w := to-from, e.fixed
	dst = slices.Grow(dst, n)
	buf := make([]byte, n*w)
	off := 0
	for k := range e.columns {
		c := &e.columns[k]
		putStrided(buf[off:], w, columns[k].Data[from*c.width:to*c.width], c.width, c.signed)
		off += c.width
	}
	for ; len(buf) > 0; buf = buf[w:] {
		dst = append(dst, buf[:w:w])
	}
	return dst
}

// putStrided writes the encoding of little-endian cells to out, stride bytes apart.
func putStrided(out []byte, stride int, cells []byte, width int, signed bool) {
	flip := flipOf(width, signed)
	o := 0
	switch width {
	case 1:
		for _, b := range cells {
			out[o] = b ^ byte(flip)
			o += stride
		}
	case 2:
		for ; len(cells) >= 2; cells = cells[2:] {
			binary.BigEndian.PutUint16(out[o:], binary.LittleEndian.Uint16(cells)^uint16(flip))
			o += stride
		}
	case 4:
		for ; len(cells) >= 4; cells = cells[4:] {
			binary.BigEndian.PutUint32(out[o:], binary.LittleEndian.Uint32(cells)^uint32(flip))
			o += stride
		}
	case 8:
		for ; len(cells) >= 8; cells = cells[8:] {
			binary.BigEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(cells)^flip)
			o += stride
		}
	case 16:
		for ; len(cells) >= 16; cells = cells[16:] {
			binary.BigEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(cells[8:])^flip)
			binary.BigEndian.PutUint64(out[o+8:], binary.LittleEndian.Uint64(cells))
			o += stride
		}
	}
}

// putIntegers writes the encoding of cell i at ends[i] of out and advances ends[i] past it.
func putIntegers(out []byte, ends []int, cells []byte, width int, signed bool) {
	flip := flipOf(width, signed)
	for i, o := range ends {
		cell := cells[i*width:]
		switch width {
		case 1:
			out[o] = cell[0] ^ byte(flip)
		case 2:
			binary.BigEndian.PutUint16(out[o:], binary.LittleEndian.Uint16(cell)^uint16(flip))
		case 4:
			binary.BigEndian.PutUint32(out[o:], binary.LittleEndian.Uint32(cell)^uint32(flip))
		case 8:
			binary.BigEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(cell)^flip)
		case 16:
			binary.BigEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(cell[8:])^flip)
			binary.BigEndian.PutUint64(out[o+8:], binary.LittleEndian.Uint64(cell))
		}
		ends[i] = o + width
	}
}

// flipOf returns the mask that the top word of a cell is XORed with: its top bit if signed.
func flipOf(width int, signed bool) uint64 {
	if !signed {
		return 0
	}
	return bits.RotateLeft64(1, min(width, 8)*8-1)
}
