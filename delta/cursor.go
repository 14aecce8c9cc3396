package delta

import (
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// cursor reads the deltas of one File by windows of row IDs. While the windows ascend it reads the
// file once, cblock by cblock, and uses the index only to skip a gap.
type cursor struct {
	file   *File
	schema *schema.Schema // see Tracker.Schema
	order  order          // of a row's changes, checked

	begun bool        // false before the first window and after an error
	block *deltaBlock // the current one; nil at the beginning and after the last
	at    int         // number of block
	next  int         // number of the cblock that load reads next
	pos   int         // the first entry of block that no window has returned
	low   uint64      // all rows below were in earlier windows
	key   []byte
}

// order is the order of timestamps that a reader of a file requires within each row.
type order int8

const (
	anyOrder order = iota
	redoOrder
	undoOrder
)

// check returns an error if the changes of a row in b are not in that order. Errors: ErrCorrupt.
func (o order) check(b *deltaBlock) error {
	switch {
	case o == redoOrder && !b.ascending:
		return fault.Corruptf("redos of a row are not in the order of their timestamps")
	case o == undoOrder && !b.descending:
		return fault.Corruptf("undos of a row are not in the reverse order of their timestamps")
	}
	return nil
}

// scan calls yield for the deltas of rows [from, to) in file order: entries [i, j) of one cblock
// after another. Errors: ErrCorrupt.
func (c *cursor) scan(from, to uint64, yield func(b *deltaBlock, i, j int)) error {
	if from >= to || from > maxRow {
		return nil
	}
	err := c.move(from)
	for more := c.block != nil; more && err == nil; {
		b := c.block
		i := b.atOrAfter(c.pos, from)
		j := b.atOrAfter(i, to)
		if i < j {
			yield(b, i, j)
		}
		if c.pos = j; j < b.entries {
			break // the next one belongs to a later window
		}
		more, err = c.load()
	}
	c.low, c.begun = to, err == nil // so that the next window returns the error too, and does not continue after it
	return err
}

// move positions the cursor at the first delta of row or of a later row. It reads on without the
// index if the window follows the previous one, or begins in the current cblock or after the end of
// the file.
func (c *cursor) move(row uint64) error {
	ahead := c.block == nil || uint64(c.block.high) >= row
	if c.begun && (row == c.low || row > c.low && ahead) {
		return nil
	}
	// The deltas of row, if there are any, begin in the last cblock whose first delta has a smaller
	// row, or in the next one. Keys within one row need not ascend, so the index cannot say more.
	c.key = appendKey(c.key[:0], uint32(row), mvcc.Min)
	i, err := c.file.cells.FindData(c.key)
	if err != nil {
		return c.file.wrap(err)
	}
	c.next = max(i, 0)
	_, err = c.load()
	return err
}

// load reads the next cblock; more is false at the end of the file. Errors: ErrCorrupt.
func (c *cursor) load() (more bool, err error) {
	c.pos = 0
	n, err := c.file.cells.DataBlocks()
	if err != nil {
		return false, c.file.wrap(err)
	}
	before, at := c.block, c.at
	if before != nil && c.next == at {
		c.next++
		return true, nil // the index led to the current cblock
	}
	if c.next >= n {
		c.block = nil
		return false, nil
	}
	if c.block, err = c.file.block(c.next, c.schema); err != nil {
		c.block = nil
		return false, err
	}
	if err := c.order.check(c.block); err != nil {
		c.block = nil
		return false, c.file.damaged(err)
	}
	c.at, c.next = c.next, c.next+1
	if first := c.block.low; before != nil && c.at == at+1 && first < before.high {
		c.block = nil
		return false, c.file.damaged(fault.Corruptf("row %d after row %d", first, before.high))
	}
	return true, nil
}
