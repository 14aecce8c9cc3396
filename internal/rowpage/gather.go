package rowpage

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Aliased reports whether the cells that Gather returns for a column alias the page.
func (p *Page) Aliased(col int) bool { return p.columns[col].kind == kindString }

// Gather sets cells [at, at+to−from) of dst to rows [from, to) of a column that the page has. dst
// has the type of the column, and the cells so far are present. Byte strings alias the page or the
// words. Errors: ErrCorrupt.
func (p *Page) Gather(dst *batch.Vector, at, col, from, to int) (err error) {
	v, c := &p.columns[col], &p.format.columns[col]
	switch {
	case v.kind == kindString:
		err = v.gatherStrings(dst.Bytes[at:], from, to, v.heap, 0)
	case v.kind == kindRaw:
		copy(dst.Data[at*c.width:(at+to-from)*c.width], v.heap[from*c.width:to*c.width])
	default:
		err = v.gatherNumbers(dst, at, from, to)
	}
	if err != nil {
		return fmt.Errorf("row page: column %d: %w", col, err)
	}
	v.gatherNulls(dst, at, from, to)
	return nil
}

// gatherNumbers is Gather of a column of integers, decimals or words.
func (v *view) gatherNumbers(dst *batch.Vector, at, from, to int) error {
	n := to - from
	switch {
	case v.kind == kindWord:
		return v.gatherWords(dst.Bytes[at:at+n], from)
	case v.kind == kindDecimal:
		values, power := batch.Raw[uint64](dst)[at:at+n], powers[v.decimals]
		unpack(v, values, from)
		for i, x := range values {
			values[i] = math.Float64bits(float64(int64(x)) / power)
		}
		return nil
	}
	switch dst.Type.Width() {
	case 1:
		values := dst.Data[at : at+n]
		unpack(v, values, from)
		for i := 0; dst.Type == schema.Bool && i < n; i++ {
			values[i] &= 1
		}
	case 2:
		unpack(v, batch.Raw[uint16](dst)[at:at+n], from)
	case 4:
		unpack(v, batch.Raw[uint32](dst)[at:at+n], from)
	case 8:
		unpack(v, batch.Raw[uint64](dst)[at:at+n], from)
	default:
		for i, values := 0, batch.Raw[batch.Int128](dst)[at:]; i < n; i++ {
			x := v.base + v.number(from+i)
			values[i] = batch.Int128{Lo: x, Hi: int64(x) >> 63}
		}
	}
	return nil
}

// gatherWords sets dst to the words of the rows from row on.
func (v *view) gatherWords(dst [][]byte, row int) error {
	for i := range dst {
		switch x := v.base + v.number(row+i); {
		case x < uint64(len(v.words)):
			dst[i] = v.words[x]
		case !v.isNull(row + i):
			return fault.Corruptf("word %d of %d", x, len(v.words))
		}
	}
	return nil
}

// unpack sets dst to the integers of the rows from row on.
func unpack[T uint8 | uint16 | uint32 | uint64](v *view, dst []T, row int) {
	base, width := v.base, v.width
	switch {
	case width == 0:
		for i := range dst {
			dst[i] = T(base)
		}
	case width > 56: // a number and the bits before it may have more than 8 bytes
		for i := range dst {
			dst[i] = T(base + v.number(row+i))
		}
	default:
		b, bit, mask := v.bits, uint(row)*width, uint64(1)<<width-1
		for i := range dst {
			dst[i] = T(base + binary.LittleEndian.Uint64(b[bit>>3:])>>(bit&7)&mask)
			bit += width
		}
	}
}

// FarPiece is a piece that has byte strings of a page: those of rows [First, First+Rows).
type FarPiece struct {
	Piece
	First int
	Size  int    // bytes
	begin uint64 // of the bytes, among those of all rows of the page
}

// AppendFar appends the pieces that have the byte strings of rows [from, to) of a column that the page
// does not have. ok is false if the page does not say where all of them are. Errors: ErrCorrupt.
func (p *Page) AppendFar(dst []FarPiece, col, from, to int) (_ []FarPiece, ok bool, err error) {
	v := &p.columns[col]
	if v.kind != kindFar {
		return dst, false, nil
	}
	first := 0
	for b := v.pieces; len(b) > 0 && first < to; b = b[pieceBytes:] {
		rows := int(binary.LittleEndian.Uint16(b))
		if first+rows > from {
			offset := int64(binary.LittleEndian.Uint64(b[2:]))
			low, high := v.end(first-1), v.end(first+rows-1)
			if low > high || high-low > maxFar {
				return dst, false, fault.Corruptf("row page: column %d: a piece of bytes [%d, %d)", col, low, high)
			}
			if offset < 0 {
				return dst, false, nil
			}
			dst = append(dst, FarPiece{Piece{rows, offset, binary.LittleEndian.Uint32(b[10:])}, first, int(high - low), low})
		}
		first += rows
	}
	return dst, true, nil
}

// GatherFar is Gather for those of rows [from, to) that are in a piece of AppendFar, whose bytes are
// b. The cells alias b. Errors: ErrCorrupt.
func (p *Page) GatherFar(dst *batch.Vector, at, col, from, to int, piece *FarPiece, b []byte) error {
	v := &p.columns[col]
	at += max(0, piece.First-from)
	from, to = max(from, piece.First), min(to, piece.First+piece.Rows)
	if err := v.gatherStrings(dst.Bytes[at:], from, to, b, piece.begin); err != nil {
		return fmt.Errorf("row page: column %d: %w", col, err)
	}
	v.gatherNulls(dst, at, from, to)
	return nil
}

// gatherStrings sets dst to the byte strings of rows [from, to), of which b has those that begin at
// byte begin.
func (v *view) gatherStrings(dst [][]byte, from, to int, b []byte, begin uint64) error {
	last := v.end(from-1) - begin
	for i := from; i < to; i++ {
		end := v.end(i) - begin
		if last > end || end > uint64(len(b)) {
			return fault.Corruptf("byte string [%d, %d) of %d bytes", last, end, len(b))
		}
		dst[i-from], last = b[last:end:end], end
	}
	return nil
}

// gatherNulls makes those of rows [from, to) NULL that are NULL. Row from is cell at of dst.
func (v *view) gatherNulls(dst *batch.Vector, at, from, to int) {
	if v.present == nil {
		return
	}
	present := dst.NeedPresent()
	for i := from; i < to; i, at = i+1, at+1 {
		if !v.isNull(i) {
			continue
		}
		if present.Clear(at); dst.Type.Width() == 0 {
			dst.Bytes[at] = nil
		}
	}
}
