package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// Changed is a rowset at one moment, for the rows that were changed in a range of time. Iterators
// over it agree on which rows these are, whatever is rewritten meanwhile: a compaction may drop a
// change that changed nothing.
type Changed struct {
	d           *DiskRowSet
	state       *State
	after, upTo mvcc.Timestamp
}

// Changed takes the rows with changes at timestamps in (after, upTo]. ok is false when the delta
// stores' statistics rule out that there is one.
func (d *DiskRowSet) Changed(after, upTo mvcc.Timestamp) (c Changed, ok bool) {
	c = Changed{d, d.State(), after, upTo}
	return c, !c.state.Deltas.NewSpan(after, upTo).Empty()
}

// NewIterator is DiskRowSet.NewIterator over the changed rows. Windows without one are not read.
func (c Changed) NewIterator(req *scan.Request) (*Iterator, error) {
	it, err := c.d.newIterator(req, c.state.Deltas)
	if err == nil {
		it.span = c.state.Deltas.NewSpan(c.after, c.upTo)
	}
	return it, err
}

// selectChanged clears the bits of rows [from, from+n) without a change in the span.
func (it *Iterator) selectChanged(from batch.Ordinal, n int, sel batch.Bitmap) error {
	it.changed = it.changed.Resize(n)
	if err := it.span.Mark(from, n, it.changed); err != nil {
		return err
	}
	sel.And(it.changed)
	return nil
}

// RowHistory is the base cells of a row, all columns in schema order, with all its undos, newest
// first, and its redos with timestamps below snap, oldest first. Cells and lists hold as long as
// they are referenced. Errors: ErrCorrupt.
func (d *DiskRowSet) RowHistory(row batch.Ordinal, snap mvcc.Timestamp) (cells [][]byte, undo, redo []change.Delta, err error) {
	if undo, redo, err = d.Tracker().Collect(row, 1, snap); err != nil {
		return nil, nil, nil, err
	}
	cells = make([][]byte, len(d.Schema.Columns))
	for i := range cells {
		if cells[i], err = d.cell(row, i); err != nil {
			return nil, nil, nil, err
		}
	}
	return cells, undo, redo, nil
}
