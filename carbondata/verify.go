package carbondata

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// Verify reads and decodes everything, deleted rows too. Besides what every read checks, it
// compares index files with data files; the bounds of pages and blocklets with the values, unless
// they cannot be used; the order of the rows with the flag that says that they are sorted; and
// local dictionaries with the surrogates in use. It returns the first problem, with its file,
// blocklet, column, page, and row. Errors: ErrCorrupt, ErrUnsupported, errors of package os and of
// ctx.
//
// Pages of Snappy must not have copies from offset 0, which other reads take for an extension.
//
// The format has no checksums: Verify does not find a value that was changed into another valid
// value.
//
// Memory: as Rows. Source: carbondata spec §7.5, §9, §10, §17.
func (t *Table) Verify(ctx context.Context) error {
	if err := t.checkIndexes(); err != nil {
		return inside(err, "carbondata")
	}
	for i := range t.files {
		v := verifier{file: t.files[i].File}
		if err := v.verify(ctx); err != nil {
			return fmt.Errorf("carbondata: %s: %w", t.files[i].path, err)
		}
	}
	return nil
}

// verifier verifies one data file.
type verifier struct {
	file    *File
	columns []verifiedColumn
	keys    []int      // sort columns, in the order of the file; nil if the rows are not sorted
	orders  []rowOrder // the rows must have one of these orders
	scratch []byte     // a page as it is in the file
	work    *work
}

// rowOrder is an order of rows by the sort columns. Nulls are first, except that CarbonData's own
// writer sorts a STRING that is null as the text that it stores for it.
type rowOrder struct {
	nullText  bool
	last, key []byte // of the last row and this one
	err       error  // the first row that is not in this order
}

// verifiedColumn is a column of the file.
type verifiedColumn struct {
	cells     *cells
	used      []usedWords // of the column and its children
	lo, hi    any         // of the blocklet's bounds; nil if not usable
	page, all seenBounds  // of the values of the page, and of the blocklet
}

// usedWords are the words of a local dictionary that pages refer to.
type usedWords struct {
	cells *cells
	words batch.Bitmap
}

// nullOrders returns the orders that rows may have.
func nullOrders() []rowOrder { return []rowOrder{{nullText: true}, {}} }

func (v *verifier) verify(ctx context.Context) error {
	strict := *v.file
	strict.strict = true
	v.file, v.work = &strict, strict.newWork()
	f := v.file
	for i := range f.columns {
		c := &f.columns[i]
		v.columns = append(v.columns, verifiedColumn{cells: newCells(c)})
		if f.sorted && c.Sort {
			v.keys = append(v.keys, i)
		}
	}
	if v.keys != nil {
		v.orders = nullOrders()
	}
	for n := range f.blocklets {
		if err := v.blocklet(ctx, &f.blocklets[n]); err != nil {
			return inside(err, "blocklet %d", n)
		}
	}
	return nil
}

func (v *verifier) blocklet(ctx context.Context, b *blocklet) error {
	m := memory{left: v.file.memoryLimit(), work: v.work}
	for i := range v.columns {
		if err := v.columns[i].open(v.file, b, &m); err != nil {
			return inside(err, "column %q", v.file.columns[i].Name)
		}
	}
	headers := m.left
	for p, rows := range b.pageRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.left = headers
		for i := range v.columns {
			c := &v.columns[i]
			if err := c.cells.readPage(v.file, p, rows, &m, &v.scratch); err != nil {
				return err
			}
		}
		if err := v.rows(p, rows, m.elements()); err != nil {
			return err
		}
		for i := range v.columns {
			c := &v.columns[i]
			err := c.checkPage(p, rows)
			for k := range c.used {
				if err == nil {
					err = c.used[k].add()
				}
			}
			if err != nil {
				return inside(err, "column %q: page %d", c.cells.column.Name, p)
			}
		}
	}
	for i := range v.columns {
		c := &v.columns[i]
		if err := c.all.equal(c.lo, c.hi); err != nil {
			return inside(err, "column %q", c.cells.column.Name)
		}
		for k := range c.used {
			if err := c.used[k].check(); err != nil {
				return inside(err, "column %q", c.used[k].cells.column.Name)
			}
		}
	}
	return nil
}

