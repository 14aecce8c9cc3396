package keyenc

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

func indexZero(b []byte) int { return bytes.IndexByte(b, 0) }

// Encoder encodes the keys of one schema. It is immutable and safe for concurrent use.
type Encoder struct {
	columns []keyColumn
	fixed   int // size of a key in bytes if no column is a byte string, else 0
}

// keyColumn has the properties of a key column that determine its encoding.
type keyColumn struct {
	typ    schema.Type
	width  int // 0 = byte string
	signed bool
	last   bool
}

// NewEncoder returns the encoder for the primary key of s.
func NewEncoder(s *schema.Schema) *Encoder {
	e := &Encoder{columns: make([]keyColumn, s.Keys)}
	for i := range e.columns {
		t := s.Columns[i].Type
		e.columns[i] = keyColumn{typ: t, width: t.Width(), signed: signed(t), last: i == s.Keys-1}
		e.fixed += t.Width()
	}
	for i := range e.columns {
		if e.columns[i].width == 0 {
			e.fixed = 0
		}
	}
	return e
}

// Columns returns the number of key columns.
func (e *Encoder) Columns() int { return len(e.columns) }

// Width returns the size of every key in bytes, or 0 if keys differ in size.
func (e *Encoder) Width() int { return e.fixed }

// AppendKey appends the key of a row. cells starts with one cell for each key column; further cells
// are ignored.
func (e *Encoder) AppendKey(dst []byte, cells [][]byte) []byte {
	return e.AppendPrefix(dst, cells[:len(e.columns)])
}

// AppendPrefix appends the encoding of the first len(cells) key columns, at most all: the smallest
// key whose first columns have these values, and a prefix of all such keys. Byte strings that are
// not the last key column have their terminator, so ("ab") of a compound key is not a prefix of
// ("abc", …).
func (e *Encoder) AppendPrefix(dst []byte, cells [][]byte) []byte {
	for i, cell := range cells {
		dst = e.AppendCell(dst, i, cell)
	}
	return dst
}

// AppendCell appends the encoding of key column i. A key consists of the encodings of all key
// columns, one after another.
func (e *Encoder) AppendCell(dst []byte, i int, cell []byte) []byte {
	c := &e.columns[i]
	switch {
	case c.width != 0:
		return appendInteger(dst, cell, c.signed)
	case c.last:
		return append(dst, cell...)
	}
	return appendTerminated(dst, cell)
}

// Decode decodes a key into one cell for each key column. The caller owns the cells. It returns
// ErrCorrupt for bytes that AppendKey never produces. Source: tablet spec §3.3.
func (e *Encoder) Decode(key []byte) (cells [][]byte, err error) {
	if cells, _, err = e.AppendCells(make([][]byte, 0, len(e.columns)), make([]byte, 0, len(key)), key); err != nil {
		return nil, err
	}
	return cells, nil
}

// AppendCells is Decode that appends the cells to cells and their bytes to buf.
func (e *Encoder) AppendCells(cells [][]byte, buf, key []byte) (_ [][]byte, _ []byte, err error) {
	buf = slices.Grow(buf, len(key)) // the decoded cells together are never longer than the key
	rest := key
	for i := range e.columns {
		c := &e.columns[i]
		at := len(buf)
		switch {
		case c.width != 0:
			if len(rest) < c.width {
				return cells, buf, fault.Corruptf("key: column %d at byte %d: %d bytes left, want %d", i,
					len(key)-len(rest), len(rest), c.width)
			}
			buf = appendIntegerCell(buf, rest[:c.width], c.signed)
			rest = rest[c.width:]
		case c.last:
			buf = append(buf, rest...)
			rest = nil
		default:
			n := 0
			if buf, n = appendUnescaped(buf, rest); n < 0 {
				return cells, buf, fault.Corruptf("key: column %d at byte %d: byte string has a malformed "+
					"escape or no terminator", i, len(key)-len(rest))
			}
			rest = rest[n:]
		}
		cells = append(cells, buf[at:len(buf):len(buf)])
	}
	if len(rest) > 0 {
		return cells, buf, fault.Corruptf("key: %d bytes after the last column", len(rest))
	}
	return cells, buf, nil
}

// AppendInteger appends the cell of a key of one column of fixed width. key must have that width.
func (e *Encoder) AppendInteger(dst, key []byte) []byte {
	return appendIntegerCell(dst, key, e.columns[0].signed)
}

// appendIntegerCell converts a big-endian key field to a little-endian cell.
func appendIntegerCell(dst, field []byte, signed bool) []byte {
	for i := len(field) - 1; i >= 0; i-- {
		dst = append(dst, field[i])
	}
	if signed {
		dst[len(dst)-1] ^= 0x80
	}
	return dst
}

// appendUnescaped decodes a byte string up to its terminator; n is the number of bytes read, −1 if
// there is no terminator.
func appendUnescaped(dst, field []byte) (_ []byte, n int) {
	for {
		i := indexZero(field[n:])
		if i < 0 || n+i+1 >= len(field) {
			return dst, -1
		}
		dst = append(dst, field[n:n+i]...)
		n += i + 2
		switch field[n-1] {
		case terminatorByte:
			return dst, n
		case escapedZero:
			dst = append(dst, 0)
		default:
			return dst, -1
		}
	}
}
