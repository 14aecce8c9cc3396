package delta

import (
	"cmp"
	"context"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// checkWindow is the number of rows whose deltas Check has in memory.
const checkWindow = 1 << 10

// Check compares the deltas of all files, and the births, of a rowset with so many rows with one
// another, which File.Verify cannot do, and calls found with the first fault of each file; of the
// births, with block 0. It returns the number of rows that exist after all redos.
//
//   - No change is newer than newest.
//   - The changes of one column of a row, together with its deletes and reinserts, have rising
//     timestamps from the births through the undos to the redos, from file to file in their order.
//   - A row that exists is not reinserted; a row that does not is neither updated nor deleted.
//
// It omits the MemStore. Errors: ErrCorrupt if a file cannot be read; ctx.Err().
func (t *Tracker) Check(ctx context.Context, rows uint64, newest mvcc.Timestamp,
	found func(id block.ID, err error)) (live int64, err error) {
	c := checker{births: t.births, newest: newest, found: found, bad: map[block.ID]bool{},
		lender: new(blockLender), live: int64(rows)}
	for _, f := range t.Undo {
		c.undos = append(c.undos, cursor{file: f, schema: t.schema(), lender: c.lender})
	}
	for _, f := range t.Redo {
		c.redos = append(c.redos, cursor{file: f, schema: t.schema(), lender: c.lender})
	}
	for from := uint64(0); from < rows; from += checkWindow {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := c.window(from, min(from+checkWindow, rows)); err != nil {
			return 0, err
		}
	}
	return c.live, nil
}

// checker does what Check describes.
type checker struct {
	births       []Birth
	undos, redos []cursor
	lender       *blockLender
	newest       mvcc.Timestamp
	found        func(block.ID, error)
	bad          map[block.ID]bool
	live         int64

	undo, redo []placed // of a window, by row, in the order of files
	order      []placed
	last       map[schema.ColumnID]mvcc.Timestamp // of the row's changes so far, by column
}

// placed is a change and the block that contains it.
type placed struct {
	change.Delta
	in block.ID
}

// existence is the key of deletes and reinserts in checker.last.
const existence schema.ColumnID = -1

func (c *checker) window(from, to uint64) error {
	c.lender.takeBack(c.undos, c.redos)
	c.undo, c.redo = c.undo[:0], c.redo[:0]
	for i := range c.undos {
		if err := c.undos[i].place(&c.undo, from, to); err != nil {
			return err
		}
	}
	var births []change.Delta
	for _, b := range birthsOf(c.births, from, to) {
		births = b.AppendUndos(births, from, to)
	}
	for _, d := range births {
		c.undo = append(c.undo, placed{d, 0})
	}
	for i := range c.redos {
		if err := c.redos[i].place(&c.redo, from, to); err != nil {
			return err
		}
	}
	byRow := func(a, b placed) int { return cmp.Compare(a.Row, b.Row) }
	slices.SortStableFunc(c.undo, byRow)
	slices.SortStableFunc(c.redo, byRow)
	for undo, redo := c.undo, c.redo; len(undo) > 0 || len(redo) > 0; {
		row := uint32(maxRow)
		for _, left := range [][]placed{undo, redo} {
			if len(left) > 0 {
				row = min(row, left[0].Row)
			}
		}
		c.row(take(&undo, row), take(&redo, row))
	}
	return nil
}

// place appends the deltas of rows [from, to).
func (c *cursor) place(dst *[]placed, from, to uint64) error {
	return c.scan(from, to, func(b *deltaBlock, i, j int) {
		for d := range b.entriesOf(i, j) {
			*dst = append(*dst, placed{d, c.file.ID})
		}
	})
}

// row checks the changes of one row.
func (c *checker) row(undo, redo []placed) {
	c.last = map[schema.ColumnID]mvcc.Timestamp{}
	for i := len(undo) - 1; i >= 0; i-- { // from the births forward
		c.rises(undo[i])
	}
	for _, p := range redo {
		c.rises(p)
	}
	// Files may overlap in time within a row, as Collector.Collect explains.
	c.order = append(c.order[:0], undo...)
	slices.SortStableFunc(c.order, func(a, b placed) int { return cmp.Compare(b.TS, a.TS) })
	c.exists(c.order, "undo: ")
	c.order = append(c.order[:0], redo...)
	slices.SortStableFunc(c.order, func(a, b placed) int { return cmp.Compare(a.TS, b.TS) })
	if !c.exists(c.order, "") {
		c.live--
	}
}

// take removes the changes of a row from the beginning of list and returns them.
func take(list *[]placed, row uint32) []placed {
	n := 0
	for n < len(*list) && (*list)[n].Row == row {
		n++
	}
	taken := (*list)[:n:n]
	*list = (*list)[n:]
	return taken
}

// rises checks that a change is not older than the changes of the same columns before it.
func (c *checker) rises(p placed) {
	if p.TS > c.newest {
		c.report(p.in, fault.Corruptf("row %d: change at %d, the newest of the rowset is at %d", p.Row,
			uint64(p.TS), uint64(c.newest)))
	}
	if p.List.Kind() != change.Update {
		c.risesIn(p, existence)
	} else if begun, ok := c.last[existence]; ok && p.TS < begun {
		c.older(p, begun)
	}
	if p.List.Kind() == change.Delete { // which sets no columns
		return
	}
	columns := p.List.Columns()
	for id, _, ok := columns.Next(); ok; id, _, ok = columns.Next() {
		c.risesIn(p, id)
	}
}

func (c *checker) risesIn(p placed, id schema.ColumnID) {
	last, ok := c.last[id]
	if ok && p.TS < last {
		c.older(p, last)
	}
	c.last[id] = max(last, p.TS)
}

// older reports a change that follows a newer one.
func (c *checker) older(p placed, last mvcc.Timestamp) {
	c.report(p.in, fault.Corruptf("row %d: change at %d is stored as newer than one at %d", p.Row, uint64(p.TS),
		uint64(last)))
}

// exists applies changes to a row that exists and reports whether it exists then.
func (c *checker) exists(list []placed, what string) bool {
	exists := true
	for _, p := range list {
		kind := p.List.Kind()
		switch {
		case exists && kind == change.Reinsert:
			c.report(p.in, fault.Corruptf("row %d: %s%s at %d of a row that exists", p.Row, what, kind, uint64(p.TS)))
		case !exists && kind != change.Reinsert:
			c.report(p.in, fault.Corruptf("row %d: %s%s at %d of a row that does not exist", p.Row, what,
				kind, uint64(p.TS)))
		}
		exists = kind != change.Delete
	}
	return exists
}

func (c *checker) report(id block.ID, err error) {
	if !c.bad[id] {
		c.bad[id] = true
		c.found(id, err)
	}
}
