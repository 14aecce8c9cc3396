package rowunion

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// History iterates over the versions of one key's row, newest first. A version is a timestamp at
// which the chosen cells, or the existence of the row, differ from just before. So the result does
// not depend on where flushes and compactions have moved the versions. The expiry of a row is one of
// these timestamps.
//
// Each rowset that contains the key, and each MemRowSet, has a copy of the row with its own
// history; at most one is live at any time. All copies move back in time together:
//
//	MemRowSet            ghost ◀─ delete 9 ◀─ live ◀─ insert 8 ◀─ nothing
//	rowset       ghost ◀──────────────────────────────────────── delete 5 ◀─ live ◀─ update 3 ◀─ live
//	the row      nothing, 9: deleted, row, 8: inserted, nothing, 5: deleted, row, 3: updated, row …
//
// It keeps only the changes of that one key in memory. Not safe for concurrent use.
type History struct {
	o      HistoryOptions
	schema *schema.Schema
	copies []Past
	at     mvcc.Timestamp // the copies have been moved back to here, or to a state that was the same
	// alive has all cells of the row there, even if it is expired. It is nil if the row does not
	// exist there.
	alive [][]byte

	// version has the cells of cols in the state that the copies have reached, or is nil if the row
	// does not exist in that state.
	version [][]byte
	base    bool // the version at the beginning of history was returned
}

// RowVersion is the content of a row from one timestamp until its next version.
type RowVersion struct {
	TS     mvcc.Timestamp // 0 if it is older than the history
	Cells  [][]byte       // of the chosen columns; nil if the row was deleted
	Before bool           // there was a row just before TS
}

// Past is one copy of a row that is reverted change by change, from its newest state back in time:
// rewrite.Past.
type Past interface {
	// Cells returns the row's cells, all columns in schema order, nil if the row does not exist. They
	// are valid until the next call of Back.
	Cells() [][]byte
	// Newest returns the timestamp of the newest change that is not reverted; ok is false if all
	// changes are.
	Newest() (ts mvcc.Timestamp, ok bool)
	// Back reverts all changes that snap does not see.
	Back(snap mvcc.Snapshot) error
}

// HistoryOptions select the versions of a row.
type HistoryOptions struct {
	Key      []byte         // encoded
	Snapshot mvcc.Snapshot  // newer versions are left out
	Since    mvcc.Timestamp // of the versions up to here, only the newest is returned
	Cols     []int          // indexes in the schema of the cells to return
	Expiry   expiry.Rules

	// NewPast is rewrite.NewPast.
	NewPast func(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) (Past, error)
}

// History returns the versions of the row with a key that o.Snapshot sees, or an earlier one down to
// o.Since. The newest version that is not newer than o.Since is returned as the state at the
// beginning of the history. Cells are never overwritten. Errors: ErrCorrupt.
func (u Union) History(o HistoryOptions) (*History, error) {
	h := &History{o: o, schema: u.Format.Schema(), at: o.Snapshot.Newest()}
	if err := h.collect(u); err != nil {
		return nil, err
	}
	for _, p := range h.copies {
		if err := p.Back(o.Snapshot); err != nil {
			return nil, err
		}
	}
	var err error
	h.version, err = h.state()
	return h, err
}

// Copies returns the number of copies of the row. It is 0 if there has never been a row with the
// key, as far as the sets still show it.
func (h *History) Copies() int { return len(h.copies) }

// collect finds the copies of the row. Redos that the snapshot does not see are left out: a batch
// that is applied concurrently may have reached one copy and not another.
func (h *History) collect(u Union) error {
	o := &h.o
	add := func(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) error {
		p, err := o.NewPast(s, cells, undo, redo)
		if err == nil {
			h.copies = append(h.copies, p)
		}
		return err
	}
	for _, m := range u.Mems {
		image, undo, redo := m.History(o.Key, o.Snapshot)
		if image == nil {
			continue
		}
		if err := add(h.schema, u.Format.AppendCells(nil, image), undo, redo); err != nil {
			return err
		}
	}
	probe := bloom.MakeProbe(o.Key)
	for _, d := range u.Tree.Candidates(nil, o.Key) {
		row, found, err := d.Find(probe)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		cells, undo, redo, err := d.RowHistory(row, o.Snapshot)
		if err == nil {
			err = add(d.Schema, cells, undo, redo)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// state returns the chosen cells of the copy that is live at the current time; nil if none is, or the
// row is expired.
func (h *History) state() (cells [][]byte, err error) {
	h.alive = nil
	for _, p := range h.copies {
		all := p.Cells()
		switch {
		case all == nil:
			continue
		case h.alive != nil:
			return nil, fault.Corruptf("one key is live in two rowsets")
		}
		h.alive = all
	}
	if h.alive == nil {
		return nil, nil
	}
	if test, ok := h.o.Expiry.At(h.at); ok && test.Expired(h.cell(test.Column)) {
		return nil, nil
	}
	cells = make([][]byte, len(h.o.Cols))
	for i, c := range h.o.Cols {
		cells[i] = h.alive[c]
	}
	return cells, nil
}

// cell returns a cell of h.alive.
func (h *History) cell(id schema.ColumnID) []byte { return h.alive[h.schema.IndexID(id)] }

// Next returns the next older version; ok is false after the last one.
func (h *History) Next() (v RowVersion, ok bool, err error) {
	for {
		changed := h.newest()
		ts := changed
		if h.alive != nil {
			ts = h.o.Expiry.LastChange(h.cell, changed, h.at)
		}
		if ts <= h.o.Since {
			break
		}
		if ts == changed {
			for _, p := range h.copies {
				if err := p.Back(mvcc.Before(ts)); err != nil {
					return v, false, err
				}
			}
		}
		h.at = mvcc.Before(ts).Newest()
		now := h.version
		if h.version, err = h.state(); err != nil {
			return v, false, err
		}
		if !SameCells(now, h.version) {
			return RowVersion{TS: ts, Cells: now, Before: h.version != nil}, true, nil
		}
	}
	if h.base || h.version == nil {
		return v, false, nil
	}
	h.base = true
	return RowVersion{Cells: h.version}, true, nil
}

// newest returns the timestamp of the newest change that is not yet undone, or Min if all changes
// are.
func (h *History) newest() mvcc.Timestamp {
	newest := mvcc.Min
	for _, p := range h.copies {
		if ts, ok := p.Newest(); ok {
			newest = max(newest, ts)
		}
	}
	return newest
}

// SameCells reports whether two states of a row have the same content; nil is no row.
func SameCells(a, b [][]byte) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y []byte) bool {
		return (x == nil) == (y == nil) && bytes.Equal(x, y)
	})
}
