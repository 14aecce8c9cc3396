package rowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// strips is the memory of Strips.
type strips struct {
	indexer cfile.Indexer
	columns []cfile.IndexColumn
	index   []uint16
	vectors []batch.Vector
	wide    [][]int64 // cells of less than 64 bits
	changes []stripChange
	strip   scan.Strip
	infos   []columnInfo // by column of the request
}

// columnInfo is the description of a column for Describe.
type columnInfo struct {
	open bool
	scan.ColumnInfo
	codes map[string]uint16 // of the words; nil until they are made
}

// stripChange are the changed cells of a column.
type stripChange struct {
	rows  batch.Bitmap  // of the window; empty if no cell was changed
	cells *batch.Vector // of the window; defined for rows
}

// Describe describes a column, once for each iterator.
func (w *encoded) Describe(i int) (scan.ColumnInfo, error) {
	for len(w.infos) <= i {
		w.infos = append(w.infos, columnInfo{})
	}
	info := &w.infos[i]
	if info.open {
		return info.ColumnInfo, nil
	}
	_, _, r, err := w.column(i)
	if err != nil {
		return scan.ColumnInfo{}, err
	}
	if r != nil {
		codes, coded, err := r.Codes()
		if err != nil {
			return scan.ColumnInfo{}, err
		}
		if coded {
			info.Coded, info.Bits, info.Words, info.Null = true, codes.Bits, codes.Words, codes.Null
		}
		if info.Most, info.Integers, err = r.Magnitude(); err != nil {
			return scan.ColumnInfo{}, err
		}
	}
	info.open = true
	return info.ColumnInfo, nil
}

// Strips reads codes and cells of up to cfile.IndexRows rows at a time.
func (w *encoded) Strips(x *scan.Index, rows batch.Bitmap, f func(s *scan.Strip) error) (ok bool, err error) {
	if ok, err = w.prepareStrips(x, rows); !ok || err != nil {
		return false, err
	}
	w.index = slices.Grow(w.index[:0], cfile.IndexRows)[:cfile.IndexRows]
	for at := 0; at < w.it.n; at += cfile.IndexRows {
		n := min(cfile.IndexRows, w.it.n-at)
		if !rows.AnyRange(at, at+n) {
			continue
		}
		w.strip.Index = w.index[:n]
		if err := w.indexer.Read(w.it.from+batch.Ordinal(at), w.columns, rows, at, x.Bits, w.strip.Index); err != nil {
			return true, err
		}
		w.strip.Values = w.strip.Values[:0]
		for k, i := range x.Values {
			values, err := w.stripValues(k, i, at, n)
			if err != nil {
				return true, err
			}
			w.strip.Values = append(w.strip.Values, values)
		}
		w.applyChanges(x, at, n)
		if err := f(&w.strip); err != nil {
			return true, err
		}
	}
	return true, nil
}

// prepareStrips opens the columns and finds their changed cells. ok is false if the window cannot be
// read in strips.
func (w *encoded) prepareStrips(x *scan.Index, rows batch.Bitmap) (ok bool, err error) {
	w.columns, w.changes = w.columns[:0], w.changes[:0]
	for i := range x.Codes {
		c := &x.Codes[i]
		_, _, r, err := w.column(c.Column)
		if r == nil || err != nil {
			return false, err
		}
		if ok, err := r.Coded(w.it.from, w.it.n, rows); !ok || err != nil {
			return false, err
		}
		codes := cfile.Codes{Bits: c.Bits, Words: c.Words, Null: c.Null}
		w.columns = append(w.columns, cfile.IndexColumn{Reader: r, Codes: codes, Shift: c.Shift})
		if !w.addChanges(c.Column, rows) {
			return false, nil
		}
	}
	for len(w.vectors) < len(x.Values) {
		w.vectors, w.wide = append(w.vectors, batch.Vector{}), append(w.wide, nil)
	}
	for _, i := range x.Values {
		_, _, r, err := w.column(i)
		if r == nil || err != nil {
			return false, err
		}
		if !w.addChanges(i, rows) {
			return false, nil
		}
	}
	return w.changesFit(x), nil
}

