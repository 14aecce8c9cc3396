package delta

import (
	"fmt"
	"sort"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// cursor reads the deltas of one File by windows of row IDs. While the windows rise it goes through the
// file once: each cblock is decoded and checked once, and the index is asked only to leap over a gap.
type cursor struct {
	file   *File
	schema *schema.Schema // see Tracker.Schema

	blocks *cfile.BlockIterator // nil before the first window and after an error
	deltas []change.Delta       // of the current cblock, checked; none behind the last
	first  batch.Ordinal        // of the first of deltas
	pos    int                  // the first of deltas that no window took
	low    uint64               // rows below were asked for already
	key    []byte
}

// scan hands the deltas of rows [from, to) to yield in the order of the file, run by run. The runs hold
// until the next call; the lists in them as long as they are referenced. Errors: ErrCorrupt.
func (c *cursor) scan(from, to uint64, yield func(run []change.Delta)) error {
	if from >= to || from > maxRow {
		return nil
	}
	err := c.move(from)
	for more := true; more && err == nil; {
		rest := c.deltas[c.pos:]
		i := firstAtOrAfter(rest, from)
		j := i + firstAtOrAfter(rest[i:], to)
		if i < j {
			yield(rest[i:j])
		}
		c.pos += j
		if c.pos < len(c.deltas) {
			break // the next one belongs to a later window
		}
		more, err = c.load()
	}
	c.low = to
	if err != nil {
		c.blocks = nil // so that the next window meets the error too, and does not go on behind it
	}
	return err
}

// move makes the deltas from row on those that come next. Reading on is enough if the window follows the
// last one, or lies behind it and begins in the current cblock or behind the file's end.
func (c *cursor) move(row uint64) error {
	ended := len(c.deltas) == 0
	inBlock := !ended && uint64(c.deltas[len(c.deltas)-1].Row) >= row
	if c.blocks != nil && (row == c.low || row > c.low && (inBlock || ended)) {
		return nil
	}
	if c.blocks == nil {
		c.blocks, c.deltas = c.file.cells.Blocks(), c.deltas[:0]
	}
	// The deltas of row begin, if they begin at all, in the last cblock whose first delta is of a smaller
	// row, or in the one behind it. The keys of one row need not rise, so no more can be told.
	c.key = appendKey(c.key[:0], uint32(row), mvcc.Min)
	c.blocks.SeekAtOrBefore(c.key)
	_, err := c.load()
	return err
}

// load decodes and checks the next cblock; more is false at the end of the file.
func (c *cursor) load() (more bool, err error) {
	c.pos = 0
	if !c.blocks.Next() {
		c.deltas = c.deltas[:0]
		if err := c.blocks.Err(); err != nil {
			return false, fmt.Errorf("delta: %w", err)
		}
		return false, nil
	}
	if len(c.deltas) > 0 && c.first == c.blocks.First() {
		return true, nil // a leap that ended in the same cblock
	}
	last := uint32(0) // the row that the file must not fall below
	if n := len(c.deltas); n > 0 && c.blocks.First() == c.first+batch.Ordinal(n) {
		last = c.deltas[n-1].Row
	}
	c.first, c.deltas = c.blocks.First(), c.deltas[:0]
	for _, cell := range c.blocks.Cells() {
		d, err := parseDelta(cell)
		if err == nil {
			err = d.List.Check(c.schema)
		}
		if err == nil && d.Row < last {
			err = fault.Corruptf("row %d behind row %d", d.Row, last)
		}
		if err != nil {
			return false, c.file.damaged(err)
		}
		last = d.Row
		c.deltas = append(c.deltas, d)
	}
	return true, nil
}

// firstAtOrAfter is the index of the first delta of row or a later one; rows in deltas do not fall.
func firstAtOrAfter(deltas []change.Delta, row uint64) int {
	if len(deltas) == 0 || uint64(deltas[0].Row) >= row {
		return 0
	}
	if last := len(deltas) - 1; uint64(deltas[last].Row) < row {
		return last + 1
	}
	return sort.Search(len(deltas), func(i int) bool { return uint64(deltas[i].Row) >= row })
}
