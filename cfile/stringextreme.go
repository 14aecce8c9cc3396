package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
)

// extremeString is Extreme for a column of byte strings. It does not read cblocks whose bounds in
// the zone map show that they have nothing better, or are the extreme.
func (c *ColumnReader) extremeString(ord batch.Ordinal, n int, sel batch.Bitmap, e *encoding.StringExtreme) error {
	z, err := c.zoneMap()
	if err != nil {
		return err
	}
	n = c.clip(ord, n)
	for at := sel.Next(0); at >= 0 && at < n; at = sel.Next(at) {
		row := int64(ord) + int64(at)
		k := n - at
		if z != nil {
			i := z.entryIndex(row)
			entry := &z.Entries[i]
			k = min(k, entry.FirstRow+entry.Rows-int(row))
			bound, exact := entry.extreme(e.Greatest)
			switch {
			case !entry.mayImprove(e):
				c.use(i, batch.BlockZoneMap)
				at += k
				continue
			case exact && sel.CountRange(at, at+k) == entry.Rows:
				c.use(i, batch.BlockZoneMap)
				e.Add(bound)
				at += k
				continue
			}
		}
		b, err := c.block(row)
		if err != nil {
			return err
		}
		from := int(row - b.first)
		k = min(k, b.rows-from)
		c.use(b.index, batch.BlockStored)
		if err := c.extremeOfBlock(b, from, k, sel, at, e); err != nil {
			return c.wrap(b, err)
		}
		at += k
	}
	return nil
}

// extremeOfBlock adds to e the cells of rows [from, from+k) of b whose bits are 1, from bit at on.
func (c *ColumnReader) extremeOfBlock(b *dataBlock, from, k int, sel batch.Bitmap, at int,
	e *encoding.StringExtreme) error {
	v, m := b.span(from, k)
	if m == 0 {
		return nil
	}
	if m < k {
		sel, at = c.selectedValues(c.presentBits(b, from, k), m, sel, at, k), 0
	}
	return b.values.(encoding.StringBlock).ExtremeString(v, m, sel, at, e)
}

// extreme returns the greatest or the least of e's byte strings, or a bound of them if it is not
// exact.
func (e *ZoneEntry) extreme(greatest bool) (bound []byte, exact bool) {
	if greatest {
		return e.Max, e.Max != nil && !e.MaxRounded
	}
	return e.Min, e.Min != nil && !e.MinCut
}

// mayImprove reports whether a byte string of e may be better than x.
func (e *ZoneEntry) mayImprove(x *encoding.StringExtreme) bool {
	bound, _ := e.extreme(x.Greatest)
	switch best := x.Cell(); {
	case e.Nulls == e.Rows:
		return false
	case best == nil || bound == nil:
		return true
	case x.Greatest:
		return bytes.Compare(bound, best) > 0
	default:
		return bytes.Compare(bound, best) < 0
	}
}
