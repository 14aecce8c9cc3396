package rowset

import (
	"bytes"
	"math/bits"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// encoded is the current window of an iterator, as a scan.Window.
type encoded struct {
	it      *Iterator
	sel     batch.Bitmap // of the window's rows, those for which the filter is true
	sum     cfile.Sum
	rows    batch.Bitmap     // of a column's cells, those that are computed with as they are stored
	splits  []split          // by column of the request
	members batch.Bitmap     // rows of one value in Split
	others  batch.Bitmap     // rows that no value was found for
	parts   [][]batch.Bitmap // rows of each value, for each Split within another
	depth   int              // of the current Split
	codes   cfile.CodeSplit
	strips
}

// split is the memory of Split for a column, made once for all windows.
type split struct {
	open  bool               // words and tests were looked for
	words [][]byte           // of the file's dictionary
	tests []*batch.Predicate // for each word, and for NULL
}

// maxSplit is the number of distinct cells up to which Split is worth more than decoding.
const maxSplit = 16

// Selection returns the selected rows.
func (w *encoded) Selection() batch.Bitmap { return w.sel }

// column returns the column of the schema and its reader, nil if the rowset has no such column.
func (w *encoded) column(i int) (col int, c *schema.Column, r *cfile.ColumnReader, err error) {
	col = w.it.req.Columns()[i]
	r, err = w.it.reader(col)
	return col, &w.it.d.Schema.Columns[col], r, err
}

// stored divides rows into those whose cell of the column is as it is stored and rows whose cell
// was changed. changed is nil if no cell was. ok is false if too many were changed.
func (w *encoded) stored(c *schema.Column, rows batch.Bitmap) (stored, changed batch.Bitmap, ok bool) {
	if !w.it.window.Touches(c.ID) {
		return rows, nil, true
	}
	touched, few := w.it.touchedRows(c.ID)
	if !few {
		return nil, nil, false
	}
	w.rows = append(w.rows[:0], rows...)
	w.rows.AndNot(touched)
	if touched.And(rows); !touched.Any() {
		touched = nil
	}
	return w.rows, touched, true
}

// Count counts cells that are not NULL.
func (w *encoded) Count(i int, rows batch.Bitmap) (n int64, ok bool, err error) {
	col, c, r, err := w.column(i)
	if !c.Nullable || err != nil {
		return int64(rows.Count()), err == nil, err
	}
	stored, changed, few := w.stored(c, rows)
	if !few || r == nil {
		return 0, false, nil
	}
	w.members = append(w.members[:0], stored...)
	present := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.NotNull}
	if ok, err = r.Select(w.it.from, w.it.n, &present, w.members); !ok || err != nil {
		return 0, false, err
	}
	n = int64(w.members.Count())
	if changed != nil {
		v := w.it.changedCells(col)
		for row := changed.Next(0); row >= 0; row = changed.Next(row + 1) {
			if !v.IsNull(row) {
				n++
			}
		}
	}
	return n, true, nil
}

// Sum adds up integers.
func (w *encoded) Sum(i int, rows batch.Bitmap) (sum batch.Int128, n int64, ok bool, err error) {
	col, c, r, err := w.column(i)
	if r == nil || c.Type.Physical() == schema.Int128 { // whose sum may have more bits
		return sum, 0, false, err
	}
	touched, diffs, differ := w.it.window.Differences(c.ID)
	stored, changed, few := rows, batch.Bitmap(nil), true
	if !differ {
		stored, changed, few = w.stored(c, rows)
	}
	if !few {
		return sum, 0, false, nil
	}
	w.sum.Reset()
	if ok, err = r.Sum(w.it.from, w.it.n, stored, &w.sum); !ok || err != nil {
		return sum, 0, false, err
	}
	sum, _ = w.sum.Int128()
	n = w.sum.Count()
	if differ {
		sum, _ = sum.Add(w.difference(rows, touched, diffs))
	}
	if changed != nil {
		v := w.it.changedCells(col)
		for row := changed.Next(0); row >= 0; row = changed.Next(row + 1) {
			if !v.IsNull(row) {
				sum, _ = sum.Add(batch.Int128OfCell(c.Type, v.Cell(row))) // cells of a window fit
				n++
			}
		}
	}
	return sum, n, true, nil
}

// difference returns the sum of the differences of those touched rows of the window that are in
// rows.
func (w *encoded) difference(rows batch.Bitmap, touched []uint32, diffs []int64) batch.Int128 {
	var low uint64
	var high int64
	add := func(d int64) {
		var carry uint64
		low, carry = bits.Add64(low, uint64(d), 0)
		high += d>>63 + int64(carry)
	}
	if rows.Count() == w.it.n {
		for _, d := range diffs {
			add(d)
		}
		return batch.Int128{Lo: low, Hi: high}
	}
	from := uint32(w.it.from)
	for i, d := range diffs {
		at := touched[i] - from
		add(d & -int64(rows[at>>6]>>(at&63)&1)) // without a branch: half of the rows may be selected
	}
	return batch.Int128{Lo: low, Hi: high}
}

