package carbondata

import (
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
func (s *pages) selectRows() error {
	if s.filter == nil {
		s.stats.PagesRead++
		return nil
	}
	v, err := s.pruner.pageBounds(s.columns, s.page, s.rows)
	if err != nil || v == none {
		clear(s.selection)
		return err
	}
	s.stats.PagesRead++
	if v == all {
		return nil
	}
	for from := 0; from < s.rows; from += s.window {
		to := min(from+s.window, s.rows)
		window := s.selection[from/64 : (to+63)/64]
		for _, c := range s.columns[:s.tested] {
			c.filled = false
		}
		err := s.eval.Eval(&s.filter.rows, window, func(p *batch.Predicate, sel batch.Bitmap) error {
			return s.test(int(p.ID), sel, from, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// test clears the bits of the rows in [from, to) that do not pass test i of the filter.
func (s *pages) test(i int, sel batch.Bitmap, from, to int) error {
	switch s.pruner.page[i] {
	case none:
		clear(sel)
		return nil
	case all:
		return nil
	}
	l := &s.filter.leaves[i]
	c := s.columns[l.column]
	if err := s.readColumn(c); err != nil {
		return err
	}
	if c.cells != nil {
		p := &c.cells.page
		switch {
		case s.pruner.matches[i] != nil && p.inverse == nil && len(p.nulls) == 0:
			if err := p.findCodes(); err != nil {
				return inside(err, "column %q: page %d", c.column.Name, s.page)
			}
			p.filterCodes(s.pruner.matches[i], sel, from, to)
			return nil
		case p.form == formStrings && p.inverse != nil && searchable(&l.test) && !s.pruner.disabled:
			p.search(&l.test, sel, from, to)
			return nil
		}
	}
	if err := s.fillWindow(c, from, to); err != nil {
		return err
	}
	match := s.pruner.matches[i]
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
func (s *pages) fillWindow(c *scanColumn, from, to int) error {
	if c.filled {
		return nil
	}
	c.filled = true
	if c.vector.Type == schema.Array {
		return c.fillNulls(from, to, s.memory.elements())
	}
	c.begin(&c.vector, to-from)
	return inside(c.fill(&c.vector, 0, from, to), "column %q: page %d", c.column.Name, s.page)
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
