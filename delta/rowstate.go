package delta

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// RowState is the effect of changes on one row: whether the row exists, and the cells that they
// set. The zero value is ready to use; Reset prepares it for another row.
type RowState struct {
	Deleted bool

	existenceKnown bool // a change has determined whether the row exists
	columns        []schema.ColumnID
	cells          [][]byte // as long as columns

	format *change.RowFormat // if it is not nil, image sets the other non-key cells
	image  []byte

	applied int // changes that were applied
	redos   int // of these, those that RowAt has applied as redos
}

// Applied returns the number of redos and undos that RowAt has applied, without those older changes
// that can have no effect.
func (r *RowState) Applied() (redos, undos int) { return r.redos, r.applied - r.redos }

// Reset removes all changes and keeps the memory.
func (r *RowState) Reset() {
	clear(r.cells) // so that they do not keep cblocks in memory
	*r = RowState{columns: r.columns[:0], cells: r.cells[:0]}
}

// Cell returns the value that the changes set in a column, nil for NULL. If none of them sets it,
// ok is false and the base cell applies. The cell is read-only.
func (r *RowState) Cell(id schema.ColumnID) (cell []byte, ok bool) {
	for i, c := range r.columns {
		if c == id {
			return r.cells[i], true
		}
	}
	if r.format != nil {
		s := r.format.Schema()
		if i := s.IndexID(id); i >= s.Keys {
			return r.format.Cell(r.image, i), true
		}
	}
	return nil, false
}

// Changed reports whether the changes have any effect.
func (r *RowState) Changed() bool { return r.Deleted || len(r.columns) > 0 || r.format != nil }

// applyBack applies a change that is older than all changes applied so far, so it sets only what
// those have not set. The newest change determines whether the row exists, since a row that does
// not exist is neither updated nor deleted. Source: tablet spec §8.3.
func (r *RowState) applyBack(list change.List) {
	r.applied++
	kind := list.Kind()
	if !r.existenceKnown {
		r.existenceKnown, r.Deleted = true, kind == change.Delete
	}
	if r.format != nil {
		return
	}
	known := len(r.columns)
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		r.set(id, cell, known)
	}
}

// replaceBack is applyBack for a replacement by an image: no older change has an effect.
func (r *RowState) replaceBack(format *change.RowFormat, image []byte) {
	r.applied++
	r.existenceKnown, r.format, r.image = true, format, image
}

// set sets the cell of a column unless the column is one of the first known columns. If a list sets
// a column twice, the last value applies.
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

// complete reports whether no older change in a file with statistics s can have an effect on r.
func (r *RowState) complete(s *Stats) bool {
	if r.format != nil {
		return true
	}
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
