package rowset

import "github.com/oribi-db/oribi/batch"

// result returns the column's cells in the order of the scan. In a descending one, it reverses them
// once per window, while they are in the CPU's cache.
func (it *Iterator) result(col int, from batch.Ordinal, n int) (*batch.Vector, error) {
	c := it.column(col)
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
