package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
	"github.com/oribi-db/oribi/schema"
)

// Select clears the bits of those cells that do not match p, without decoding them: it uses the
// zone map, the presence of rows and encoded values. Bit i of sel is for row ord+i.
//
// n is the number of rows and the length of sel; bits of rows after the end of the file do not
// change. If some cblock must be decoded for the test, handled is false: bits of some cells that do
// not match may have been cleared. p should be prepared. Source: cfile spec §10.5.
func (c *ColumnReader) Select(ord batch.Ordinal, n int, p *batch.Predicate,
	sel batch.Bitmap) (handled bool, err error) {
	one := [1]*batch.Predicate{p}
	return c.SelectAll(ord, n, one[:], sel)
}

// SelectAll is Select for several predicates: it clears the bits of those cells that do not match
// all of them. Comparisons of numbers with a least and a greatest value take little longer than
// one.
func (c *ColumnReader) SelectAll(ord batch.Ordinal, n int, ps []*batch.Predicate,
	sel batch.Bitmap) (handled bool, err error) {
	n = c.clip(ord, n)
	if c.r.info.Array {
		for _, p := range ps {
			if p.Op != batch.IsNull && p.Op != batch.NotNull {
				return false, nil
			}
		}
	}
	if c.counts != nil {
		c.counts.pending = batch.TestCounts{}
	}
	z, err := c.zoneMap()
	if err != nil {
		return false, err
	}
	for at := 0; at < n; {
		k, handled, err := c.selectBlock(int64(ord)+int64(at), n-at, z, ps, sel, at)
		if err != nil || !handled {
			return false, err
		}
		at += k
	}
	if c.counts != nil {
		c.counts.Test.Add(&c.counts.pending)
	}
	return true, nil
}

// SelectsFast reports whether Select, where it handles the predicate, takes less time than testing
// decoded values: whether it is worthwhile for rows that are decoded afterwards.
func (c *ColumnReader) SelectsFast() bool {
	e := c.r.info.Encoding
	return e == schema.Bitshuffle || c.r.info.Type.Variable()
}

// SelectCost returns about how much time Select takes for a row, compared with other files.
func (r *Reader) SelectCost() int {
	switch width := r.info.Type.Width(); r.info.Encoding {
	case schema.Dictionary:
		return 1 // codes have few bits
	case schema.Bitshuffle:
		return width
	default:
		return 100 + width
	}
}

// selectBlock is SelectAll for those rows in [row, row+n) that are in the same cblock as row. k is
// their number; their bits start at bit at.
func (c *ColumnReader) selectBlock(row int64, n int, z *ZoneMap, ps []*batch.Predicate, sel batch.Bitmap,
	at int) (k int, handled bool, err error) {
	c.tests = append(c.tests[:0], ps...)
	if z != nil {
		entry := z.entryIndex(row)
		e := &z.Entries[entry]
		k = min(n, e.FirstRow+e.Rows-int(row))
		if !sel.AnyRange(at, at+k) {
			return k, true, nil
		}
		c.tests = c.tests[:0] // those that the zone map does not decide
		for _, p := range ps {
			if !e.mayMatch(z.Type, p) {
				c.byZoneMap(entry, sel, at, k)
				sel.ClearRange(at, at+k)
				return k, true, nil
			}
			if !e.allMatch(z.Type, p) {
				c.tests = append(c.tests, p)
			}
		}
		if len(c.tests) == 0 {
			c.byZoneMap(entry, sel, at, k)
			return k, true, nil
		}
	}
	b, err := c.block(row)
	if err != nil {
		return 0, false, err
	}
	from := int(row - b.first)
	k = min(n, b.rows-from)
	if c.counts != nil {
		handled, err = c.selectCounted(b, from, k, c.tests, sel, at)
	} else {
		handled, err = c.selectValues(b, from, k, c.tests, sel, at)
	}
	if err != nil {
		err = c.wrap(b, err)
	}
	return k, handled, err
}

