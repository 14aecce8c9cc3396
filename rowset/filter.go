package rowset

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/batch"
)

// columnTests are predicates on one column that must all be true.
type columnTests struct {
	col  int
	ps   []*batch.Predicate
	cost int // of a row
}

// planFilter divides a filter that is an And into the tests of each column, which are made together,
// the cheapest first, and the other parts, which follow. It sets, for each column, whether it is
// read again after its first test.
func (it *Iterator) planFilter() {
	for _, col := range it.req.Columns() {
		it.column(col).again = true
	}
	for f := range it.req.Filter().Conjuncts() {
		if p := f.Predicate(); p != nil && !p.MayRest {
			it.addTest(p)
			continue
		}
		it.others = append(it.others, *f)
		for p := range f.Tests() {
			it.testedAgain(it.d.Schema.IndexID(p.ID))
		}
	}
	slices.SortStableFunc(it.tests, func(a, b columnTests) int { return cmp.Compare(a.cost, b.cost) })
}

// addTest adds a predicate to the tests of its column.
func (it *Iterator) addTest(p *batch.Predicate) {
	col := it.d.Schema.IndexID(p.ID)
	i := slices.IndexFunc(it.tests, func(t columnTests) bool { return t.col == col })
	if i < 0 {
		it.testedAgain(col)
		i = len(it.tests)
		if i < cap(it.tests) {
			it.tests = it.tests[:i+1] // with the memory of earlier predicates
		} else {
			it.tests = append(it.tests, columnTests{})
		}
		t := &it.tests[i]
		t.col, t.ps, t.cost = col, t.ps[:0], it.testCost(col)
	}
	it.tests[i].ps = append(it.tests[i].ps, p)
}

// testedAgain records that a column is tested once more.
func (it *Iterator) testedAgain(col int) {
	c := it.column(col)
	c.again, c.tested = c.again || c.tested, true
}

// testCost returns about how much a test of a column's cells costs, compared with other columns. It
// reads nothing.
func (it *Iterator) testCost(col int) int {
	if v := it.d.columns[col].file.val.Load(); v != nil {
		return (*v).SelectCost()
	}
	return unknownCost
}

// unknownCost is the cost of reading a column whose width is not known: as much as numbers of 8
// bytes.
const unknownCost = 8

// choose clears the bits of the window's rows for which the filter is not true, and reports whether
// any is left.
func (it *Iterator) choose(sel batch.Bitmap) (bool, error) {
	if it.ahead.has(it.from, it.n) {
		it.ahead.selection(it.from, it.n, sel)
		return sel.Any(), nil
	}
	for i := range it.tests {
		t := &it.tests[i]
		if err := it.filterAll(t, sel); err != nil || !sel.Any() {
			return false, err
		}
	}
	for i := range it.others {
		if err := it.eval.Eval(&it.others[i], sel, it.test); err != nil || !sel.Any() {
			return false, err
		}
	}
	return sel.Any(), nil
}

// filterAll is filter for the tests of a column. If the scan counts, they are made one by one.
func (it *Iterator) filterAll(t *columnTests, sel batch.Bitmap) error {
	if it.counting == nil {
		return it.filter(t.col, t.ps, sel)
	}
	for _, p := range t.ps {
		if !sel.Any() {
			break
		}
		if err := it.countedFilter(p, sel); err != nil {
			return err
		}
	}
	return nil
}

// filterOne is filter for one predicate.
func (it *Iterator) filterOne(p *batch.Predicate, sel batch.Bitmap) error {
	it.one[0] = p
	return it.filter(it.d.Schema.IndexID(p.ID), it.one[:], sel)
}

// filter clears the bits of the window's rows for which one of ps, predicates on column col, is not
// true. Encoded data is not tested if the column is read again later and its test left rows in the
// previous window, unless that is fast: the column will then most likely be decoded for this window
// too.
func (it *Iterator) filter(col int, ps []*batch.Predicate, sel batch.Bitmap) error {
	if len(ps) == 1 && ps[0].Op == batch.NotNull && !it.d.Schema.Columns[col].Nullable {
		return nil
	}
	c := it.column(col)
	decode := c.loaded
	if c.again && c.passed && !decode && !it.taken {
		r, err := it.reader(col)
		if err != nil {
			return err
		}
		decode = r != nil && !r.SelectsFast()
	}
	defer func() { c.passed = sel.Any() }()
	if !decode {
		if handled, err := it.selectEncoded(col, ps, sel); handled || err != nil {
			return err
		}
	}
	if it.n > int(it.rows) {
		return errDecode // lookAhead's
	}
	it.counting.decodes()
	v, err := it.load(col, it.from, it.n)
	if err != nil {
		return err
	}
	for _, p := range ps {
		p.Eval(v, sel)
	}
	return nil
}

// selectEncoded is filter on encoded data. Rows whose cell was changed are tested by their new
// cells. If handled is false, the bits of some rows that do not pass may have been cleared.
func (it *Iterator) selectEncoded(col int, ps []*batch.Predicate, sel batch.Bitmap) (handled bool, err error) {
	r, err := it.reader(col)
	if err != nil || r == nil {
		return false, err
	}
	id := it.d.Schema.Columns[col].ID
	if !it.window.Touches(id) {
		return r.SelectAll(it.from, it.n, ps, sel)
	}
	touched, few := it.touchedRows(id)
	if !few {
		return false, nil
	}
	it.rest = append(it.rest[:0], sel...) // the rows whose cell is the stored one
	it.rest.AndNot(touched)
	touched.And(sel)
	if handled, err = r.SelectAll(it.from, it.n, ps, it.rest); !handled || err != nil {
		return false, err
	}
	if touched.Any() {
		v := it.changedCells(col)
		for _, p := range ps {
			p.Eval(v, touched)
		}
	}
	for i, passed := range touched {
		sel[i] = it.rest[i] | passed
	}
	return true, nil
}
