package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
)

// Counts counts what a ColumnReader does. Not safe for concurrent use.
type Counts struct {
	Test    batch.TestCounts // the selected cells that Select has tested, by how; not Tested and Passed
	Blocks  []batch.BlockUse // for each data cblock, the most that was done with it
	Decoded int64            // cells

	pending batch.TestCounts // of the current call of Select
}

// Count makes c count in counts from now on, for a scan of rows [from, end). nil disables it.
// Errors: ErrCorrupt.
func (c *ColumnReader) Count(counts *Counts, from, end batch.Ordinal) error {
	if counts == nil {
		c.counts = nil
		return nil
	}
	bs, err := c.r.blocks()
	if err != nil {
		return err
	}
	first, last := 0, len(bs)
	if c.r.info.PositionalIndex && from < end {
		x, err := c.r.ordinalIndex()
		if err != nil {
			return err
		}
		first, last = x.find(uint32(from)), x.find(uint32(end-1))+1
	}
	*counts = Counts{Blocks: make([]batch.BlockUse, len(bs))}
	for i := first; i < last && from < end; i++ {
		counts.Blocks[i] = batch.BlockSkipped
	}
	c.counts = counts
	return nil
}

// use records what was done with a cblock.
func (c *ColumnReader) use(block int, u batch.BlockUse) {
	if c.counts != nil {
		c.counts.Blocks[block] = max(c.counts.Blocks[block], u)
	}
}

// decoded records that n cells of a cblock were decoded.
func (c *ColumnReader) decoded(block, n int) {
	if c.counts != nil {
		c.use(block, batch.BlockDecoded)
		c.counts.Decoded += int64(n)
	}
}

// byZoneMap records that the zone map decides the test for n rows of a cblock, from bit at of sel
// on. Rows whose bits are 0 before the test do not count.
func (c *ColumnReader) byZoneMap(block int, sel batch.Bitmap, at, n int) {
	if c.counts != nil {
		c.counts.pending.ZoneMap += int64(sel.CountRange(at, at+n))
		c.use(block, batch.BlockZoneMap)
	}
}

// selectCounted is selectValues for a reader that counts. Presence and values decide all cells that
// the dictionary and constant planes do not decide.
func (c *ColumnReader) selectCounted(b *dataBlock, from, k int, ps []*batch.Predicate, sel batch.Bitmap,
	at int) (handled bool, err error) {
	t := &c.counts.pending
	cells := int64(sel.CountRange(at, at+k)) + t.Dictionary + t.Planes
	if handled, err = c.selectValues(b, from, k, ps, sel, at); handled {
		t.Stored += cells - t.Dictionary - t.Planes
		c.use(b.index, batch.BlockStored)
	}
	return handled, err
}

// selectAllCounted is selectAll for a reader that counts. It tests predicates one by one.
func (c *ColumnReader) selectAllCounted(b encoding.Block, ps []*batch.Predicate, from, n int, sel batch.Bitmap,
	at int) (handled bool, err error) {
	counting, ok := b.(encoding.CountingBlock)
	for i, p := range ps {
		if ok && i == 0 { // a cell counts once
			handled, err = counting.SelectCounted(p, from, n, sel, at, &c.counts.pending)
		} else {
			handled, err = b.Select(p, from, n, sel, at)
		}
		if err != nil || !handled {
			return false, err
		}
	}
	return true, nil
}
