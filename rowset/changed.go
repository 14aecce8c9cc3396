package rowset

import (
	"cmp"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// Changed contains the rows of a rowset that changed between two snapshots. It keeps the delta
// stores that the rowset had when it was created, so all its iterators return the same rows during
// a rewrite, although a compaction may drop a change that had no effect.
type Changed struct {
	d        *DiskRowSet
	state    *State
	from, to mvcc.Snapshot
}

// Changed returns the rows with changes that to sees and from does not. ok is false if the
// statistics of the delta stores show that there is none.
func (d *DiskRowSet) Changed(from, to mvcc.Snapshot) (c Changed, ok bool) {
	c = Changed{d, d.State(), from, to}
	return c, !c.state.Deltas.NewSpan(from, to).Empty()
}

// NewIterator is DiskRowSet.NewIterator over the changed rows. It does not read windows without
// changed rows.
func (c Changed) NewIterator(req *scan.Request) (*Iterator, error) {
	it, err := c.d.newIterator(req, c.state.Deltas)
	if err == nil {
		it.span = c.state.Deltas.NewSpan(c.from, c.to)
	}
	return it, err
}

// NewIteratorOfOthers is NewIterator over the rows that have not changed. It reads all windows.
func (c Changed) NewIteratorOfOthers(req *scan.Request) (*Iterator, error) {
	it, err := c.NewIterator(req)
	if err == nil {
		it.still = true
	}
	return it, err
}

// Each calls visit with the row and the timestamp of each change, up to its first error; a row may
// come more than once. Rows that were inserted together come as births, whose rows do not come
// unless they were changed otherwise too. Errors: ErrCorrupt; the errors of visit.
func (c Changed) Each(visit func(row batch.Ordinal, ts mvcc.Timestamp) error, born func(delta.Birth) error) error {
	span := c.state.Deltas.NewSpan(c.from, c.to)
	for _, b := range span.Births() {
		if err := born(b); err != nil {
			return err
		}
	}
	var wrong error
	for from := int64(0); from < c.state.Meta.Rows; from += batch.WindowRows {
		n := min(batch.WindowRows, c.state.Meta.Rows-from)
		err := span.Each(batch.Ordinal(from), int(n), func(row batch.Ordinal, ts mvcc.Timestamp) {
			if wrong == nil {
				wrong = visit(row, ts)
			}
		})
		if err = cmp.Or(err, wrong); err != nil {
			return err
		}
	}
	return nil
}

// selectChanged clears the bits of rows [from, from+n) without a change in the span, or with one if
// it.still is set.
func (it *Iterator) selectChanged(from batch.Ordinal, n int, sel batch.Bitmap) error {
	it.changed = it.changed.Resize(n)
	if err := it.span.SetChanged(from, n, it.changed); err != nil {
		return err
	}
	if it.still {
		sel.AndNot(it.changed)
	} else {
		sel.And(it.changed)
	}
	return nil
}

// RowHistory returns the base cells of a row, all columns in schema order, with all its undos,
// newest first, and its redos with timestamps below snap, oldest first. Cells and lists are never
// overwritten. Errors: ErrCorrupt.
func (d *DiskRowSet) RowHistory(row batch.Ordinal,
	snap mvcc.Snapshot) (cells [][]byte, undo, redo []change.Delta, err error) {
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