// open reads the headers of the column in a blocklet.
func (c *verifiedColumn) open(f *File, b *blocklet, m *memory) error {
	col := c.cells.column
	if err := c.cells.open(f, b, m); err != nil {
		return err
	}
	c.used, c.all = appendUsed(c.used[:0], c.cells), seenBounds{}
	lo, hi, present := b.bounds.of(col.first)
	var err error
	c.lo, c.hi, err = col.usableBounds(lo, hi, present)
	return err
}

// appendUsed appends the dictionaries of a column and its children.
func appendUsed(list []usedWords, c *cells) []usedWords {
	if c.dict != nil {
		list = append(list, usedWords{c, batch.MakeBitmap(len(c.dict.words.Words))})
	}
	for _, child := range c.children {
		list = appendUsed(list, child)
	}
	return list
}

// add marks the words of the current page.
func (u *usedWords) add() error {
	p := &u.cells.page
	if err := p.findCodes(); err != nil {
		return err
	}
	for _, code := range p.codes {
		u.words.Set(int(code))
	}
	return nil
}

func (u *usedWords) check() error {
	for i := range u.cells.dict.words.Words {
		if !u.words.Get(i) {
			return fault.Corruptf("dictionary: value %d is in no page", i)
		}
	}
	return nil
}

// rows decodes the rows of a page and checks their order. limit is the memory of one of them, as
// memory.elements counts.
func (v *verifier) rows(p, rows, limit int) error {
	for i := range v.columns {
		v.columns[i].page = seenBounds{tolerance: v.columns[i].cells.page.tolerance()}
	}
	keys := make([]any, 0, len(v.keys))
	for row := range rows {
		budget := limit
		keys = keys[:0]
		for i := range v.columns {
			c := &v.columns[i]
			value, err := c.cells.value(row, &budget)
			if err != nil {
				return inside(err, "column %q: page %d: row %d", c.cells.column.Name, p, row)
			}
			if len(keys) < len(v.keys) && v.keys[len(keys)] == i {
				keys = append(keys, value)
			}
			if len(c.cells.children) == 0 {
				c.page.add(c.cells.column, value)
			}
		}
		if err := v.checkOrder(keys); err != nil {
			return inside(err, "page %d: row %d", p, row)
		}
	}
	return nil
}

// checkOrder compares a row with the one before it.
func (v *verifier) checkOrder(keys []any) error {
	good := 0
	for i := range v.orders {
		o := &v.orders[i]
		if o.err != nil {
			continue
		}
		o.last, o.key = o.key, o.last[:0]
		for k, value := range keys {
			c := &v.file.columns[v.keys[k]]
			if value == nil && o.nullText && c.Type == String {
				value = nullText
			}
			var err error
			if o.key, err = appendKey(o.key, c, value); err != nil {
				return fault.Corruptf("a sort column of %s", c.TypeName())
			}
		}
		if bytes.Compare(o.key, o.last) < 0 {
			o.err = fault.Corruptf("less than the row before it, and the rows are said to be sorted")
		} else {
			good++
		}
	}
	if v.orders != nil && good == 0 {
		return v.orders[0].err
	}
	return nil
}

// checkPage compares the bounds of the page and the blocklet with the values of the page.
func (c *verifiedColumn) checkPage(p, rows int) error {
	lo, hi, present := c.cells.chunk.pages[p].bounds.of(0)
	first, last, err := c.cells.column.usableBounds(lo, hi, present)
	if err == nil {
		err = c.within(rows, first, last)
	}
	if err == nil {
		err = c.page.equal(first, last)
	}
	if err == nil {
		err = c.cells.page.checkSearchable()
	}
	if err != nil {
		return err
	}
	c.all.merge(&c.page)
	return inside(c.within(rows, c.lo, c.hi), "bounds of the blocklet")
}

// within checks that the values of the page are in [lo, hi].
func (c *verifiedColumn) within(rows int, lo, hi any) error {
	if lo == nil || c.page.within(lo, hi) {
		return nil
	}
	for row := range rows {
		budget := math.MaxInt // it has been decoded before
		value, err := c.cells.value(row, &budget)
		if err != nil {
			return inside(err, "row %d", row)
		}
		one := seenBounds{tolerance: c.page.tolerance}
		if one.add(c.cells.column, value); !one.within(lo, hi) {
			return fault.Corruptf("row %d: %s is not in the bounds, %s to %s", row,
				valueText(value), valueText(lo), valueText(hi))
		}
	}
	return nil
}
