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
	filter filter         // the deltas that the reader needs; it may get others too
	lender *blockLender   // of the memory for cblocks that are not in the cache; nil puts them there

	begun     bool        // false before the first window and after an error
	current   bool        // there is a current cblock: false at the beginning and after the last
	block     *deltaBlock // the current one; nil if the filter has none of its deltas
	low, high uint32      // its first and its last row
	at        int         // its number
	next      int         // number of the cblock that load reads next
	pos       int         // the first entry of block that no window has returned
	done      uint64      // all rows below were in earlier windows
	key       []byte
}

// scan calls yield for the deltas of rows [from, to) in file order: entries [i, j) of one cblock
// after another. Errors: ErrCorrupt.
func (c *cursor) scan(from, to uint64, yield func(b *deltaBlock, i, j int)) error {
	if from >= to || from > maxRow {
		return nil
	}
	err := c.move(from)
	for more := c.current; more && err == nil; {
		if b := c.block; b != nil {
			i := b.atOrAfter(c.pos, from)
			j := b.atOrAfter(i, to)
			if i < j {
				yield(b, i, j)
			}
			c.pos = j
		}
		if uint64(c.high) >= to {
			break // the next delta belongs to a later window
		}
		more, err = c.load()
	}
	c.done, c.begun = to, err == nil // so that the next window returns the error too, and does not continue after it
	return err
}

// move positions the cursor at the first delta of row or of a later row. It reads on without the
// index if the window follows the previous one, or begins in the current cblock or after the end of
// the file.
func (c *cursor) move(row uint64) error {
	ahead := !c.current || uint64(c.high) >= row
	if c.begun && (row == c.done || row > c.done && ahead) {
		return nil
	}
	// The deltas of row, if it has deltas, begin in the last cblock whose first delta has a smaller
	// row, or in the next one. Keys within one row need not ascend, so the index cannot say more.
	c.key = AppendKey(c.key[:0], uint32(row), mvcc.Min)
	i, err := c.file.cells.FindData(c.key)
	if err != nil {
		return c.file.wrap(err)
	}
	c.next = max(i, 0)
	_, err = c.load()
	return err
}

// load moves to the next cblock; more is false at the end of the file. Errors: ErrCorrupt.
func (c *cursor) load() (more bool, err error) {
	c.pos = 0
	n, err := c.file.cells.DataBlocks()
	if err != nil {
		return false, c.file.wrap(err)
	}
	if c.current && c.next == c.at {
		c.next++
		return true, nil // the index led to the current cblock
	}
	follows, before := c.current && c.next == c.at+1, c.high
	c.current = false
	if c.next >= n {
		c.block = nil
		return false, nil
	}
	if err := c.read(n); err != nil {
		c.block = nil
		return false, err
	}
	if follows && c.low < before {
		c.block = nil
		return false, c.file.damaged(fault.Corruptf("row %d after row %d", c.low, before))
	}
	c.current = true
	c.at, c.next = c.next, c.next+1
	return true, nil
}

// read reads the next one of n cblocks, unless it is known that the filter has none of its deltas.
func (c *cursor) read(n int) (err error) {
	var skip bool
	bounds := &c.file.boundsOf(n)[c.next]
	if c.low, c.high, skip = bounds.excluded(c.filter); skip {
		c.block = nil
		return nil
	}
	if c.block, err = c.file.block(c.next, c.schema, c.lender); err != nil {
		return err
	}
	c.low, c.high = c.block.low, c.block.high
	bounds.note(c.block)
	if err := c.filter.check(c.block); err != nil {
		return c.file.damaged(err)
	}
	return nil
}