// addChanges adds the changed cells of a column to w.changes, or returns false if they are too many.
func (w *encoded) addChanges(i int, rows batch.Bitmap) bool {
	k := len(w.changes)
	if cap(w.changes) > k {
		w.changes = w.changes[:k+1]
	} else {
		w.changes = append(w.changes, stripChange{})
	}
	ch := &w.changes[k]
	ch.rows = ch.rows[:0]
	col := w.it.req.Columns()[i]
	id := w.it.d.Schema.Columns[col].ID
	if !w.it.window.Touches(id) {
		return true
	}
	touched, few := w.it.touchedRows(id)
	if !few {
		return false
	}
	if touched.And(rows); touched.Any() {
		ch.rows, ch.cells = append(ch.rows, touched...), w.it.changedCells(col)
	}
	return true
}

// changesFit reports whether all changed cells have codes, or are integers in the known range.
func (w *encoded) changesFit(x *scan.Index) bool {
	for k := range w.changes {
		ch := &w.changes[k]
		for row := ch.rows.Next(0); row >= 0; row = ch.rows.Next(row + 1) {
			if k < len(x.Codes) {
				if _, ok := w.changedCode(&x.Codes[k], ch.cells, row); !ok {
					return false
				}
				continue
			}
			info := &w.infos[x.Values[k-len(x.Codes)]]
			if ch.cells.IsNull(row) {
				return false
			}
			if v := batch.Int128OfCell(ch.cells.Type, ch.cells.Cell(row)); v != batch.Int128Of(int64(v.Lo)) ||
				magnitude(int64(v.Lo)) > info.Most {
				return false
			}
		}
	}
	return true
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// changedCode returns the code of cell i of v, or false if it has none.
func (w *encoded) changedCode(c *scan.IndexColumn, v *batch.Vector, i int) (code uint16, ok bool) {
	if v.IsNull(i) {
		return c.Null, c.Null != 0
	}
	cell := v.Cell(i)
	if c.Words != nil {
		info := &w.infos[c.Column]
		if info.codes == nil {
			info.codes = make(map[string]uint16, len(c.Words))
			for k, word := range c.Words {
				info.codes[string(word)] = uint16(k)
			}
		}
		code, ok = info.codes[string(cell)]
		return code, ok
	}
	limit := uint64(1) << c.Bits
	if c.Null != 0 {
		limit = uint64(c.Null)
	}
	x := cfile.CodeOf(cell)
	return uint16(x), x < limit
}

// applyChanges sets the codes and values of changed cells in rows [at, at+n) of the window.
func (w *encoded) applyChanges(x *scan.Index, at, n int) {
	for k := range w.changes {
		ch := &w.changes[k]
		for row := ch.rows.Next(at); row >= 0 && row < at+n; row = ch.rows.Next(row + 1) {
			if k < len(x.Codes) {
				c := &x.Codes[k]
				code, _ := w.changedCode(c, ch.cells, row)
				mask := uint16(1<<c.Bits-1) << c.Shift
				w.strip.Index[row-at] = w.strip.Index[row-at]&^mask | code<<c.Shift
			} else {
				v := batch.Int128OfCell(ch.cells.Type, ch.cells.Cell(row))
				w.strip.Values[k-len(x.Codes)][row-at] = int64(v.Lo)
			}
		}
	}
}

// stripValues returns the stored cells [at, at+n) of the window in a column of integers, the k-th.
func (w *encoded) stripValues(k, i, at, n int) ([]int64, error) {
	_, c, r, err := w.column(i)
	if err != nil {
		return nil, err
	}
	v := &w.vectors[k]
	v.Type = c.Type
	if err := readFull(r, w.it.d, c, w.it.from+batch.Ordinal(at), n, v); err != nil {
		return nil, err
	}
	switch c.Type.Physical() {
	case schema.Int64:
		return batch.Raw[int64](v), nil
	case schema.Uint64:
		return widened(w, k, batch.Raw[uint64](v)), nil
	case schema.Int32:
		return widened(w, k, batch.Raw[int32](v)), nil
	case schema.Uint32:
		return widened(w, k, batch.Raw[uint32](v)), nil
	case schema.Int16:
		return widened(w, k, batch.Raw[int16](v)), nil
	case schema.Uint16:
		return widened(w, k, batch.Raw[uint16](v)), nil
	case schema.Int8:
		return widened(w, k, batch.Raw[int8](v)), nil
	}
	return widened(w, k, batch.Raw[uint8](v)), nil // also of Bool
}

// widened returns integers with 64 bits, in memory of w.
func widened[T int8 | uint8 | int16 | uint16 | int32 | uint32 | uint64](w *encoded, k int, cells []T) []int64 {
	w.wide[k] = slices.Grow(w.wide[k][:0], len(cells))[:len(cells)]
	for i, x := range cells {
		w.wide[k][i] = int64(x)
	}
	return w.wide[k]
}
