package aggregate

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Tabulating: each row of a window has a small index, made of the codes of the key columns and of
// those columns of products that have few values. Rows are counted, and the cells of the other
// columns added up, by index. Groups and figures are computed once from these tables, not from each
// row: sum(price·(1−discount)), with the index containing the discount, is the sum of (1−discount)
// times the sum of the prices, over all discounts.

// Limits of an index.
const (
	maxIndexBits  = 15 // of which the keys may have all
	goodIndexBits = 12 // up to which columns of products are added to it

	maxIndexesPerRow = 8       // of a window, if there are more than goodIndexBits
	maxTableSums     = 1 << 17 // of all indexes; each takes 16 bytes
)

// maxTableFactor bounds the offsets, slopes and factors with which sums of tables are multiplied.
// Three of these and an int64 have a product of less than 128 bits.
const maxTableFactor = 1 << 20

// maxTableValue bounds the magnitudes of values: sums of 2^20 of them fit.
const maxTableValue = 1 << 42

// table is a plan for windows whose columns have certain codes, and the sums and extremes so far.
type table struct {
	index  scan.Index
	keys   int // the key has so many of the first columns of the index
	infos  []scan.ColumnInfo
	values []tableValue // what is added up
	of     []int        // by state: index in values or, of a minimum or maximum, in extremes; -1: none
	limit  int          // rows that can be added up without overflow
	rows   int          // that are added up

	tallies  []tally // of the values; of the number of rows if no value is added up
	extremes []tableExtreme
	strip    []int64
}

// tableValue is the product of terms of columns that are not in the index, of which there is at
// least one. If it is only one, it is the cell itself.
type tableValue struct {
	terms []Term
	at    []int  // columns, as positions in index.Values
	most  uint64 // no magnitude is above
}

// tabulates reports whether all figures can be computed from tables, as far as that does not depend
// on the data.
func (a *Aggregator) tabulates() bool {
	for _, k := range a.groups.columns {
		if k.typ.Physical() == schema.Float || k.typ.Physical() == schema.Double || k.typ.Width() > 8 {
			return false
		}
	}
	for _, s := range a.states {
		if s.extreme != nil && !s.extreme.tabulates() || s.kind == Sum && !s.product.tabulates() {
			return false
		}
	}
	return true
}

// tabulate takes a window as AddWindow does.
func (a *Aggregator) tabulate(w scan.Window) (taken bool, err error) {
	t, err := a.tableOf(w)
	if t == nil || err != nil {
		return false, err
	}
	rows := w.Selection()
	n := rows.Count()
	if t.rows > t.limit-n {
		if err := a.flushTable(); err != nil {
			return false, err
		}
	}
	t.rows += n // also if some are not added
	return w.Strips(&t.index, rows, t.add)
}

// tableOf returns the table for a window, nil if there can be none.
func (a *Aggregator) tableOf(w scan.Window) (*table, error) {
	infos := grown(a.infos, len(a.columns))
	a.infos = infos
	for i := range infos {
		var err error
		if infos[i], err = w.Describe(i); err != nil {
			return nil, err
		}
	}
	if a.table != nil && slices.EqualFunc(infos, a.table.infos, sameInfo) {
		return a.table, nil
	}
	if err := a.flushTable(); err != nil {
		return nil, err
	}
	a.table = a.newTable(slices.Clone(infos), w.Selection().Count())
	return a.table, nil
}

// sameInfo reports whether codes of a and b mean the same.
func sameInfo(a, b scan.ColumnInfo) bool {
	return a.Coded == b.Coded && a.Bits == b.Bits && a.Null == b.Null && a.Integers == b.Integers && a.Most == b.Most &&
		len(a.Words) == len(b.Words) && unsafe.SliceData(a.Words) == unsafe.SliceData(b.Words)
}

