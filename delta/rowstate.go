package delta

import (
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/schema"
)

// RowState is what changes make of one row: whether it is there, and the cells which they set. A RowState
// is meant to be used again for the next row; the zero value is ready.
type RowState struct {
	Deleted bool

	columns []schema.ColumnID
	cells   [][]byte // as long as columns
}

// Reset forgets everything and keeps the memory.
func (r *RowState) Reset() {
	clear(r.cells) // lest they hold on to cblocks
	r.Deleted, r.columns, r.cells = false, r.columns[:0], r.cells[:0]
}

// Cell is the value that the changes give to a column, nil for NULL. ok is false when none of them sets
// it: then the base cell holds. The cell is read-only.
func (r *RowState) Cell(id schema.ColumnID) (cell []byte, ok bool) {
	for i, c := range r.columns {
		if c == id {
			return r.cells[i], true
		}
	}
	return nil, false
}

// Changed tells whether the changes do anything at all.
func (r *RowState) Changed() bool { return r.Deleted || len(r.columns) > 0 }

// apply lets one more change happen. Source: tablet spec §8.3.
func (r *RowState) apply(list change.List) {
	switch list.Kind() {
	case change.Delete:
		r.Deleted = true
		return
	case change.Reinsert:
		r.Deleted = false
	}
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		r.set(id, cell)
	}
}

func (r *RowState) set(id schema.ColumnID, cell []byte) {
	for i, c := range r.columns {
		if c == id {
			r.cells[i] = cell
			return
		}
	}
	r.columns = append(r.columns, id)
	r.cells = append(r.cells, cell)
}
