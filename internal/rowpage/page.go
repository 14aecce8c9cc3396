package rowpage

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Page is a parsed page. The zero Page is ready for Parse, which keeps its memory. A Page aliases
// the bytes and the words that it was parsed from.
type Page struct {
	format  *Format
	rows    int
	columns []view
}

// view is a column of a page.
type view struct {
	kind     byte
	decimals byte
	width    uint
	base     uint64
	present  []byte // nil: no cell is NULL
	bits     []byte // the numbers, and at least 8 further bytes
	heap     []byte
	words    [][]byte
	pieces   []byte // of kind 6
}

// Parse makes p the page in b, a page of a file with the given words. It checks that all numbers
// are in b; methods that return cells check the rest. Errors: ErrCorrupt.
func (f *Format) Parse(p *Page, b []byte, words Words) error {
	if len(b) < headBytes+slackBytes {
		return fault.Corruptf("row page: %d bytes", len(b))
	}
	p.format, p.rows, p.columns = f, int(binary.LittleEndian.Uint16(b)), p.columns[:0]
	if p.rows < 1 || p.rows > MaxRows {
		return fault.Corruptf("row page: %d rows", p.rows)
	}
	end := len(b) - slackBytes
	at := headBytes
	for i := range f.columns {
		p.columns = append(p.columns, view{})
		n := p.columns[i].parse(&f.columns[i], p.rows, b[at:], end-at)
		if n < 0 {
			return fault.Corruptf("row page: column %d at byte %d of %d", i, at, len(b))
		}
		if p.columns[i].kind == kindWord && i < len(words) {
			p.columns[i].words = words[i]
		}
		at += n
	}
	for i := range p.columns {
		if v := &p.columns[i]; v.kind == kindFar {
			n := v.parsePieces(p.rows, b[at:end])
			if n < 0 {
				return fault.Corruptf("row page: pieces of column %d at byte %d of %d", i, at, len(b))
			}
			at += n
		}
	}
	if at != end {
		return fault.Corruptf("row page: %d bytes after the last column", end-at)
	}
	return nil
}

// parse parses the column at the beginning of b, of which size bytes are in the page, and returns
// its size; −1 for a malformed column.
func (v *view) parse(c *column, rows int, b []byte, size int) int {
	if size < 1 {
		return -1
	}
	v.kind = b[0] &^ hasNulls
	at := 1
	if !v.fits(c) {
		return -1
	}
	if v.kind != kindOut && v.kind != kindRaw {
		head := 10
		if v.kind == kindDecimal {
			head++
		}
		if size < head {
			return -1
		}
		v.width = uint(b[1])
		if v.kind == kindDecimal {
			v.decimals = b[2]
		}
		v.base = binary.LittleEndian.Uint64(b[head-8:])
		at = head
	}
	if v.width > 64 || v.decimals > maxDecimal || v.kind == kindOut && b[0] != kindOut {
		return -1
	}
	if b[0]&hasNulls != 0 {
		n := (rows + 7) / 8
		if size-at < n {
			return -1
		}
		v.present = b[at : at+n]
		at += n
	}
	n := (rows*int(v.width) + 7) / 8
	if size-at < n {
		return -1
	}
	v.bits = b[at:]
	at += n
	heap := 0
	switch v.kind {
	case kindRaw:
		heap = rows * c.width
	case kindString, kindFar:
		limit := uint64(size)
		if v.kind == kindFar {
			limit = maxFar
		}
		if v.base > limit || v.width > 40 {
			return -1
		}
		end := v.base*uint64(rows) + v.number(rows-1) // below 2^64: base and rows are small
		if end > limit {
			return -1
		}
		if v.kind == kindString {
			heap = int(end)
		}
	}
	if size-at < heap {
		return -1
	}
	v.heap = b[at : at+heap]
	return at + heap
}

// fits reports whether a column can have the kind.
func (v *view) fits(c *column) bool {
	switch v.kind {
	case kindOut:
		return true
	case kindInteger:
		return c.width > 0
	case kindDecimal:
		return c.typ == schema.Double
	case kindRaw:
		return c.width > 8
	}
	return (v.kind == kindWord || v.kind == kindString || v.kind == kindFar) && c.width == 0
}

// parsePieces parses the pieces at the beginning of b and returns their size; −1 for malformed ones.
func (v *view) parsePieces(rows int, b []byte) int {
	if len(b) < 1 {
		return -1
	}
	n := 1 + pieceBytes*int(b[0])
	if n > len(b) {
		return -1
	}
	v.pieces = b[1:n]
	for p := v.pieces; len(p) > 0; p = p[pieceBytes:] {
		rows -= int(binary.LittleEndian.Uint16(p))
	}
	if rows != 0 {
		return -1
	}
	return n
}

// number returns number i.
func (v *view) number(i int) uint64 {
	at := uint(i) * v.width
	shift := at & 7
	b := v.bits[at>>3:]
	x := binary.LittleEndian.Uint64(b) >> shift
	if shift+v.width > 64 {
		x |= uint64(b[8]) << (64 - shift)
	}
	return x & (1<<v.width - 1)
}

