package rowset

import "github.com/oribi-db/oribi/batch"

// result returns the column's cells in the order of the scan. In a descending one, it reverses them
// once per window, while they are in the CPU's cache. If few rows are selected, the byte strings of
// the others may be empty, except in key columns.
func (it *Iterator) result(col int, from batch.Ordinal, n int) (*batch.Vector, error) {
	c := it.column(col)
	if !c.loaded && col >= it.d.Schema.Keys { // a merge searches all rows of key columns
		if err := it.loadSelected(col, from, n); err != nil {
			return nil, err
		}
	}
	if !it.req.Descending() || c.reversed {
		return it.load(col, from, n)
	}
	c.reversed = true
	if s := &it.d.Schema.Columns[col]; !c.loaded && !it.window.Touches(s.ID) {
		r, err := it.reader(col)
		if err == nil && r != nil {
			c.vector.Type = s.Type
			c.loaded, err = r.ReadBackward(from, n, &c.vector)
		}
		if err != nil || c.loaded {
			return &c.vector, err
		}
	}
	v, err := it.load(col, from, n)
	if err == nil {
		v.Reverse()
	}
	return v, err
}

// loadSelected is load for the selected rows alone, where that is faster. Otherwise it does
// nothing.
func (it *Iterator) loadSelected(col int, from batch.Ordinal, n int) error {
	c, s := it.column(col), &it.d.Schema.Columns[col]
	r, err := it.reader(col)
	if err != nil || r == nil {
		return err
	}
	c.vector.Type = s.Type
	if c.loaded, err = r.ReadSelected(from, n, it.out.Selection, &c.vector); c.loaded && it.window.Touches(s.ID) {
		it.window.ApplyColumn(s.ID, &c.vector)
	}
	return err
}
