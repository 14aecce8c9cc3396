package carbondata

import (
	"cmp"
	"errors"
	"slices"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/parallel"
)

// readColumns reads the current page of columns, unless that has been done: several at once where
// the memory that they take is known before.
func (r *pageReader) readColumns(columns []*scanColumn) error {
	var known []*scanColumn
	bytes, need := 0, 0
	if r.procs > 1 {
		for _, c := range columns {
			if c.read || c.cells == nil || slices.Contains(known, c) {
				continue
			}
			if n, ok := c.cells.need(r.page, r.rows); ok && need+n <= r.memory.left {
				c.need, need = n, need+n
				bytes += c.cells.chunk.pages[r.page].data
				known = append(known, c)
			}
		}
	}
	if len(known) > 1 && bytes >= manyBytes {
		if err := r.readTogether(known, min(r.procs, len(known))); err != nil {
			return err
		}
	}
	for _, c := range columns {
		if err := r.readColumn(c); err != nil {
			return err
		}
	}
	return nil
}

// readTogether reads the current page of columns in some goroutines, long pages first.
func (r *pageReader) readTogether(columns []*scanColumn, readers int) error {
	data := func(c *scanColumn) int { return c.cells.chunk.pages[r.page].data }
	slices.SortFunc(columns, func(a, b *scanColumn) int { return cmp.Compare(data(b), data(a)) })
	for len(r.others) < readers-1 {
		r.others = append(r.others, nil)
	}
	err := parallel.Each(len(columns), readers, func(worker, i int) error {
		scratch := &r.scratch
		if worker > 0 {
			scratch = &r.others[worker-1]
		}
		c := columns[i]
		m := memory{left: c.need, work: r.memory.work}
		err := c.cells.readPage(r.file.File, r.page, r.rows, &m, scratch)
		c.need -= m.left
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range columns {
		c.read = true
		if err := r.memory.take(c.need); err != nil {
			return err
		}
	}
	return nil
}

// need returns a limit of the memory that page i, of n rows, takes, and whether it is known without
// uncompressing it.
func (c *cells) need(i, n int) (bytes int, known bool) {
	const mostPerRow = 32 // of numbers or surrogates, null bits, row IDs, and offsets or codes
	h := &c.chunk.pages[i]
	bytes = (n + 1) * mostPerRow
	switch {
	case len(c.children) > 0:
		return 0, false
	case c.dict == nil && (c.column.Type == String || c.column.Type == Varchar || c.column.Type == Binary):
		return bytes + (1+codec.SnappyRatio)*h.data, h.compressor == "" || h.compressor == codec.Snappy
	}
	return bytes, true
}

// readColumn reads the current page of a column, unless that has been done.
func (r *pageReader) readColumn(c *scanColumn) error {
	if c.read || c.cells == nil {
		return nil
	}
	c.read = true
	return c.cells.readPage(r.file.File, r.page, r.rows, &r.memory, &r.scratch)
}

// value returns the value of a row, see cells.value.
func (c *scanColumn) value(row int, budget *int) (any, error) {
	if c.cells == nil {
		return c.missing, nil
	}
	v, err := c.cells.value(row, budget)
	return v, inside(err, "column %q", c.column.Name)
}

// inColumn adds the column to an error, and the row to an error about one value. before is the
// number of rows before the row with number 0 in the error.
func (c *scanColumn) inColumn(before int, err error) error {
	if bad, ok := errors.AsType[*refusedValue](err); ok {
		return &RowError{before + bad.row, c.column.Name, bad.error}
	}
	return inside(err, "column %q", c.column.Name)
}
