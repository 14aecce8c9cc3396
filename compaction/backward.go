package compaction

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Past is one copy of a row that goes back in time, change by change: a row's history from its
// newest state.
type Past struct {
	schema *schema.Schema
	cells  [][]byte
	live   bool
	undo   []change.Delta // newest first: those not gone back yet
}

// NewPast begins at the newest state that cells, which it takes for itself, and redos, oldest
// first, lead to. undo is newest first. Errors: ErrCorrupt when the changes do not follow one
// another.
func NewPast(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) (*Past, error) {
	f := newFolder(s)
	v := version{cells: cells, undo: undo}
	if err := f.fold(&v, redo); err != nil {
		return nil, err
	}
	p := &Past{schema: s, cells: v.cells, live: v.deleted == nil, undo: v.undo}
	if v.deleted != nil {
		// Before its end the row had the very cells that it ended with: a REINSERT of no column
		// leads back there.
		p.undo = append([]change.Delta{{TS: v.deleted.TS, List: reinsertList}}, v.undo...)
	}
	return p, nil
}

var reinsertList = change.List(change.AppendUpdateHeader(nil, change.Reinsert))

// Cells are the row's cells, all columns in schema order, nil when there is no row. They hold until
// the next Back.
func (p *Past) Cells() [][]byte {
	if !p.live {
		return nil
	}
	return p.cells
}

// Newest is the timestamp of the newest change not gone back yet; ok is false when there is none.
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
			return fault.Corruptf("a row's changes do not follow one another: %v back over timestamp %d", kind, uint64(d.TS))
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