// entryIndex returns the index of the entry of a row.
func (z *ZoneMap) entryIndex(row int64) int {
	lo, hi := 0, len(z.Entries)
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		if int64(z.Entries[mid].FirstRow) <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// allMatch reports whether all rows of e certainly match p. It covers the cases that are cheap to
// decide: an interval that contains both bounds, if neither bound was cut on the side that matters.
func (e *ZoneEntry) allMatch(t schema.Type, p *batch.Predicate) bool {
	switch p.Op {
	case batch.IsNull:
		return e.Nulls == e.Rows
	case batch.NotNull:
		return e.Nulls == 0
	}
	if e.Nulls > 0 || e.HasNaN || e.Min == nil || len(p.Values) != 1 || p.Values[0] == nil ||
		batch.IsNaN(t, p.Values[0]) {
		return false
	}
	// The matches of p are all values except the matches of its opposite.
	opposite := *p
	switch p.Op {
	case batch.Lt:
		opposite.Op = batch.Ge
	case batch.Le:
		opposite.Op = batch.Gt
	case batch.Gt:
		opposite.Op = batch.Le
	case batch.Ge:
		opposite.Op = batch.Lt
	case batch.Ne:
		opposite.Op = batch.Eq
	case batch.Eq:
		opposite.Op = batch.Ne
	default:
		return false
	}
	return !e.mayMatch(t, &opposite)
}

// selectValues tests rows [from, from+k) of b, whose bits start at bit at. It changes ps.
func (c *ColumnReader) selectValues(b *dataBlock, from, k int, ps []*batch.Predicate, sel batch.Bitmap,
	at int) (handled bool, err error) {
	v, m := b.span(from, k)
	var present batch.Bitmap // nil: all rows
	if m < k {
		present = c.presentBits(b, from, k)
	}
	nulls := true // NULL passes
	ofValues := ps[:0]
	for _, p := range ps {
		if p.Op == batch.IsNull {
			clearPresent(sel, at, present, k)
			continue
		}
		if nulls = false; p.Op != batch.NotNull {
			ofValues = append(ofValues, p)
		}
	}
	switch {
	case present == nil && len(ofValues) > 0:
		return c.selectAll(b.values, ofValues, v, m, sel, at)
	case present == nil || nulls:
		return true, nil
	}
	if m > 0 && len(ofValues) > 0 {
		values := c.selectedValues(present, m, sel, at, k)
		if values.Any() {
			if handled, err := c.selectAll(b.values, ofValues, v, m, values, 0); err != nil || !handled {
				return false, err
			}
		}
		encoding.ExpandBits(present, values, present)
	}
	clearZeroBits(sel, at, present, k)
	return true, nil
}

// selectAll clears the bits in [at, at+n) of sel whose values, from value from of b on, do not
// match all of ps.
func (c *ColumnReader) selectAll(b encoding.Block, ps []*batch.Predicate, from, n int, sel batch.Bitmap,
	at int) (handled bool, err error) {
	if c.counts != nil {
		return c.selectAllCounted(b, ps, from, n, sel, at)
	}
	if numbers, ok := b.(encoding.NumberBlock); ok && len(ps) > 1 {
		if handled, err := numbers.SelectAll(ps, from, n, sel, at); handled || err != nil {
			return handled, err
		}
	}
	for _, p := range ps {
		if handled, err := b.Select(p, from, n, sel, at); err != nil || !handled {
			return false, err
		}
	}
	return true, nil
}

// clearPresent clears the bits in [at, at+n) of sel whose rows are present. If present is nil, all
// rows are.
func clearPresent(sel batch.Bitmap, at int, present batch.Bitmap, n int) {
	if present == nil {
		sel.ClearRange(at, at+n)
	}
	for i := present.Next(0); i >= 0; i = present.Next(i + 1) {
		sel.Clear(at + i)
	}
}

// selectedValues returns the selection of the m values of k rows whose bits in sel start at bit at.
// present has a bit for each of these rows. The result is valid until the next call.
func (c *ColumnReader) selectedValues(present batch.Bitmap, m int, sel batch.Bitmap, at, k int) batch.Bitmap {
	c.dense = c.dense.Resize(k)
	encoding.CopyBits(c.dense, sel, at, k)
	encoding.CompressBits(c.dense, c.dense, present)
	return c.dense[:(m+63)/64]
}

// presentBits returns one bit for each of rows [from, from+k) of b, 1 = not NULL.
func (c *ColumnReader) presentBits(b *dataBlock, from, k int) batch.Bitmap {
	bm := c.present.Resize(k)
	c.present = bm
	bm.SetRange(0, k)
	b.nulls.clearNulls(bm, 0, from, k)
	return bm
}

// clearZeroBits clears the bits in [at, at+n) of dst whose bit among the first n of keep is 0.
func clearZeroBits(dst batch.Bitmap, at int, keep batch.Bitmap, n int) {
	for i := 0; i < n; i += 64 {
		k := min(n-i, 64)
		zeros := ^keep[i>>6]
		if k < 64 {
			zeros &= 1<<uint(k) - 1
		}
		to, shift := (at+i)>>6, uint(at+i)&63
		dst[to] &^= zeros << shift
		if shift > 0 && to+1 < len(dst) {
			dst[to+1] &^= zeros >> (64 - shift)
		}
	}
}