// newTable returns a table for columns, nil if there can be none, or if it is too large for the
// number of rows in a window.
func (a *Aggregator) newTable(infos []scan.ColumnInfo, rows int) *table {
	t := &table{infos: infos, keys: len(a.groups.columns)}
	var others []int // columns of products
	for _, s := range a.states {
		if (s.kind == CountCells || s.extreme != nil) && !slices.Contains(others, s.column) {
			others = append(others, s.column)
		}
		for p := s.product; p != nil; p = p.before {
			if !slices.Contains(others, p.term.Column) {
				others = append(others, p.term.Column)
			}
		}
	}
	// The columns of the key have the highest bits, so that the indexes of a group are consecutive.
	list := make([]int, 0, len(infos))
	for _, k := range a.groups.columns {
		if !infos[k.column].Coded {
			return nil
		}
		t.index.Bits += infos[k.column].Bits
		list = append(list, k.column)
	}
	slices.SortFunc(others, func(x, y int) int { return infos[x].Bits - infos[y].Bits })
	for _, i := range others {
		if slices.Contains(list, i) {
			continue
		}
		if info := &infos[i]; info.Coded && info.Words == nil && t.index.Bits+info.Bits <= goodIndexBits {
			t.index.Bits += info.Bits
			list = append(list, i)
		}
	}
	if t.index.Bits > maxIndexBits || t.index.Bits > goodIndexBits && 1<<t.index.Bits > maxIndexesPerRow*rows {
		return nil
	}
	shift := t.index.Bits
	for _, i := range list {
		shift -= infos[i].Bits
		t.index.Codes = append(t.index.Codes, scan.IndexColumn{Column: i, Shift: shift, ColumnInfo: infos[i]})
	}
	for _, s := range a.states {
		if !t.addState(s) {
			return nil
		}
	}
	if (len(t.values)+len(t.extremes)+1)<<t.index.Bits > maxTableSums {
		return nil
	}
	t.makeTallies()
	return t
}

// indexColumn returns the column of the index with the codes of a column, or nil if the index does
// not have the column.
func (t *table) indexColumn(column int) *scan.IndexColumn {
	for i := range t.index.Codes {
		if t.index.Codes[i].Column == column {
			return &t.index.Codes[i]
		}
	}
	return nil
}

// addState adds what is to be added up for a state, or returns false if it cannot be computed.
func (t *table) addState(s *state) bool {
	t.of = append(t.of, -1)
	switch s.kind {
	case CountRows:
		return true
	case CountCells:
		return t.indexColumn(s.column) != nil
	case Min, Max:
		return t.addExtreme(s)
	}
	var v tableValue
	factor := uint64(1)
	for _, term := range s.product.terms() {
		if c := t.indexColumn(term.Column); c != nil {
			if c.Words != nil {
				return false // a string; not possible
			}
			most, ok := term.most(1<<c.Bits - 1)
			over, f := bits.Mul64(factor, most)
			if factor = f; !ok || over != 0 || factor > 1<<40 {
				return false
			}
			continue
		}
		v.terms = append(v.terms, term)
	}
	if len(v.terms) == 0 {
		return true
	}
	bound := uint64(1)
	for _, term := range v.terms {
		info := &t.infos[term.Column]
		if !info.Integers {
			return false
		}
		v.at = append(v.at, t.valueOf(term.Column))
		most, ok := info.Most, true
		if len(v.terms) > 1 {
			most, ok = term.most(info.Most)
		}
		over, b := bits.Mul64(bound, most)
		if bound = b; !ok || over != 0 || bound > maxTableValue {
			return false
		}
	}
	v.most = bound
	if i := slices.IndexFunc(t.values, v.equal); i >= 0 {
		t.of[len(t.of)-1] = i
		return true
	}
	t.of[len(t.of)-1] = len(t.values)
	t.values = append(t.values, v)
	return true
}

// valueOf returns the position of a column in index.Values, where it adds it.
func (t *table) valueOf(column int) int {
	at := slices.Index(t.index.Values, column)
	if at < 0 {
		at = len(t.index.Values)
		t.index.Values = append(t.index.Values, column)
	}
	return at
}

// equal reports whether v and o have the same cells.
func (v tableValue) equal(o tableValue) bool {
	return slices.Equal(v.at, o.at) && (len(v.at) == 1 || slices.Equal(v.terms, o.terms))
}

// most returns a number that no magnitude of the term is above if none of the cells is above most.
func (t *Term) most(most uint64) (uint64, bool) {
	over, m := bits.Mul64(abs(int64(t.Slope.Lo)), most)
	m, carry := bits.Add64(m, abs(int64(t.Offset.Lo)), 0)
	return m, over|carry == 0
}

