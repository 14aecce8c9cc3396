package carbondata

import (
	"errors"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// windowRows returns the number of rows that a filter is evaluated on at once, a multiple of 64, so
// that vectors of its columns do not take more than a batch.
func windowRows(columns []*scanColumn) int {
	width := 1
	for _, c := range columns {
		width += cellBytes(c.vector.Type)
	}
	return max(64, min(batch.WindowRows, maxBatchBytes/width)&^63)
}

// selectRows clears the bits of the rows that the filter does not select.
func (r *pageReader) selectRows() error {
	if r.filter == nil {
		r.judged = true
		return nil
	}
	v, err := r.pruner.pageBounds(r.columns, r.page, r.rows)
	if err != nil || v == none {
		clear(r.selection)
		return err
	}
	r.judged = true
	if v == all {
		return nil
	}
	for from := 0; from < r.rows; from += r.window {
		to := min(from+r.window, r.rows)
		window := r.selection[from/64 : (to+63)/64]
		for _, c := range r.columns[:r.tested] {
			c.filled = false
		}
		err := r.eval.Eval(&r.filter.rows, window, func(p *batch.Predicate, sel batch.Bitmap) error {
			return r.test(int(p.ID), sel, from, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// test clears the bits of the rows in [from, to) that do not pass test i of the filter.
func (r *pageReader) test(i int, sel batch.Bitmap, from, to int) error {
	switch r.pruner.page[i] {
	case none:
		clear(sel)
		return nil
	case all:
		return nil
	}
	l := &r.filter.leaves[i]
	c := r.columns[l.column]
	if err := r.readColumn(c); err != nil {
		return err
	}
	if c.cells != nil {
		p := &c.cells.page
		switch {
		case r.pruner.matches[i] != nil && p.inverse == nil && len(p.nulls) == 0:
			if err := p.findCodes(); err != nil {
				return inside(err, "column %q: page %d", c.column.Name, r.page)
			}
			p.filterCodes(r.pruner.matches[i], sel, from, to)
			return nil
		case p.form == formStrings && p.inverse != nil && searchable(&l.test) && !r.pruner.disabled:
			p.search(&l.test, sel, from, to)
			return nil
		}
	}
	if err := r.fillWindow(c, from, to); err != nil {
		return err
	}
	match := r.pruner.matches[i]
	if match == nil {
		l.test.Eval(&c.vector, sel)
		return nil
	}
	if c.vector.Present != nil {
		sel.And(c.vector.Present)
	}
	batch.FilterCodes(c.vector.Codes, match, sel, 0)
	return nil
}

// fillWindow decodes rows [from, to) of a column of the filter.
func (r *pageReader) fillWindow(c *scanColumn, from, to int) error {
	if c.filled {
		return nil
	}
	c.filled = true
	if c.vector.Type == schema.Array {
		return c.fillNulls(from, to, r.memory.elements())
	}
	c.begin(&c.vector, to-from)
	err := c.fill(&c.vector, 0, from, to)
	if bad, ok := errors.AsType[*unheld](err); ok {
		return &RowError{-1, c.column.Name, bad}
	}
	return inside(err, "column %q: page %d", c.column.Name, r.page)
}

// fillNulls fills the vector of a column that is tested for NULL only.
func (c *scanColumn) fillNulls(from, to, limit int) error {
	c.vector.Reset(to - from)
	clear(c.vector.Bytes)
	for row := from; row < to; row++ {
		budget := limit
		v, err := c.value(row, &budget)
		if err != nil {
			return inside(err, "column %q: row %d", c.column.Name, row)
		}
		if v == nil {
			c.vector.NeedPresent().Clear(row - from)
		}
	}
	return nil
}
