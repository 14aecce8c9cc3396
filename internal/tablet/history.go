package tablet

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// RowHistory iterates over the versions of one key's row, newest first. A version is a timestamp at
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
type RowHistory struct {
	copies []*compaction.Past
	cols   []int
	since  mvcc.Timestamp
	table  string
	schema *TableSchema
	at     mvcc.Timestamp // the copies have been moved back to here, or to a state that was the same
	alive  [][]byte       // all cells of the row there, even if it is expired; nil: no row

	version [][]byte // cells of cols in the state that the copies have reached; nil: no row
	base    bool     // the version at the beginning of history was returned
}

// RowVersion is the content of a row from one timestamp until its next version.
type RowVersion struct {
	TS     mvcc.Timestamp // 0: it is older than the history
	Cells  [][]byte       // of the chosen columns; nil: it was deleted
	Before bool           // there was a row just before TS
}

// History returns the versions of the row with an encoded key that are visible to v, or at any
// earlier time down to since. Of the older versions, only the newest is returned, as the state at
// the beginning of the history. Cells are never overwritten. Errors: ErrCorrupt.
func (v View) History(key []byte, since mvcc.Timestamp, cols []int) (*RowHistory, error) {
	h := &RowHistory{cols: cols, since: max(since, v.state.floor), table: v.table, schema: v.TableSchema, at: v.snap.Newest()}
	if err := h.collect(v, key); err != nil {
		return nil, h.wrap(err)
	}
	for _, p := range h.copies {
		if err := p.Back(v.snap); err != nil {
			return nil, h.wrap(err)
		}
	}
	var err error
	h.version, err = h.state()
	return h, err
}

// collect finds the copies of the row. Redos that v does not see are left out: a batch that is
// applied concurrently may have reached one copy and not another.
func (h *RowHistory) collect(v View, key []byte) error {
	st := v.state
	for _, m := range st.mems {
		image, undo, redo := m.History(key, v.snap)
		if image == nil {
			continue
		}
		p, err := compaction.NewPast(v.Schema, v.RowFormat.AppendCells(nil, image), undo, redo)
		if err != nil {
			return err
		}
		h.copies = append(h.copies, p)
	}
	probe := bloom.MakeProbe(key)
	for _, d := range st.tree.Candidates(nil, key) {
		p, err := pastOf(d, probe, v.snap)
		if err != nil {
			return err
		}
		if p != nil {
			h.copies = append(h.copies, p)
		}
	}
	return nil
}

func pastOf(d *rowset.DiskRowSet, probe bloom.Probe, snap mvcc.Snapshot) (*compaction.Past, error) {
	row, found, err := d.Find(probe)
	if err != nil || !found {
		return nil, err
	}
	cells, undo, redo, err := d.RowHistory(row, snap)
	if err != nil {
		return nil, err
	}
	return compaction.NewPast(d.Schema, cells, undo, redo)
}

func (h *RowHistory) wrap(err error) error { return fmt.Errorf("table %q: %w", h.table, err) }

// state returns the chosen cells of the copy that is live at the current time; nil if none is, or the
// row is expired.
func (h *RowHistory) state() (cells [][]byte, err error) {
	h.alive = nil
	for _, p := range h.copies {
		all := p.Cells()
		switch {
		case all == nil:
			continue
		case h.alive != nil:
			return nil, h.wrap(fault.Corruptf("one key is live in two rowsets"))
		}
		h.alive = all
	}
	if h.alive == nil {
		return nil, nil
	}
	if test, ok := h.schema.Expiry.At(h.at); ok && test.Expired(h.cell(test.Column)) {
		return nil, nil
	}
	cells = make([][]byte, len(h.cols))
	for i, c := range h.cols {
		cells[i] = h.alive[c]
	}
	return cells, nil
}

// cell returns a cell of h.alive.
func (h *RowHistory) cell(id schema.ColumnID) []byte { return h.alive[h.schema.Schema.IndexID(id)] }

// Next returns the next older version; ok is false after the last one.
func (h *RowHistory) Next() (v RowVersion, ok bool, err error) {
	for {
		changed := h.newest()
		ts := changed
		if h.alive != nil {
			ts = h.schema.Expiry.LastChange(h.cell, changed, h.at)
		}
		if ts <= h.since {
			break
		}
		if ts == changed {
			for _, p := range h.copies {
				if err := p.Back(mvcc.Before(ts)); err != nil {
					return v, false, h.wrap(err)
				}
			}
		}
		h.at = mvcc.Before(ts).Newest()
		now := h.version
		if h.version, err = h.state(); err != nil {
			return v, false, err
		}
		if !sameCells(now, h.version) {
			return RowVersion{TS: ts, Cells: now, Before: h.version != nil}, true, nil
		}
	}
	if h.base || h.version == nil {
		return v, false, nil
	}
	h.base = true
	return RowVersion{Cells: h.version}, true, nil
}

// newest returns the timestamp of the newest change that is not yet undone; Min if there is none.
func (h *RowHistory) newest() mvcc.Timestamp {
	newest := mvcc.Min
	for _, p := range h.copies {
		if ts, ok := p.Newest(); ok {
			newest = max(newest, ts)
		}
	}
	return newest
}

// sameCells reports whether two states of a row have the same content; nil is no row.
func sameCells(a, b [][]byte) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y []byte) bool {
		return (x == nil) == (y == nil) && bytes.Equal(x, y)
	})
}
