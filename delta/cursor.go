package delta

import (
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// cursor reads the deltas of one File by windows of row IDs. While the windows rise it goes through
// the file once, cblock by cblock, and the index is asked only to leap over a gap.
type cursor struct {
	file   *File
	schema *schema.Schema // see Tracker.Schema

	begun bool        // not before the first window, nor after an error
	block *deltaBlock // the current one; nil at the beginning and after the last
	at    int         // number of block
	next  int         // number of the cblock that load goes to
	pos   int         // the first delta of block that no window took
	low   uint64      // rows below were asked for already
	key   []byte
}

// scan hands the deltas of rows [from, to) to yield in the order of the file: deltas [i, j) of one
// cblock after the other. Errors: ErrCorrupt.
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
		if c.pos = j; j < len(b.rows) {
			break // the next one belongs to a later window
		}
		more, err = c.load()
	}
	c.low, c.begun = to, err == nil // so that the next window returns the error too, and does not continue after it
	return err
}

// move makes the deltas from row on those that come next. Reading on is enough if the window
// follows the last one, or is after it and begins in the current cblock or after the file's
// end.
func (c *cursor) move(row uint64) error {
	ahead := c.block == nil || uint64(c.block.lastRow()) >= row
	if c.begun && (row == c.low || row > c.low && ahead) {
		return nil
	}
	// The deltas of row begin, if they begin at all, in the last cblock whose first delta is of a
	// smaller row, or in the next one. The keys of one row need not rise, so this is all that is
	// known.
	c.key = appendKey(c.key[:0], uint32(row), mvcc.Min)
	i, err := c.file.cells.FindData(c.key)
	if err != nil {
		return c.file.wrap(err)
	}
	c.next = max(i, 0)
	_, err = c.load()
	return err
}

// load goes to the next cblock; more is false at the end of the file. Errors: ErrCorrupt.
func (c *cursor) load() (more bool, err error) {
	c.pos = 0
	n, err := c.file.cells.DataBlocks()
	if err != nil {
		return false, c.file.wrap(err)
	}
	before, at := c.block, c.at
	if before != nil && c.next == at {
		c.next++
		return true, nil // a leap that ended in the same cblock
	}
	if c.next >= n {
		c.block = nil
		return false, nil
	}
	if c.block, err = c.file.block(c.next, c.schema); err != nil {
		c.block = nil
		return false, err
	}
	c.at, c.next = c.next, c.next+1
	if first := c.block.rows[0]; before != nil && c.at == at+1 && first < before.lastRow() {
		c.block = nil
		return false, c.file.damaged(fault.Corruptf("row %d after row %d", first, before.lastRow()))
	}
	return true, nil
}
