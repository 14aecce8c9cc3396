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
)

// RowHistory is the versions of one key's row, newest first. It goes by content: a timestamp counts
// if the chosen cells, or whether there is a row, differ from just before it. So the answer does
// not depend on where flushes and compactions have put the versions.
//
// Each rowset that holds the key, and each MemRowSet, has a copy of the row with a past of its own;
// at most one is live at any time. All go back together:
//
//	MemRowSet            ghost ◀─ delete 9 ◀─ live ◀─ insert 8 ◀─ nothing
//	rowset       ghost ◀──────────────────────────────────────── delete 5 ◀─ live ◀─ update 3 ◀─ live
//	the row      nothing, 9: deleted, row, 8: inserted, nothing, 5: deleted, row, 3: updated, row …
//
// It holds the changes of that one key in memory, and nothing of the table. Not for concurrent use.
type RowHistory struct {
	copies []*compaction.Past
	cols   []int
	since  mvcc.Timestamp
	table  string

	version [][]byte // cols of the state at which the copies stand; nil: no row
	base    bool     // the base line was given
}

// RowVersion is what a row became at a timestamp.
type RowVersion struct {
	TS     mvcc.Timestamp // 0: it was so when the history begins
	Cells  [][]byte       // of the chosen columns; nil: it was deleted
	Before bool           // there was a row just before TS
}

// History collects the versions of the row with an encoded key that reads of v and of any earlier
// time, down to since, can see. Of older ones the last is known, as what was there when the history
// begins. Cells hold as long as they are referenced. Errors: ErrCorrupt.
func (v View) History(key []byte, since mvcc.Timestamp, cols []int) (*RowHistory, error) {
	h := &RowHistory{cols: cols, since: max(since, v.state.floor), table: v.table}
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
// being applied while the copies are collected may have reached one and not another.
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

// state is the chosen cells of the copy that is live where the copies stand; nil if none is.
func (h *RowHistory) state() (cells [][]byte, err error) {
	for _, p := range h.copies {
		all := p.Cells()
		switch {
		case all == nil:
			continue
		case cells != nil:
			return nil, h.wrap(fault.Corruptf("one key is live in two places"))
		}
		cells = make([][]byte, len(h.cols))
		for i, c := range h.cols {
			cells[i] = all[c]
		}
	}
	return cells, nil
}

// Next is the next older version; ok is false behind the last.
func (h *RowHistory) Next() (v RowVersion, ok bool, err error) {
	for {
		ts := h.newest()
		if ts <= h.since {
			break
		}
		for _, p := range h.copies {
			if err := p.Back(mvcc.Before(ts)); err != nil {
				return v, false, h.wrap(err)
			}
		}
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

// newest is the timestamp of the newest change not gone back yet; Min if there is none.
func (h *RowHistory) newest() mvcc.Timestamp {
	newest := mvcc.Min
	for _, p := range h.copies {
		if ts, ok := p.Newest(); ok {
			newest = max(newest, ts)
		}
	}
	return newest
}

// sameCells tells whether two states of a row have the same content; nil is no row.
func sameCells(a, b [][]byte) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y []byte) bool {
		return (x == nil) == (y == nil) && bytes.Equal(x, y)
	})
}
