package aggregate

import (
	"math/bits"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Computing with windows: figures are computed from stored values, without reading columns. A
// window has the same columns as the batches.

// FromWindows reports whether all figures can be computed from windows, as far as that does not
// depend on the data: sums of integers and of products of two, counts, extremes, and keys
// that may be dictionaries.
func (a *Aggregator) FromWindows() bool { return a.part.bits == 0 && (a.tabulates() || a.splits()) }

// splits reports whether all figures can be computed by splitting windows.
func (a *Aggregator) splits() bool {
	for _, k := range a.groups.columns {
		if !k.typ.Variable() {
			return false
		}
	}
	for _, s := range a.states {
		switch {
		case s.kind == Max && (s.extreme.typ == schema.Float || s.extreme.typ == schema.Double):
			return false // NaN is the greatest value here, and the last choice of a window
		case s.kind == Sum && !s.product.fromWindows(a.columns):
			return false
		}
	}
	return true
}

// maxFactor bounds offsets and slopes of terms. Products of two terms of int64 with slopes of 1 and
// −1 then fit 128 bits.
const maxFactor = 1 << 40

// fromWindows reports whether p is a term, or the product of two, that cannot overflow.
func (p *product) fromWindows(columns []column) bool {
	slope := int64(maxFactor)
	if p.before != nil {
		slope = 1
	}
	if p.floats || p.before != nil && p.before.before != nil {
		return false
	}
	for ; p != nil; p = p.before {
		offset := int64(maxFactor)
		if slope == 1 && columns[p.term.Column].typ.Physical() == schema.Uint64 {
			offset = 0
		}
		if !small(p.term.Offset, offset) || !small(p.term.Slope, slope) {
			return false
		}
	}
	return true
}

// small reports whether the magnitude of v is at most limit.
func small(v batch.Int128, limit int64) bool {
	x := int64(v.Lo)
	return v == batch.Int128Of(x) && -limit <= x && x <= limit
}

// windowPart is the part of a state of one group that comes from one window.
type windowPart struct {
	group uint32
	state *state // nil: to the rows of the group
	sum   batch.Int128
	n     int64
	cell  []byte
}

// AddWindow takes the selected rows of a window, or returns false if it cannot compute all figures
// from stored values; it has then added nothing to a, except perhaps groups without rows. It
// returns the same errors as Add.
func (a *Aggregator) AddWindow(w scan.Window) (taken bool, err error) {
	if a.refused > 0 {
		a.refused--
		return false, nil
	}
	if taken, err = a.takeWindow(w); taken || err != nil {
		a.pause = 0
		return taken, err
	}
	a.refused = a.pause
	a.pause = min(2*a.pause+1, maxPause)
	return false, nil
}

// takeWindow is AddWindow for a window that is tried.
func (a *Aggregator) takeWindow(w scan.Window) (taken bool, err error) {
	tabulates, splits := a.tabulates(), a.splits()
	if tabulates && splits {
		faster, err := a.splitsFaster(w)
		if err != nil {
			return false, err
		}
		if !faster {
			if taken, err = a.tabulate(w); taken || err != nil {
				return taken, err
			}
			tabulates, splits = false, a.hasExtremes() // which a table may lack because of NULLs
		}
	}
	if splits {
		if taken, err = a.addSplit(w); taken || err != nil {
			return taken, err
		}
	}
	if tabulates {
		return a.tabulate(w)
	}
	return false, nil
}

// hasExtremes reports whether a figure is a minimum or a maximum.
func (a *Aggregator) hasExtremes() bool {
	return slices.ContainsFunc(a.states, func(s *state) bool { return s.extreme != nil })
}

// manySplits is the number of groups and figures from which on one pass over the values of all
// groups is faster than one for each group and figure, if the figures are not all sums of columns.
const manySplits = 5

// What it takes to add up a row, in units of 0.003 ns.
const (
	splitCost   = 15  // for each group
	sumCost     = 5   // for each group and sum, and 1 for each plane of the column
	extremeCost = 20  // for each group and minimum or maximum, in addition to a sum's cost
	indexCost   = 100 // of a table, which needs no pass for each group
	tallyCost   = 250 // for each sum, minimum or maximum of a table, or for a count
	cellCost    = 180 // for each sum, minimum or maximum of a table
)

// splitsFaster reports whether splitting a window is faster than tabulating it.
func (a *Aggregator) splitsFaster(w scan.Window) (bool, error) {
	groups, nulls := 1, false
	for _, k := range a.groups.columns {
		info, err := w.Describe(k.column)
		if err != nil || info.Words == nil {
			return false, err
		}
		groups *= len(info.Words)
		nulls = nulls || info.Null != 0
	}
	if len(a.groups.columns) == 0 || groups*len(a.states) < manySplits {
		return true, nil
	}
	if nulls {
		return false, nil
	}
	split, sums := splitCost, 0
	for _, s := range a.states {
		column := s.column
		switch {
		case s.kind == CountRows:
			continue
		case s.extreme != nil:
			split += extremeCost
		case s.kind != Sum || s.product.before != nil:
			return false, nil
		default:
			column = s.product.term.Column
		}
		info, err := w.Describe(column)
		if err != nil || !info.Integers {
			return false, err
		}
		if in, err := w.InPlanes(column); !in || err != nil {
			return false, err
		}
		split += sumCost + bits.Len64(info.Most)
		sums++
	}
	return groups*split < indexCost+tallyCost*max(sums, 1)+cellCost*sums, nil
}

// addSplit takes a window by splitting it.
func (a *Aggregator) addSplit(w scan.Window) (taken bool, err error) {
	a.parts = a.parts[:0]
	if taken, err = a.splitWindow(w, nil, w.Selection()); !taken || err != nil {
		return false, err
	}
	a.reserve(a.groups.count())
	for i := range a.parts {
		p := &a.parts[i]
		switch s := p.state; {
		case s == nil:
			a.rows[p.group] += p.n
		case s.kind == CountCells:
			s.cells[p.group] += p.n
		case s.kind == Sum:
			s.ints[p.group].Add(p.sum, p.n)
		case p.cell != nil:
			s.extreme.addCell(p.group, p.cell)
		}
	}
	return true, a.checkMemory()
}

// maxPause is the largest number of windows that are not tried after AddWindow has returned false
// for a window.
const maxPause = 63

// splitWindow divides rows by the columns of the key from len(key) on, and adds what each group
// gets to a.parts.
func (a *Aggregator) splitWindow(w scan.Window, key [][]byte, rows batch.Bitmap) (ok bool, err error) {
	if len(key) == len(a.groups.columns) {
		return a.addRows(w, a.groups.of(key), rows)
	}
	all := true
	ok, err = w.Split(a.groups.columns[len(key)].column, rows, func(cell []byte, rows batch.Bitmap) error {
		if all {
			var err error
			all, err = a.splitWindow(w, append(key, cell), rows)
			return err
		}
		return nil
	})
	return ok && all, err
}

// addRows adds to a.parts what rows add to a group.
func (a *Aggregator) addRows(w scan.Window, group uint32, rows batch.Bitmap) (ok bool, err error) {
	if a.needsRows {
		a.parts = append(a.parts, windowPart{group: group, n: int64(rows.Count())})
	}
	for _, s := range a.states {
		p := windowPart{group: group, state: s}
		switch s.kind {
		case CountRows:
			continue
		case CountCells:
			p.n, ok, err = w.Count(s.column, rows)
		case Sum:
			p.sum, p.n, ok, err = s.product.ofWindow(w, rows)
		default:
			p.cell, ok, err = w.Extreme(s.extreme.column, s.extreme.max, rows)
		}
		if !ok || err != nil {
			return false, err
		}
		a.parts = append(a.parts, p)
	}
	return true, nil
}

// ofWindow returns the sum of the product over rows.
func (p *product) ofWindow(w scan.Window, rows batch.Bitmap) (sum batch.Int128, n int64, ok bool, err error) {
	t := &p.term
	if p.before == nil {
		x, n, ok, err := w.Sum(t.Column, rows)
		if !ok || err != nil {
			return sum, 0, false, err
		}
		sum, ok = total(term{t.Slope, x}, term{t.Offset, batch.Int128Of(n)})
		return sum, n, ok, nil
	}
	u := &p.before.term
	xy, n, ok, err := w.SumProducts(u.Column, t.Column, rows)
	if !ok || err != nil {
		return sum, 0, false, err
	}
	none := batch.Int128{}
	factor, _ := t.Slope.Mul(u.Slope) // factors are small
	terms := [4]term{{factor, xy}}
	if t.Offset != none { // (a + b x)(c + d y) = ac + bc x + ad y + bd xy; SumProducts refuses NULLs
		x, _, ok, err := w.Sum(u.Column, rows)
		if !ok || err != nil {
			return sum, 0, false, err
		}
		factor, _ := t.Offset.Mul(u.Slope)
		terms[1] = term{factor, x}
	}
	if u.Offset != none {
		y, _, ok, err := w.Sum(t.Column, rows)
		if !ok || err != nil {
			return sum, 0, false, err
		}
		factor, _ := u.Offset.Mul(t.Slope)
		terms[2] = term{factor, y}
	}
	factor, _ = u.Offset.Mul(t.Offset)
	terms[3] = term{factor, batch.Int128Of(n)}
	sum, ok = total(terms[:]...)
	return sum, n, ok, nil
}

// term is a product: a factor and the value by which it is multiplied.
type term struct{ factor, x batch.Int128 }

// total returns the sum of the products, or false if one or the sum does not fit.
func total(terms ...term) (sum batch.Int128, ok bool) {
	for _, t := range terms {
		x, fits := t.factor.Mul(t.x)
		if sum, ok = sum.Add(x); !fits || !ok {
			return sum, false
		}
	}
	return sum, true
}

// Flush adds the values of windows that are still in the table to the groups. It must be called
// after the last window, before the results are read or merged. It returns the same errors as Add.
func (a *Aggregator) Flush() error { return a.flushTable() }
