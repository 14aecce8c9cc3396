package encoding

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Comparing integers with one value needs no cells. Their bits are stored in rows, so one word of
// each row, from the highest bit down, shows for 64 cells at once which are below the value and
// which are still equal to it:
//
//	bit of the value   below          equal
//	1                  |= equal &^ x  &= x
//	0                                 &^= x
//
// In two's complement the highest bit is compared the other way round. In planes in which the value
// is 0, most of them if numbers are small, cells with a bit set are removed from equal.

// order is the order of a chunk's cells relative to the value, in one bit per cell: below and
// equal.
type order struct{ below, equal [chunkBytes / 64]uint64 }

// comparable reports whether order can evaluate p, and returns the value as a 64-bit number.
func (b *shuffled) comparable(p *batch.Predicate) (value uint64, ok bool) {
	switch b.typ.Physical() {
	case schema.Int8, schema.Int16, schema.Int32, schema.Int64, schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
	default:
		return 0, false
	}
	if p.Op > batch.Ge || b.width != b.typ.Width() || len(p.Values) != 1 || len(p.Values[0]) != b.width {
		return 0, false
	}
	return load64(p.Values[0]), true
}

// signed reports whether the cells are in two's complement.
func (b *shuffled) signed() bool {
	switch b.typ.Physical() {
	case schema.Int8, schema.Int16, schema.Int32, schema.Int64:
		return true
	}
	return false
}

// Select compares bit rows with the value and decodes no cell. It leaves all tests except
// comparisons of integers with one value to the caller, since the kernels that test a vector need
// decoded values.
func (b *shuffled) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	value, ok := b.comparable(p)
	if !ok {
		return false, nil
	}
	rows := rowsBuffers.Get().(*rowsBuffer)
	defer rowsBuffers.Put(rows)
	var o order
	for n > 0 {
		i := from >> b.shift
		skip := from - i<<b.shift
		k := min(n, 1<<b.shift-skip)
		if anyBit(sel, at, at+k) {
			cells := b.chunkCells(i)
			if err := b.unpack(i, rows[:cells*b.width]); err != nil {
				return false, err
			}
			o.compare(rows, cells, b.width, value, b.signed())
			clearBits(sel, at, o.fails(p.Op, (cells+63)/64), skip, k)
		}
		from, n, at = from+k, n-k, at+k
	}
	return true, nil
}

// anyBit reports whether one of the bits [from, to) is 1.
func anyBit(m batch.Bitmap, from, to int) bool {
	i := m.Next(from)
	return i >= 0 && i < to
}

// compare computes o for n cells. Words extend past the end of a row whose length is not a multiple
// of 64 bits; the bits of o after the last cell are meaningless.
func (o *order) compare(rows *rowsBuffer, n, width int, value uint64, signed bool) {
	row, words := n/8, (n+63)/64
	below, equal := o.below[:words], o.equal[:words]
	for i := range equal {
		below[i], equal[i] = 0, ^uint64(0)
	}
	at := 8*width - 1
	if signed {
		top := rows[at*row:]
		for i := range equal {
			x := binary.LittleEndian.Uint64(top[8*i:])
			if value>>at&1 != 0 {
				equal[i] = x
			} else {
				below[i], equal[i] = x, ^x
			}
		}
		value &^= 1 << at
		clear(top[:row])
	}
	left := ^uint64(0)
	for k := width - 1; k >= 0 && left != 0; k-- {
		plane, v := rows[8*k*row:], byte(value>>(8*k))
		if v == 0 {
			left = takeAway(equal, plane, row)
			continue
		}
		for j := 7; j >= 0 && left != 0; j-- {
			left = comparePart(below, equal, plane[j*row:], v>>j&1 != 0)
		}
	}
}

// takeAway is compare for a plane in which the value is 0. It reports whether any cell is still
// equal.
func takeAway(equal []uint64, plane []byte, row int) (left uint64) {
	le := binary.LittleEndian
	for i := range equal {
		p := plane[8*i:]
		x := le.Uint64(p) | le.Uint64(p[row:]) | le.Uint64(p[2*row:]) | le.Uint64(p[3*row:]) |
			le.Uint64(p[4*row:]) | le.Uint64(p[5*row:]) | le.Uint64(p[6*row:]) | le.Uint64(p[7*row:])
		equal[i] &^= x
		left |= equal[i]
	}
	return left
}

// comparePart is compare for one row and one bit of the value. It reports whether any cell is still
// equal.
func comparePart(below, equal []uint64, row []byte, one bool) (left uint64) {
	row, below = row[:8*len(equal)], below[:len(equal)]
	if one {
		for i, e := range equal {
			x := binary.LittleEndian.Uint64(row[8*i:])
			below[i] |= e &^ x
			equal[i] = e & x
			left |= equal[i]
		}
		return left
	}
	for i, e := range equal {
		equal[i] = e &^ binary.LittleEndian.Uint64(row[8*i:])
		left |= equal[i]
	}
	return left
}

// fails returns a bitmap, in o's first words, of the cells that do not pass the test. It is valid
// until o is used again.
func (o *order) fails(op batch.Operator, words int) []uint64 {
	below, equal := o.below[:words], o.equal[:words]
	switch op {
	case batch.Eq:
		for i := range equal {
			equal[i] = ^equal[i]
		}
		return equal
	case batch.Ne:
		return equal
	case batch.Lt:
		for i := range below {
			below[i] = ^below[i]
		}
	case batch.Le:
		for i := range below {
			below[i] = ^(below[i] | equal[i])
		}
	case batch.Gt:
		for i := range below {
			below[i] |= equal[i]
		}
	}
	return below
}

// clearBits clears those of bits [at, at+n) of dst for which bits [from, from+n) of zap are 1.
func clearBits(dst batch.Bitmap, at int, zap []uint64, from, n int) {
	for n > 0 {
		k := min(n, 64-at&63, 64-from&63)
		dst[at>>6] &^= zap[from>>6] >> (from & 63) << (64 - k) >> (64 - k - at&63)
		at, from, n = at+k, from+k, n-k
	}
}
