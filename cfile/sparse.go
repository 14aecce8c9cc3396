package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
)

// fewSelected is the part of rows, one in so many, up to which ReadSelected reads selected cells
// only.
const fewSelected = 8

// ReadSelected reads the cells in [ord, ord+n) whose bits in sel are 1 into dst, a vector of n
// cells. The file must have all of these cells. Bit i of sel is for cell ord+i. The other cells are
// empty byte strings or NULL.
//
// It does so only for byte strings, and only where that is faster than to read all cells: otherwise
// handled is false and dst undefined. See ReadVector for dst and errors.
func (c *ColumnReader) ReadSelected(ord batch.Ordinal, n int, sel batch.Bitmap,
	dst *batch.Vector) (handled bool, err error) {
	if !c.r.info.Type.Variable() || c.r.info.Array || c.Transient || c.clip(ord, n) < n || sel.Count() > n/fewSelected {
		return false, nil
	}
	dst.Reset(n)
	clear(dst.Bytes)
	left := maxReadCopyBytes
	for at := 0; at < n; {
		row := int64(ord) + int64(at)
		b, err := c.block(row)
		if err != nil {
			return false, err
		}
		values, ok := b.values.(encoding.SparseBlock)
		if !ok {
			return false, nil
		}
		from := int(row - b.first)
		k := min(n-at, b.rows-from)
		fit, copied := b.fit(from, k, left)
		if left -= copied; fit < k || left < 0 {
			return false, nil
		}
		if c.counts != nil {
			c.decoded(b.index, sel.CountRange(at, at+k))
		}
		v, m := b.span(from, k)
		if m == k {
			values.DecodeSelected(v, k, sel, at, dst, at)
		} else {
			values.DecodeSelected(v, m, c.selectedValues(c.presentBits(b, from, k), m, sel, at, k), 0, dst, at)
			placeNulls(&b.nulls, from, k, m, dst, at)
		}
		at += k
	}
	return true, nil
}