// SumProducts adds up products of integers. If a selected row was changed, it leaves the window to
// the caller.
func (w *encoded) SumProducts(i, j int, rows batch.Bitmap) (sum batch.Int128, n int64, ok bool, err error) {
	_, c, r, err := w.column(i)
	if r == nil || err != nil {
		return sum, 0, false, err
	}
	_, o, s, err := w.column(j)
	if s == nil || err != nil {
		return sum, 0, false, err
	}
	for _, c := range []*schema.Column{c, o} {
		if _, changed, few := w.stored(c, rows); !few || changed != nil {
			return sum, 0, false, nil
		}
	}
	w.sum.Reset()
	if ok, err = r.SumProducts(w.it.from, w.it.n, s, rows, &w.sum); !ok || err != nil {
		return sum, 0, false, err
	}
	sum, ok = w.sum.Int128()
	return sum, w.sum.Count(), ok, nil
}

// Extreme returns the least or greatest number or byte string.
func (w *encoded) Extreme(i int, greatest bool, rows batch.Bitmap) (cell []byte, ok bool, err error) {
	col, c, r, err := w.column(i)
	if r == nil || err != nil {
		return nil, false, err
	}
	stored, changed, few := w.stored(c, rows)
	if !few {
		return nil, false, nil
	}
	e := new(cfile.Extreme)
	if greatest {
		e = cfile.Maximum()
	}
	if ok, err = r.Extreme(w.it.from, w.it.n, stored, e); !ok || err != nil {
		return nil, false, err
	}
	if changed != nil {
		v := w.it.changedCells(col)
		for row := changed.Next(0); row >= 0; row = changed.Next(row + 1) {
			if cell := v.Cell(row); cell != nil {
				e.Add(c.Type, cell)
			}
		}
	}
	return e.Cell(), true, nil
}

// Split divides rows by the words of the file's dictionary.
func (w *encoded) Split(i int, rows batch.Bitmap, f func(cell []byte, rows batch.Bitmap) error) (ok bool, err error) {
	_, c, r, err := w.column(i)
	if r == nil || err != nil {
		return false, err
	}
	if _, changed, few := w.stored(c, rows); !few || changed != nil {
		return false, nil
	}
	s, err := w.splitOf(i, c, r)
	if s == nil || err != nil {
		return false, err
	}
	if ok, err := w.splitByCode(r, s, rows, f); ok || err != nil {
		return ok, err
	}
	others := append(w.others[:0], rows...)
	w.others = nil // f may split the rows further
	defer func() { w.others = others }()
	for k, p := range s.tests {
		members := append(w.members[:0], others...)
		if ok, err := r.Select(w.it.from, w.it.n, p, members); !ok || err != nil {
			return false, err
		}
		if members.Any() {
			others.AndNot(members)
			w.members = nil
			err := f(s.cell(k), members)
			if w.members = members; err != nil {
				return false, err
			}
		}
		if !others.Any() {
			break
		}
	}
	return !others.Any(), nil // a cblock that is not in dictionary form may have other values
}

// splitByCode is Split for a part of a file that has codes and no NULLs, which are read once for all
// values. If ok is false, it has not called f.
func (w *encoded) splitByCode(r *cfile.ColumnReader, s *split, rows batch.Bitmap,
	f func(cell []byte, rows batch.Bitmap) error) (ok bool, err error) {
	if w.depth == len(w.parts) {
		w.parts = append(w.parts, nil)
	}
	for len(w.parts[w.depth]) < len(s.words) {
		w.parts[w.depth] = append(w.parts[w.depth], nil)
	}
	words, parts := s.words, w.parts[w.depth][:len(s.words)]
	for k := range parts {
		parts[k] = append(parts[k][:0], rows...)
	}
	if ok, err = r.SplitWords(w.it.from, w.it.n, parts, &w.codes); !ok || err != nil {
		return false, err
	}
	w.depth++ // f may split the rows further
	defer func() { w.depth-- }()
	for k, members := range parts {
		if members.Any() {
			if err := f(words[k], members); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// InPlanes looks at the first row.
func (w *encoded) InPlanes(i int) (bool, error) {
	_, _, r, err := w.column(i)
	if r == nil || err != nil {
		return false, err
	}
	return r.InPlanes(w.it.from)
}

// cell returns the value of test k, nil for NULL.
func (s *split) cell(k int) []byte {
	if k < len(s.words) {
		return s.words[k]
	}
	return nil
}

// splitOf returns the values of column i of the request, nil if they are not known or too many.
func (w *encoded) splitOf(i int, c *schema.Column, r *cfile.ColumnReader) (*split, error) {
	for len(w.splits) <= i {
		w.splits = append(w.splits, split{})
	}
	s := &w.splits[i]
	if !s.open {
		*s = split{open: true}
		words, err := r.Words(maxSplit)
		if err != nil {
			return nil, err
		}
		if words == nil {
			return nil, nil
		}
		s.words = words
		for _, word := range words {
			p := &batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.Eq,
				Values: [][]byte{bytes.Clone(word)}}
			if err := p.Prepare(); err != nil {
				return nil, err
			}
			s.tests = append(s.tests, p)
		}
		if c.Nullable {
			s.tests = append(s.tests, &batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.IsNull})
		}
	}
	if s.tests == nil {
		return nil, nil
	}
	return s, nil
}

// release keeps w for the window of another iterator.
func (w *encoded) release() {
	clear(w.splits)
	clear(w.infos)
	clear(w.columns[:cap(w.columns)])
	w.indexer.Release()
	w.codes.Release()
	for i := range w.vectors {
		w.vectors[i].Drop(maxKeptVector)
	}
	w.it, w.sel, w.splits, w.infos, w.columns = nil, nil, w.splits[:0], w.infos[:0], w.columns[:0]
}