// valuesOf returns the values of the rows of a strip.
func (t *table) valuesOf(v *tableValue, columns [][]int64) []int64 {
	cells := columns[v.at[0]]
	if len(v.at) == 1 {
		return cells
	}
	t.strip = grown(t.strip, len(cells))
	for k, at := range v.at {
		offset, slope, out := int64(v.terms[k].Offset.Lo), int64(v.terms[k].Slope.Lo), t.strip
		if k == 0 {
			for i, x := range columns[at][:len(out)] {
				out[i] = offset + slope*x
			}
			continue
		}
		for i, x := range columns[at][:len(out)] {
			out[i] *= offset + slope*x
		}
	}
	return t.strip
}

// flushTable adds what the table has added up to the groups, and empties it.
func (a *Aggregator) flushTable() error {
	t := a.table
	if t == nil || t.rows == 0 {
		return nil
	}
	t.rows = 0
	key := make([][]byte, t.keys)
	low := t.index.Bits
	if t.keys > 0 {
		low = t.index.Codes[t.keys-1].Shift
	}
	group, last := uint32(0), -1
	for x := range 1 << t.index.Bits {
		n := t.read(x)
		if n == 0 {
			continue
		}
		if prefix := x >> low; prefix != last && t.keys > 0 {
			for i := range key {
				var err error
				if key[i], err = cellOfCode(a.groups.columns[i].typ, &t.index.Codes[i], x); err != nil {
					return err
				}
			}
			group, last = a.groups.of(key), prefix
			a.reserve(a.groups.count())
		}
		a.rows[group] += n
		for i, s := range a.states {
			t.flush(s, group, x, n, t.of[i])
		}
	}
	for i := range t.tallies {
		clear(t.tallies[i].bins)
	}
	for i := range t.extremes {
		t.extremes[i].clear()
	}
	return a.checkMemory()
}

// flush adds what n rows of index x add to a state.
func (t *table) flush(s *state, group uint32, x int, n int64, value int) {
	switch s.kind {
	case CountRows:
		return
	case CountCells:
		if !isNull(t.indexColumn(s.column), x) {
			s.cells[group] += n
		}
		return
	case Min, Max:
		t.flushExtreme(s, group, x, value)
		return
	}
	factor, last := batch.Int128Of(1), Term{Slope: batch.Int128Of(1)}
	for p := s.product; p != nil; p = p.before {
		c := t.indexColumn(p.term.Column)
		if c == nil {
			last = p.term
			continue
		}
		if isNull(c, x) {
			return
		}
		code := int64(x >> c.Shift & (1<<c.Bits - 1))
		factor, _ = factor.Mul(batch.Int128Of(int64(p.term.Offset.Lo) + int64(p.term.Slope.Lo)*code))
	}
	total := batch.Int128Of(n)
	if value >= 0 {
		total = batch.Int128Of(t.tallies[value].sum)
		if len(t.values[value].at) == 1 {
			total, _ = last.Slope.Mul(total)
			offset, _ := last.Offset.Mul(batch.Int128Of(n))
			total, _ = total.Add(offset)
		}
	}
	total, _ = total.Mul(factor) // newTable has bounded all products
	s.ints[group].Add(total, n)
}

// isNull reports whether the cell of a column is NULL in rows with index x.
func isNull(c *scan.IndexColumn, x int) bool { return x>>c.Shift&int(c.Null) != 0 }

// cellOfCode returns the cell of a column in rows with index x, nil for NULL. Errors: ErrCorrupt
// for a code beyond a dictionary.
func cellOfCode(typ schema.Type, c *scan.IndexColumn, x int) ([]byte, error) {
	code := x >> c.Shift & (1<<c.Bits - 1)
	switch {
	case isNull(c, x):
		return nil, nil
	case c.Words == nil:
		return cellOf(typ, keyOfInteger(typ, int64(code))), nil
	case code >= len(c.Words):
		return nil, fault.Corruptf("code %d, the dictionary has %d words", code, len(c.Words))
	case c.Words[code] == nil:
		return []byte{}, nil
	}
	return c.Words[code], nil
}

// keyOfInteger returns the key of a cell that is an integer.
func keyOfInteger(typ schema.Type, v int64) int64 {
	if typ.Physical() == schema.Uint64 {
		return v ^ signBit
	}
	return v
}
