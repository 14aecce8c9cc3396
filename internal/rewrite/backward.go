package rewrite

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Past is one copy of a row that is reverted change by change, from its newest state back in time.
type Past struct {
	schema *schema.Schema
	cells  [][]byte
	live   bool
	undo   []change.Delta // newest first: those not reverted yet
}

// NewPast begins at the newest state, which results from cells and redos, oldest first. undo is
// newest first. NewPast takes ownership of cells. Errors: ErrCorrupt if the changes contradict each
// other.
func NewPast(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) (*Past, error) {
	f := newFolder(s)
	v := version{cells: cells, undo: undo}
	if err := f.fold(&v, redo); err != nil {
		return nil, err
	}
	p := &Past{schema: s, cells: v.cells, live: v.deleted == nil, undo: v.undo}
	if v.deleted != nil {
		// Before its delete the row had exactly the cells that it ended with; a REINSERT without
		// columns restores them.
		p.undo = append([]change.Delta{{TS: v.deleted.TS, List: reinsertList}}, v.undo...)
	}
	return p, nil
}

var reinsertList = change.List(change.AppendUpdateHeader(nil, change.Reinsert))

// Cells returns the row's cells, all columns in schema order, nil if the row does not exist. They
// are valid until the next call of Back.
func (p *Past) Cells() [][]byte {
	if !p.live {
		return nil
	}
	return p.cells
}

// Newest returns the timestamp of the newest change that is not reverted; ok is false if all
// changes are.
func (p *Past) Newest() (ts mvcc.Timestamp, ok bool) {
	if len(p.undo) == 0 {
		return 0, false
	}
	return p.undo[0].TS, true
}

// Back reverts all changes that snap does not see.
func (p *Past) Back(snap mvcc.Snapshot) error {
	for len(p.undo) > 0 && !snap.Sees(p.undo[0].TS) {
		d := p.undo[0]
		p.undo = p.undo[1:]
		switch kind := d.List.Kind(); {
		case kind == change.Delete && p.live:
			p.live = false
			continue
		case kind == change.Reinsert && !p.live:
			p.live = true
		case kind != change.Update || !p.live:
			return fault.Corruptf("the changes of a row contradict each other: %v reverted at timestamp %d",
				kind, uint64(d.TS))
		}
		columns := d.List.Columns()
		for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
			if i := p.schema.IndexID(id); i >= 0 {
				p.cells[i] = cell
			}
		}
	}
	return nil
}