// isNull reports whether cell i is NULL.
func (v *view) isNull(i int) bool { return v.present != nil && v.present[i>>3]>>(i&7)&1 == 0 }

// Rows returns the number of rows.
func (p *Page) Rows() int { return p.rows }

// Has reports whether the page has the cells of a column. Other columns are read elsewhere.
func (p *Page) Has(col int) bool {
	k := p.columns[col].kind
	return k != kindOut && k != kindFar
}

// Far returns where the byte string of a row is, for a column that the page does not have: bytes
// [from, to) of the piece with size bytes at an offset of the column's file. ok is false if the page
// does not know, or if the cell is NULL. Errors: ErrCorrupt.
func (p *Page) Far(col, row int) (piece Piece, size, from, to int, ok bool, err error) {
	v := &p.columns[col]
	if v.kind != kindFar || v.isNull(row) {
		return piece, 0, 0, 0, false, nil
	}
	first := 0
	for b := v.pieces; len(b) > 0; b = b[pieceBytes:] {
		piece.Rows = int(binary.LittleEndian.Uint16(b))
		if row >= first+piece.Rows {
			first += piece.Rows
			continue
		}
		piece.Offset, piece.CRC = int64(binary.LittleEndian.Uint64(b[2:])), binary.LittleEndian.Uint32(b[10:])
		break
	}
	begin, end := v.end(first-1), v.end(first+piece.Rows-1)
	low, high := v.end(row-1), v.end(row)
	if begin > low || low > high || high > end || end-begin > maxFar {
		return piece, 0, 0, 0, false, fault.Corruptf("row page: column %d: byte string [%d, %d) of [%d, %d)", col, low,
			high, begin, end)
	}
	return piece, int(end - begin), int(low - begin), int(high - begin), piece.Offset >= 0, nil
}

// IsNull reports whether a cell is known to be NULL, also one of a column that the page does not have.
func (p *Page) IsNull(col, row int) bool { return p.columns[col].isNull(row) }

// end returns the end of the byte string of a row, 0 for row −1.
func (v *view) end(row int) uint64 {
	if row < 0 {
		return 0
	}
	return v.base*uint64(row+1) + v.number(row)
}

// Search returns the first row whose integer, in a column of a signed type, is at or after x, or the
// number of rows, and reports whether it is x. The integers ascend; ok is false if the page does not
// have all of them as numbers.
func (p *Page) Search(col int, x int64) (row int, exact, ok bool) {
	v := &p.columns[col]
	if v.kind != kindInteger || v.present != nil {
		return 0, false, false
	}
	if x < int64(v.base) {
		return 0, false, true
	}
	distance := uint64(x) - v.base
	lo, hi := 0, p.rows // numbers before lo are below distance, those from hi on are not
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if v.number(mid) < distance {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < p.rows && v.number(lo) == distance, true
}

// Cell returns a cell of a column that the page has, nil for NULL. A cell of fixed width is appended
// to dst; it aliases the result dst. A byte string aliases the page or a word. Errors: ErrCorrupt.
func (p *Page) Cell(dst []byte, col, row int) (_, cell []byte, err error) {
	v := &p.columns[col]
	if v.isNull(row) {
		return dst, nil, nil
	}
	switch v.kind {
	case kindWord, kindString:
		cell, err = p.str(v, col, row)
		return dst, cell, err
	}
	c := &p.format.columns[col]
	at := len(dst)
	if v.kind == kindRaw {
		dst = append(dst, v.heap[row*c.width:(row+1)*c.width]...)
		return dst, dst[at:], nil
	}
	x := v.value(row)
	dst = binary.LittleEndian.AppendUint64(dst, x)
	if c.width > 8 {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(int64(x)>>63))
	}
	if c.typ == schema.Bool {
		dst[at] &= 1
	}
	dst = dst[:at+c.width]
	return dst, dst[at:len(dst):len(dst)], nil
}

// value returns an integer, or the bits of a double.
func (v *view) value(row int) uint64 {
	x := v.base + v.number(row)
	if v.kind == kindDecimal {
		return math.Float64bits(float64(int64(x)) / powers[v.decimals])
	}
	return x
}

// str returns a byte string that is not NULL.
func (p *Page) str(v *view, col, row int) ([]byte, error) {
	if v.kind == kindWord {
		if n := v.base + v.number(row); n < uint64(len(v.words)) {
			return v.words[n], nil
		}
		return nil, fault.Corruptf("row page: column %d: a word after the last of %d", col, len(v.words))
	}
	from, to := v.end(row-1), v.end(row)
	if from > to || to > uint64(len(v.heap)) {
		return nil, fault.Corruptf("row page: column %d: byte string [%d, %d) of a heap of %d bytes", col, from, to,
			len(v.heap))
	}
	return v.heap[from:to:to], nil
}
