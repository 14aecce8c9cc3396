package delta

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// RowState is what changes make of one row: whether it is there, and the cells which they set. A
// RowState is meant to be used again for the next row; the zero value is ready.
type RowState struct {
	Deleted bool

	existenceKnown bool // a change has said whether the row is there
	columns        []schema.ColumnID
	cells          [][]byte // as long as columns
}

// Reset forgets everything and keeps the memory.
func (r *RowState) Reset() {
	clear(r.cells) // lest they hold on to cblocks
	r.Deleted, r.existenceKnown, r.columns, r.cells = false, false, r.columns[:0], r.cells[:0]
}

// Cell is the value that the changes give to a column, nil for NULL. ok is false when none of them
// sets it: then the base cell holds. The cell is read-only.
func (r *RowState) Cell(id schema.ColumnID) (cell []byte, ok bool) {
	for i, c := range r.columns {
		if c == id {
			return r.cells[i], true
		}
	}
	return nil, false
}

// Changed reports whether the changes have any effect.
func (r *RowState) Changed() bool { return r.Deleted || len(r.columns) > 0 }

// applyBack lets a change happen that comes before all that r was given: it decides what they left
// open. The newest of all decides whether the row is there, since a row that is not is neither
// updated nor deleted. Source: tablet spec §8.3.
func (r *RowState) applyBack(list change.List) {
	kind := list.Kind()
	if !r.existenceKnown {
		r.existenceKnown, r.Deleted = true, kind == change.Delete
	}
	known := len(r.columns)
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		r.set(id, cell, known)
	}
}

// set gives a column its cell unless it is one of the first known columns. Set twice by one list,
// the last counts.
func (r *RowState) set(id schema.ColumnID, cell []byte, known int) {
	for i, c := range r.columns {
		if c == id {
			if i >= known {
				r.cells[i] = cell
			}
			return
		}
	}
	r.columns = append(r.columns, id)
	r.cells = append(r.cells, cell)
}

// complete reports whether no change of a file with such statistics can make a difference that comes
// before all that r was given.
func (r *RowState) complete(s *Stats) bool {
	if !r.existenceKnown || len(r.columns) < len(s.Columns) {
		return false
	}
	for i := range s.Columns {
		if _, ok := r.Cell(s.Columns[i].ID); !ok {
			return false
		}
	}
	return true
}
