package rowunion

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/scan"
)

// Join iterates over the keys of two scans of the same columns, as of two timestamps, in key order,
// which may descend.
//
// To find what has changed, both scans return the rows with changes between the timestamps. If one of
// them sees a copy of a row as a ghost, then either the row does not exist in that scan, or it is
// live in another set of rows, where it was changed between the two timestamps as well.
type Join struct {
	before, after side
	descending    bool
	key           []byte
	old, new      [][]byte
	err           error
}

// side is one of the two scans and its current row.
type side struct {
	it    scan.Iterator
	b     *batch.RecordBatch // nil at the end
	keys  [][]byte
	row   int
	cells [][]byte
}

// NewJoin joins the iterators of two requests of the same columns and keys in the same order. Close
// closes them.
func NewJoin(r *scan.Request, before, after scan.Iterator) *Join {
	columns := len(r.Columns())
	return &Join{before: side{it: before, cells: make([][]byte, columns)},
		after: side{it: after, cells: make([][]byte, columns)}, descending: r.Descending()}
}

// Next advances to the next key of either scan, and reports whether there is one.
func (j *Join) Next() bool {
	for _, s := range [...]*side{&j.before, &j.after} {
		if j.err == nil && s.b == nil && !s.load() {
			j.err = s.it.Close()
		}
	}
	b, a := &j.before, &j.after
	j.old, j.new = nil, nil
	order := 0
	switch {
	case j.err != nil || b.b == nil && a.b == nil:
		return false
	case b.b == nil:
		order = 1
	case a.b == nil:
		order = -1
	default:
		if order = bytes.Compare(b.keys[b.row], a.keys[a.row]); j.descending {
			order = -order
		}
	}
	if order <= 0 {
		j.key, j.old = b.take()
	}
	if order >= 0 {
		j.key, j.new = a.take()
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
func (j *Join) Key() []byte { return j.key }

// Before returns the row's cells in the earlier scan; nil if it does not have the row. They are valid
// until the next call of Next.
func (j *Join) Before() [][]byte { return j.old }

// After returns the row's cells in the later scan; nil if it does not have the row. They are valid
// until the next call of Next.
func (j *Join) After() [][]byte { return j.new }

// Close ends the iteration and returns its first error. It may be called twice.
func (j *Join) Close() error {
	for _, s := range [...]*side{&j.before, &j.after} {
		if err := s.it.Close(); j.err == nil {
			j.err = err
		}
		s.b = nil
	}
	return j.err
}
