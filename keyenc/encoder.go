package keyenc

import (
	"bytes"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

func indexZero(b []byte) int { return bytes.IndexByte(b, 0) }

// Encoder makes the keys of one schema. It is immutable: all goroutines may share one.
type Encoder struct {
	columns []keyColumn
	fixed   int // width of a key if no column is a byte string, else 0
}

// keyColumn is what the encoding of one key column depends on.
type keyColumn struct {
	typ    schema.Type
	width  int // 0 = byte string
	signed bool
	last   bool
}

// NewEncoder makes the encoder of s's key.
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

// Columns is the number of key columns.
func (e *Encoder) Columns() int { return len(e.columns) }

// Width is the number of bytes of every key; 0 if keys differ in length.
func (e *Encoder) Width() int { return e.fixed }

// AppendKey appends the key of a row. cells begins with one cell for each key column; what follows
// is not looked at.
func (e *Encoder) AppendKey(dst []byte, cells [][]byte) []byte {
	return e.AppendPrefix(dst, cells[:len(e.columns)])
}

// AppendPrefix appends the encoding of the first len(cells) key columns, at most all: the smallest
// key that can begin with these values, and a prefix of all that do. Byte strings that are not last
// in the key get their terminator, so ("ab") of a compound key is no prefix of ("abc", …).
func (e *Encoder) AppendPrefix(dst []byte, cells [][]byte) []byte {
	for i, cell := range cells {
		c := &e.columns[i]
		switch {
		case c.width != 0:
			dst = appendInteger(dst, cell, c.signed)
		case c.last:
			dst = append(dst, cell...)
		default:
			dst = appendTerminated(dst, cell)
		}
	}
	return dst
}

// Decode takes a key apart into one cell for each key column. The cells are the caller's.
// ErrCorrupt if key is not what AppendKey makes. Source: tablet spec §3.3.
func (e *Encoder) Decode(key []byte) (cells [][]byte, err error) {
	// Decoded cells together are never longer than the key, so buf never moves.
	buf := make([]byte, 0, len(key))
	cells = make([][]byte, len(e.columns))
	rest := key
	for i := range e.columns {
		c := &e.columns[i]
		at := len(buf)
		switch {
		case c.width != 0:
			if len(rest) < c.width {
				return nil, fault.Corruptf("key: column %d at byte %d: %d bytes left, want %d", i, len(key)-len(rest), len(rest), c.width)
			}
			buf = appendIntegerCell(buf, rest[:c.width], c.signed)
			rest = rest[c.width:]
		case c.last:
			buf = append(buf, rest...)
			rest = nil
		default:
			n := 0
			if buf, n = appendUnescaped(buf, rest); n < 0 {
				return nil, fault.Corruptf("key: column %d at byte %d: byte string has a bad escape or no end", i, len(key)-len(rest))
			}
			rest = rest[n:]
		}
		cells[i] = buf[at:len(buf):len(buf)]
	}
	if len(rest) > 0 {
		return nil, fault.Corruptf("key: %d bytes after the last column", len(rest))
	}
	return cells, nil
}

// appendIntegerCell turns a big-endian key field back into a little-endian cell.
func appendIntegerCell(dst, field []byte, signed bool) []byte {
	for i := len(field) - 1; i >= 0; i-- {
		dst = append(dst, field[i])
	}
	if signed {
		dst[len(dst)-1] ^= 0x80
	}
	return dst
}

// appendUnescaped reads a byte string up to its terminator; n is the bytes read, −1 if there is no
// end.
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
