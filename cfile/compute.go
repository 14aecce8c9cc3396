package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// Sum is the exact sum of integers, or of products of two integers, that any number of calls have
// added. The zero Sum is empty. Not safe for concurrent use.
type Sum struct{ sum encoding.Sum }

// Words returns the sum in 192 bits of two's complement, lowest word first. It cannot overflow.
func (s *Sum) Words() [3]uint64 { return s.sum.Words() }

// Int128 returns the sum, or false if it has more than 128 bits.
func (s *Sum) Int128() (batch.Int128, bool) {
	w := s.Words()
	v := batch.Int128{Lo: w[0], Hi: int64(w[1])}
	return v, w[2] == uint64(v.Hi>>63)
}

// Reset empties the sum. It keeps memory for later calls.
func (s *Sum) Reset() { s.sum.Reset() }

// Count returns how many values, or products, were added.
func (s *Sum) Count() int64 { return s.sum.Count() }

// Extreme is the least of the numbers or byte strings that any number of calls have added, all of
// one type, or the greatest. The zero Extreme is an empty minimum. Not safe for concurrent use.
type Extreme struct {
	extreme encoding.Extreme
	strings encoding.StringExtreme
}

// Maximum returns an empty Extreme of the greatest number or byte string.
func Maximum() *Extreme {
	return &Extreme{encoding.Extreme{Greatest: true}, encoding.StringExtreme{Greatest: true}}
}

// Add adds a cell of a column of type t that is not NULL.
func (e *Extreme) Add(t schema.Type, cell []byte) {
	if t.Variable() {
		e.strings.Add(cell)
	} else {
		e.extreme.Add(t, cell)
	}
}

// Cell returns the cell, or nil if no cell was added. It is valid until another cell is added. Of
// floats, −0 is below +0, and NaN is returned only if all cells are NaN.
func (e *Extreme) Cell() []byte {
	if cell := e.strings.Cell(); cell != nil {
		return cell
	}
	return e.extreme.Cell()
}

// Sum adds to total the cells of rows [ord, ord+n) whose bits in sel are 1 and that are not NULL,
// without decoding them. Bit i of sel is for row ord+i. Rows after the end of the file do not
// count.
//
// If the column has no integers, or not in BIT_SHUFFLE, handled is false and total unchanged. After
// an error, total is undefined.
func (c *ColumnReader) Sum(ord batch.Ordinal, n int, sel batch.Bitmap, total *Sum) (handled bool, err error) {
	if !c.computes() || isFloat(c.r.info.Type) {
		return false, nil
	}
	return true, c.eachSelected(ord, n, sel, func(b encoding.NumberBlock, from, n int, sel batch.Bitmap, at int) error {
		_, err := b.Sum(from, n, sel, at, &total.sum)
		return err
	})
}

// Extreme is Sum for a minimum or a maximum, of integers or floats in BIT_SHUFFLE or of byte
// strings.
func (c *ColumnReader) Extreme(ord batch.Ordinal, n int, sel batch.Bitmap, e *Extreme) (handled bool, err error) {
	if c.r.info.Type.Variable() && !c.r.info.Array {
		return true, c.extremeString(ord, n, sel, &e.strings)
	}
	if !c.computes() {
		return false, nil
	}
	return true, c.eachSelected(ord, n, sel, func(b encoding.NumberBlock, from, n int, sel batch.Bitmap, at int) error {
		_, err := b.Extreme(from, n, sel, at, &e.extreme)
		return err
	})
}

// computes reports whether the values are numbers in blocks that compute with them.
func (c *ColumnReader) computes() bool {
	i := &c.r.info
	return i.Encoding == schema.Bitshuffle && !i.Array
}

func isFloat(t schema.Type) bool {
	physical := t.Physical()
	return physical == schema.Float || physical == schema.Double
}

// eachSelected calls f for the values of the selected ones of rows [ord, ord+n), by cblock: values
// [from, from+n) of b, with a selection from bit at on.
func (c *ColumnReader) eachSelected(ord batch.Ordinal, n int, sel batch.Bitmap,
	f func(b encoding.NumberBlock, from, n int, sel batch.Bitmap, at int) error) error {
	n = c.clip(ord, n)
	at := 0
	for {
		next := sel.Next(at)
		if next < 0 || next >= n {
			return nil // cblocks without a selected row are not read
		}
		b, err := c.block(int64(ord) + int64(next))
		if err != nil {
			return err
		}
		at = max(at, int(b.first-int64(ord)))
		from := int(int64(ord) + int64(at) - b.first)
		k := min(n-at, b.rows-from)
		v, m := b.span(from, k)
		values, begin := sel, at
		if m < k {
			values, begin = c.selectedValues(c.presentBits(b, from, k), m, sel, at, k), 0
		}
		c.use(b.index, batch.BlockStored)
		if err := f(b.values.(encoding.NumberBlock), v, m, values, begin); err != nil {
			return c.wrap(b, err)
		}
		at += k
	}
}

// SumProducts adds the products of rows [ord, ord+n) of the two columns whose bits in sel are 1 to
// total, without decoding them. Bit i of sel is for row ord+i. Rows after the end of the file do
// not count.
//
// handled is false and total unchanged if a column has no integers of at most 64 bits, or not in
// BIT_SHUFFLE; if a row of a cblock with a selected row is NULL; or if, because of earlier NULLs,
// bits of the two columns are not in the same places of bytes. After an error, total is undefined.
func (c *ColumnReader) SumProducts(ord batch.Ordinal, n int, other *ColumnReader, sel batch.Bitmap,
	total *Sum) (handled bool, err error) {
	for _, r := range []*ColumnReader{c, other} {
		if t := r.r.info.Type; !r.computes() || isFloat(t) || t.Width() > 8 {
			return false, nil
		}
	}
	n = other.clip(ord, c.clip(ord, n))
	handled = true
	err = c.eachPair(ord, n, other, sel, func(b, o *dataBlock, row int64, _, k int) error {
		v, m := b.span(int(row-b.first), k)
		w, l := o.span(int(row-o.first), k)
		handled = handled && m == k && l == k && (v-w)&7 == 0
		return nil
	})
	if err != nil || !handled {
		return false, err
	}
	return true, c.eachPair(ord, n, other, sel, func(b, o *dataBlock, row int64, at, k int) error {
		v, _ := b.span(int(row-b.first), k)
		w, _ := o.span(int(row-o.first), k)
		c.use(b.index, batch.BlockStored)
		other.use(o.index, batch.BlockStored)
		_, err := b.values.(encoding.NumberBlock).SumProducts(v, o.values, w, k, sel, at, &total.sum)
		if err != nil {
			err = c.wrap(b, err)
		}
		return err
	})
}

// eachPair calls f for the cblocks of the two columns that contain selected rows of [ord, ord+n): k
// rows from row ord+at on are in b and o.
func (c *ColumnReader) eachPair(ord batch.Ordinal, n int, other *ColumnReader, sel batch.Bitmap,
	f func(b, o *dataBlock, row int64, at, k int) error) error {
	at := 0
	for {
		next := sel.Next(at)
		if next < 0 || next >= n {
			return nil
		}
		b, err := c.block(int64(ord) + int64(next))
		if err != nil {
			return err
		}
		o, err := other.block(int64(ord) + int64(next))
		if err != nil {
			return err
		}
		row := max(int64(ord)+int64(at), b.first, o.first)
		at = int(row - int64(ord))
		k := min(n-at, b.rows-int(row-b.first), o.rows-int(row-o.first))
		if err := f(b, o, row, at, k); err != nil {
			return err
		}
		at += k
	}
}
