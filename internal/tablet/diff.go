package tablet

import (
	"bytes"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Diff iterates over the rows whose content differs between two timestamps, in key order.
//
// It joins two scans of one state by key, one as of each timestamp, of the rows changed between the
// two. A rowset whose statistics show no such change is not opened; a window without one is not
// read. Both scans read the same deltas, so they omit the same unchanged rows. If one scan sees a
// copy of a row as a ghost, then either the row does not exist in that scan, or it is live in
// another rowset where it was changed between the two timestamps as well.
//
// It keeps two batches in memory for each rowset that contains the current key. Not safe for
// concurrent use.
type Diff struct {
	table         string
	state         *tabletState
	before, after *side
	key           []byte
	old, new      [][]byte
	err           error

	gone   *expiredRows // nil: no row expires between the two
	joined difference   // the current row of the join, if waits is set
	waits  bool
	ended  bool // the join
}

// difference is a row that differs.
type difference struct {
	key      []byte
	old, new [][]byte
}

// side is one of the two scans and its current row.
type side struct {
	it    scan.Iterator      // nil: there is no request
	b     *batch.RecordBatch // nil at the end
	keys  [][]byte
	row   int
	cells [][]byte
}

// Diff compares what v sees with a later snapshot. Every batch that either snapshot includes has
// been published. Only the columns and the bounds of the options are used. The Diff releases v at
// Close.
func (v View) Diff(o scan.Options, to mvcc.Snapshot) *Diff {
	st := v.state
	d := &Diff{table: v.table, state: st}
	changed := map[*rowset.DiskRowSet]rowset.Changed{}
	var sets []*rowset.DiskRowSet
	for _, set := range st.tree.Range(nil, o.Lower, o.Upper) {
		if c, ok := set.Changed(v.snap, to); ok {
			changed[set] = c
			sets = append(sets, set)
		}
	}
	open := func(set *rowset.DiskRowSet, r *scan.Request) (scan.Iterator, error) {
		return changed[set].NewIterator(r)
	}
	begin := func(snap mvcc.Snapshot) *side {
		r, err := scan.NewRequest(scan.Options{Schema: v.Schema, Columns: o.Columns, Filter: v.asOf(snap).Alive(batch.Filter{}),
			Lower: o.Lower, Upper: o.Upper, Snapshot: snap, Keys: true})
		if err != nil {
			d.err = fmt.Errorf("table %q: %w", v.table, err)
			return &side{}
		}
		var mems []*memIterator
		for _, mem := range st.mems {
			if !v.snap.Sees(mem.MaxTimestamp()) {
				it := mem.NewIterator(snap, o.Lower, o.Upper, false)
				it.ChangedIn(v.snap, to)
				mems = append(mems, st.newMemIterator(it, r))
			}
		}
		return &side{it: inOrder(r, sets, mems, open), cells: make([][]byte, len(o.Columns))}
	}
	d.before, d.after = begin(v.snap), begin(to)
	if d.err == nil {
		d.gone, d.err = v.newExpiredRows(o, to)
	}
	return d
}

// OnlyChanged leaves out rows that have expired between the two timestamps and were not changed. It is
// called before Next.
func (d *Diff) OnlyChanged() {
	if d.gone != nil {
		if err := d.gone.it.Close(); d.err == nil {
			d.err = err
		}
		d.gone = nil
	}
}

// Next advances to the next row that differs, and reports whether there is one. It merges the rows
// that were changed with those that have expired.
func (d *Diff) Next() bool {
	if d.gone == nil {
		return d.nextChanged()
	}
	if !d.waits && !d.ended {
		if d.waits = d.nextChanged(); d.waits {
			d.joined = difference{d.key, d.old, d.new}
		}
		d.ended = !d.waits
	}
	if d.err == nil && d.gone.key == nil {
		d.err = d.gone.next()
	}
	if d.err != nil {
		return false
	}
	key := d.gone.key
	switch {
	case d.waits && (key == nil || bytes.Compare(d.joined.key, key) <= 0):
		if key != nil && bytes.Equal(d.joined.key, key) {
			d.gone.key = nil
		}
		d.waits, d.key, d.old, d.new = false, d.joined.key, d.joined.old, d.joined.new
		return true
	case key == nil:
		return false
	}
	d.gone.key, d.key, d.old, d.new = nil, key, d.gone.cells, nil
	return true
}

// nextChanged advances to the next row that was changed and differs.
func (d *Diff) nextChanged() bool {
	for d.err == nil && d.step() {
		if !sameCells(d.old, d.new) {
			return true
		}
	}
	return false
}

// step advances to the next key of either side.
func (d *Diff) step() bool {
	for _, s := range [...]*side{d.before, d.after} {
		if s.b == nil && !s.load() {
			if d.err = s.it.Close(); d.err != nil {
				return false
			}
		}
	}
	b, a := d.before, d.after
	d.old, d.new = nil, nil
	order := 0
	switch {
	case b.b == nil && a.b == nil:
		return false
	case b.b == nil:
		order = 1
	case a.b == nil:
		order = -1
	default:
		order = bytes.Compare(b.keys[b.row], a.keys[a.row])
	}
	if order <= 0 {
		d.key, d.old = b.take()
	}
	if order >= 0 {
		d.key, d.new = a.take()
	}
	return true
}

// load loads the next batch; false at the end.
func (s *side) load() bool {
	if !s.it.Next() {
		return false
	}
	s.b, s.keys = s.it.Batch(), s.it.Keys()
	s.row = s.b.Selection.Next(0)
	return true
}

// take returns the current row, which is valid until the side loads its next batch, and advances.
func (s *side) take() (key []byte, cells [][]byte) {
	key, cells = s.keys[s.row], s.cells
	for i, v := range s.b.Columns {
		cells[i] = v.Cell(s.row)
	}
	if s.row = s.b.Selection.Next(s.row + 1); s.row < 0 {
		s.b = nil
	}
	return key, cells
}

// Key returns the encoded key of the current row. It is never overwritten.
func (d *Diff) Key() []byte { return d.key }

// Before returns the row's cells as of the earlier timestamp; nil if there was no row. They are
// valid until the next call of Next.
func (d *Diff) Before() [][]byte { return d.old }

// After returns the row's cells as of the later timestamp; nil if there was no row. They are valid
// until the next call of Next.
func (d *Diff) After() [][]byte { return d.new }

// Close ends the iteration and returns its first error. It may be called twice.
func (d *Diff) Close() error {
	for _, s := range [...]*side{d.before, d.after} {
		if s.it == nil {
			continue
		}
		if err := s.it.Close(); d.err == nil {
			d.err = err
		}
		s.b = nil
	}
	if d.gone != nil {
		if err := d.gone.it.Close(); d.err == nil {
			d.err = err
		}
	}
	if d.state != nil {
		d.state.release()
		d.state = nil
	}
	if d.err != nil {
		return fmt.Errorf("table %q: %w", d.table, d.err)
	}
	return nil
}
