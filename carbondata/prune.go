package carbondata

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

const (
	some verdict = iota // not known
	none
	all
)

// verdict combines the verdicts of the tests.
func (n *node) verdict(tests []verdict) verdict {
	switch n.op {
	case nodeLeaf:
		return tests[n.leaf]
	case nodeNot:
		switch n.children[0].verdict(tests) {
		case none:
			return all
		case all:
			return none
		}
		return some
	}
	// One child decides an And if it is none, and an Or if it is all.
	decides, result := none, all
	if n.op == nodeOr {
		decides, result = all, none
	}
	for i := range n.children {
		switch v := n.children[i].verdict(tests); v {
		case decides:
			return v
		case some:
			result = some
		}
	}
	return result
}

// nulls says whether a column is known to have only NULLs or no NULLs.
type nulls uint8

const (
	someNulls nulls = iota // not known
	noNulls
	onlyNulls
)

// judge returns for how many cells p is true, of which those that are not NULL are in r if known is
// true.
func judge(p *batch.Predicate, r cellRange, known bool, n nulls) verdict {
	switch {
	case p.Op == batch.IsNull && n == noNulls, p.Op == batch.NotNull && n == onlyNulls:
		return none
	case p.Op == batch.NotNull && n == noNulls, p.Op == batch.IsNull && n == onlyNulls:
		return all
	case p.Op == batch.IsNull || p.Op == batch.NotNull:
		return some
	case n == onlyNulls:
		return none
	case !known:
		return some
	}
	v := judgeRange(p, r)
	if v == all && n != noNulls {
		return some
	}
	return v
}

// judgeRange is judge for cells that are not NULL.
func judgeRange(p *batch.Predicate, r cellRange) verdict {
	if p.Op == batch.In {
		// The values are sorted.
		i := sort.Search(len(p.Values), func(i int) bool { return batch.Compare(p.Type, p.Values[i], r.min) >= 0 })
		if i < len(p.Values) && batch.Compare(p.Type, p.Values[i], r.max) <= 0 {
			return some
		}
		return none
	}
	if p.Op == batch.Like {
		return some
	}
	c := p.Values[0]
	lo, hi := batch.Compare(p.Type, c, r.min), batch.Compare(p.Type, c, r.max) // of c to the bounds
	outside, only := lo < 0 || hi > 0, lo == 0 && hi == 0
	var no, yes bool
	switch p.Op {
	case batch.Eq:
		no, yes = outside, only
	case batch.Ne:
		no, yes = only, outside
	case batch.Lt:
		no, yes = lo <= 0, hi > 0
	case batch.Le:
		no, yes = lo < 0, hi >= 0
	case batch.Gt:
		no, yes = hi >= 0, lo < 0
	case batch.Ge:
		no, yes = hi > 0, lo <= 0
	}
	// NaN is outside of all bounds, and compares as equal to them: it passes Ne, and no other test.
	if p.Type == schema.Double {
		if p.Op == batch.Ne || math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(c))) {
			return some
		}
		yes = false
	}
	switch {
	case no:
		return none
	case yes:
		return all
	}
	return some
}

func newPruner(f *boundFilter) pruner {
	n := len(f.leaves)
	return pruner{filter: f, blocklet: make([]verdict, n), page: make([]verdict, n), matches: make([]batch.Bitmap, n)}
}

// bounds judges a blocklet by its bounds, before anything of it is read.
func (p *pruner) bounds(columns []*scanColumn, b *blocklet) verdict {
	for i := range p.filter.leaves {
		l := &p.filter.leaves[i]
		p.matches[i] = nil
		c := columns[l.column]
		if c.cells == nil {
			p.blocklet[i] = c.judgeMissing(&l.test)
			continue
		}
		r, known := b.bounds.rangeOf(c.cells.column.first, c.cells.column, l.test.Type)
		p.blocklet[i] = judge(&l.test, r, known && !p.disabled, someNulls)
	}
	return p.root(p.blocklet)
}

// root returns the verdict of the filter.
func (p *pruner) root(tests []verdict) verdict {
	if p.disabled {
		return some
	}
	return p.filter.root.verdict(tests)
}

// judgeMissing judges a column that has the same value in each row.
func (c *scanColumn) judgeMissing(p *batch.Predicate) verdict {
	v := batch.NewVector(p.Type, 1)
	if err := setValue(v, 0, c.missing); err != nil {
		return some
	}
	if p.EvalCell(v.Cell(0)) {
		return all
	}
	return none
}

// dictionaries judges a blocklet by the dictionaries of the columns.
func (p *pruner) dictionaries(columns []*scanColumn) verdict {
	if p.disabled {
		return some
	}
	for i := range p.filter.leaves {
		l := &p.filter.leaves[i]
		c := columns[l.column].cells
		if c == nil || c.dict == nil || l.test.Type == schema.Array ||
			l.test.Op == batch.IsNull || l.test.Op == batch.NotNull {
			continue
		}
		match := c.dict.match(&l.test)
		if p.matches[i] = match; !match.Any() {
			p.blocklet[i] = none
		}
	}
	return p.root(p.blocklet)
}

// match returns a bit for each word, 1 if it passes. The bits of null words are 0.
func (d *dictionary) match(p *batch.Predicate) batch.Bitmap {
	match := batch.MakeBitmap(len(d.words.Words))
	for i, word := range d.words.Words {
		if (d.nulls == nil || !d.nulls.Get(i)) && p.EvalCell(word) {
			match.Set(i)
		}
	}
	return match
}

// pageBounds judges page i, of n rows, by its bounds and null bits, before it is read.
func (p *pruner) pageBounds(columns []*scanColumn, i, n int) (verdict, error) {
	for k := range p.filter.leaves {
		l := &p.filter.leaves[k]
		c := columns[l.column].cells
		p.page[k] = p.blocklet[k]
		if p.page[k] != some || p.disabled || c == nil {
			continue
		}
		h := &c.chunk.pages[i]
		nulls, err := h.countNulls(c.column, n)
		if err != nil {
			return some, inside(err, "column %q: page %d", c.column.Name, i)
		}
		r, known := h.bounds.rangeOf(0, c.column, l.test.Type)
		p.page[k] = judge(&l.test, r, known, nulls)
	}
	return p.root(p.page), nil
}

// countNulls returns what the null bits of a page of n rows say. They say nothing of columns whose
// nulls are values in the page.
func (h *pageHeader) countNulls(c *Column, n int) (nulls, error) {
	switch c.Type {
	case Boolean, Byte, Short, Int, Long, Float, Double, Decimal, Timestamp:
	default:
		return someNulls, nil
	}
	if len(h.nulls) == 0 || len(h.encoders) == 0 ||
		!slices.Contains([]encoding{encDirectCompress, encAdaptive, encAdaptiveDelta, encAdaptiveFloat,
			encAdaptiveFloatDel}, h.encoders[0]) {
		return someNulls, nil
	}
	set, err := nullBits(nil, h, n, maxPageRows)
	if err != nil {
		return someNulls, err
	}
	count := 0
	for _, b := range set {
		count += bits.OnesCount8(b)
	}
	switch count {
	case 0:
		return noNulls, nil
	case n:
		return onlyNulls, nil
	}
	return someNulls, nil
}
