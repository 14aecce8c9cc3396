package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/scan"
)

// counting counts what an iterator does. A nil one counts nothing.
type counting struct {
	*scan.Counts
	from, end batch.Ordinal  // the rows of the iterator's range
	columns   []cfile.Counts // by index in the schema
	decoded   bool           // the current test needed decoded cells
}

// newCounting returns the counting of an iterator that has just found its range, nil if its request
// does not count.
func (it *Iterator) newCounting() *counting {
	counts := it.req.NewCounts()
	if counts == nil {
		return nil
	}
	c := &counting{Counts: counts, from: it.low, end: max(it.low, it.high),
		columns: make([]cfile.Counts, len(it.d.Schema.Columns))}
	c.AddRowSet(it.d)
	return c
}

// outside counts n rows of a range of the iterator that are outside of the request's range.
func (c *counting) outside(n int) {
	if c != nil {
		c.Rows.Outside += int64(n)
	}
}

// passed counts n rows that are known to be dead.
func (c *counting) passed(n int) {
	if c != nil {
		c.Rows.File += int64(n)
		c.Rows.Invisible += int64(n)
	}
}

// visible counts a window of n rows, of which the snapshot sees those in sel.
func (c *counting) visible(n int, sel batch.Bitmap) {
	if c != nil {
		seen := int64(sel.Count())
		c.Rows.File += int64(n)
		c.Rows.Invisible += int64(n) - seen
		c.Rows.Excluded += seen // until selected corrects it
	}
}

// selected counts the rows of the window that are left after the filter.
func (c *counting) selected(sel batch.Bitmap) {
	if c != nil {
		n := int64(sel.Count())
		c.Rows.Excluded -= n
		c.Rows.Selected += n
	}
}

// taken counts the rows of a window that a consumer has taken.
func (c *counting) taken(sel batch.Bitmap) {
	if c != nil {
		c.Rows.Stored += int64(sel.Count())
	}
}

// mark and undo call the methods of scan.Counts, unless nothing is counted.
func (c *counting) mark() {
	if c != nil {
		c.Mark()
	}
}

func (c *counting) undo() {
	if c != nil {
		c.Undo()
	}
}

// tookAhead counts n rows that lookAhead has tested, of which those in sel passed and were taken.
func (c *counting) tookAhead(n int, sel batch.Bitmap) {
	if c != nil {
		c.Rows.File += int64(n)
		c.Rows.Excluded += int64(n)
		c.selected(sel)
		c.taken(sel)
	}
}

// decodes records that the current test needs decoded cells.
func (c *counting) decodes() {
	if c != nil {
		c.decoded = true
	}
}

// open makes the reader of a column count.
func (c *counting) open(col int, r *cfile.ColumnReader) error {
	if c == nil {
		return nil
	}
	return r.Count(&c.columns[col], c.from, c.end)
}

// countedFilter is filterOne for an iterator that counts.
func (it *Iterator) countedFilter(p *batch.Predicate, sel batch.Bitmap) error {
	c := it.counting
	t, rests := c.Test(p)
	col, tested := it.d.Schema.IndexID(p.ID), int64(sel.Count())
	changed := int64(0)
	if it.window.Touches(p.ID) {
		rows, _ := it.touchedRows(p.ID)
		rows.And(sel)
		changed = int64(rows.Count())
	}
	how := &c.columns[col].Test
	*how, c.decoded = batch.TestCounts{}, false
	if err := it.filterOne(p, sel); err != nil {
		return err
	}
	switch r, _ := it.reader(col); {
	case rests:
		*how, changed = batch.TestCounts{Untested: tested}, 0
	case p.Op == batch.NotNull && !it.d.Schema.Columns[col].Nullable:
		*how, changed = batch.TestCounts{Schema: tested}, 0
	case r == nil:
		how.Schema = tested - changed
	case c.decoded:
		how.Decoded = tested - changed
	}
	how.Tested, how.Passed, how.Changed = tested, int64(sel.Count()), changed
	t.Add(how)
	return nil
}

// count adds what the iterator did to the scan's counts. It opens columns that the iterator did not
// need, to count their cblocks.
func (it *Iterator) count() {
	c := it.counting
	if c == nil {
		return
	}
	it.counting = nil
	for _, col := range it.columnsRead() {
		counts := &c.columns[col]
		if counts.Blocks == nil {
			it.countUnused(col, counts, c)
		}
	}
	for col := range c.columns {
		if counts := &c.columns[col]; counts.Blocks != nil {
			c.AddColumn(it.d, it.d.Schema.Columns[col].ID, counts.Decoded, counts.Blocks)
		}
	}
	c.Add()
}

// countUnused counts the cblocks of a column that was not opened. If its file cannot be read, which
// does not concern the scan, it counts none.
func (it *Iterator) countUnused(col int, counts *cfile.Counts, c *counting) {
	f, err := it.d.File(col)
	if err == nil && f != nil && f.NewColumnReader().Count(counts, c.from, c.end) != nil {
		*counts = cfile.Counts{}
	}
}
