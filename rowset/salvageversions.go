package rowset

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// reason is why something cannot be read: the damage of a block with the cells of a column or, if
// column is negative, with changes. The zero value: it can be read.
type reason struct {
	block  block.ID
	column int
}

func (r reason) is() bool { return r.block != 0 }

// rowVersion is a row at some time, as far as it is known.
type rowVersion struct {
	exists  bool
	unknown reason // whether the row exists
	cells   [][]byte
	lost    []reason // by column
}

// begin makes v an existing row of n unset cells.
func (v *rowVersion) begin(n int) {
	v.exists, v.unknown = true, reason{}
	v.cells, v.lost = slices.Grow(v.cells[:0], n)[:n], slices.Grow(v.lost[:0], n)[:n]
	clear(v.cells)
	clear(v.lost)
}

// back is a step back in time: what the row was before a timestamp, as far as it was different.
type back struct {
	ts      mvcc.Timestamp
	hole    bool   // undos are missing: it comes after those before them in the file
	entered reason // redos are missing from here on, with this reason
	file    int    // of undos, see delta.SalvagedDelta; −1: of redos, which come before undos
	part    int
	exists  bool
	unknown reason
	cells   []backCell
}

type backCell struct {
	column int
	cell   []byte
	lost   reason
}

// versions appends the current row, whose base data is in s.state, with its changes.
//
// It applies redos to the base and keeps for each a step back, as a merge does. With the undos
// these make one way from the newest version to the oldest. Where a file has a hole, what the
// missing changes could have changed is lost from the earliest time of such a change on, in the
// direction of the file, until a later change than theirs sets it.
func (s *salvage) versions(key []byte, undo, redo []delta.SalvagedDelta) {
	s.noteRedos(redo)
	steps := s.forward(redo)
	slices.Reverse(steps)
	for i := range undo {
		steps = append(steps, s.backStep(&undo[i]))
	}
	for i := range s.holes {
		if h := &s.holes[i]; h.Undo && s.inHole(h) {
			steps = append(steps, s.holeSteps(h)...)
		}
	}
	slices.SortStableFunc(steps, compareSteps)
	s.walkBack(key, steps)
}

// compareSteps sorts steps back in the order in which they lead.
func compareSteps(a, b back) int {
	if c := cmp.Or(cmp.Compare(b.ts, a.ts), cmp.Compare(a.file, b.file), cmp.Compare(a.part, b.part)); c != 0 || a.hole == b.hole {
		return c
	} else if b.hole {
		return -1
	}
	return 1
}

func (s *salvage) inHole(h *delta.Hole) bool {
	return uint32(s.row) >= h.From && uint32(s.row) <= h.To
}

// hidden returns a hole on account of which a change of column c at ts, at a position in the files,
// has an unknown effect, nil if there is none: a change that is missing may come after it. A
// negative column is the existence of the row.
func (s *salvage) hidden(undo bool, file, part, c int, ts mvcc.Timestamp) *delta.Hole {
	for i := range s.holes {
		h := &s.holes[i]
		last := h.Max
		if undo {
			last = s.lastUndo(h, c)
		}
		if h.Undo == undo && !h.After(file, part) && s.inHole(h) && ts >= h.Min && ts <= last && s.changedIn(h, c) {
			return h
		}
	}
	return nil
}

// changedIn reports whether a hole may have changes of a column or, if c is negative, of whether the
// row exists. A delete changes no column, and the columns that a reinsert sets are among those of
// the hole.
func (s *salvage) changedIn(h *delta.Hole, c int) bool {
	if c < 0 {
		return h.Existence
	}
	return c >= s.d.Schema.Keys && h.Changes(s.d.Schema.Columns[c].ID)
}

// forward applies redos, oldest first, and holes among them to s.state. It returns steps back,
// oldest first.
func (s *salvage) forward(redo []delta.SalvagedDelta) (steps []back) {
	var holes []*delta.Hole
	for i := range s.holes {
		if h := &s.holes[i]; !h.Undo && s.inHole(h) {
			holes = append(holes, h)
		}
	}
	slices.SortFunc(holes, func(a, b *delta.Hole) int { return cmp.Compare(a.Min, b.Min) })
	for i := range redo {
		for len(holes) > 0 && holes[0].Min <= redo[i].TS {
			steps, holes = append(steps, s.enterHole(holes[0])), holes[1:]
		}
		steps = append(steps, s.apply(&redo[i]))
	}
	for _, h := range holes {
		steps = append(steps, s.enterHole(h))
	}
	return steps
}

// keep returns a step back to s.state, without cells.
func (s *salvage) keep(ts mvcc.Timestamp) back {
	return back{ts: ts, file: -1, exists: s.state.exists, unknown: s.state.unknown}
}

// set sets a cell of s.state and adds the old one to b.
func (s *salvage) set(b *back, c int, cell []byte, lost reason) {
	st := &s.state
	b.cells = append(b.cells, backCell{c, st.cells[c], st.lost[c]})
	st.cells[c], st.lost[c] = cell, lost
}

// enterHole applies missing redos to s.state.
func (s *salvage) enterHole(h *delta.Hole) back {
	why := reason{h.Block, -1}
	b := s.keep(h.Min)
	b.entered = why
	if h.Existence {
		s.state.unknown = why
	}
	for c := range s.state.cells {
		if s.changedIn(h, c) {
			s.set(&b, c, nil, why)
		}
	}
	return b
}

// apply applies a redo to s.state.
func (s *salvage) apply(d *delta.SalvagedDelta) back {
	b := s.keep(d.TS)
	if s.hidden(false, d.File, d.Part, -1, d.TS) == nil {
		s.state.exists, s.state.unknown = d.List.Kind() != change.Delete, reason{}
	}
	for r := d.List.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			return b
		}
		c := s.d.Schema.IndexID(id)
		if c < s.d.Schema.Keys {
			continue
		}
		if s.hidden(false, d.File, d.Part, c, d.TS) != nil {
			s.set(&b, c, nil, s.state.lost[c])
		} else {
			s.set(&b, c, cell, reason{})
		}
	}
}

// backStep returns the step back of an undo.
func (s *salvage) backStep(d *delta.SalvagedDelta) back {
	b := back{ts: d.TS, file: d.File, part: d.Part, exists: d.List.Kind() != change.Delete}
	for r := d.List.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			return b
		}
		if c := s.d.Schema.IndexID(id); c >= s.d.Schema.Keys {
			b.cells = append(b.cells, backCell{c, cell, reason{}})
		}
	}
}

// holeSteps returns the steps back over missing undos.
func (s *salvage) holeSteps(h *delta.Hole) (steps []back) {
	why := reason{h.Block, -1}
	at := func(ts mvcc.Timestamp) *back {
		for i := range steps {
			if steps[i].ts == ts {
				return &steps[i]
			}
		}
		steps = append(steps, back{ts: ts, file: h.File, part: h.Part, hole: true, exists: true})
		return &steps[len(steps)-1]
	}
	if h.Existence {
		at(s.lastUndo(h, -1)).unknown = why
	}
	for c := range s.state.cells {
		if s.changedIn(h, c) {
			b := at(s.lastUndo(h, c))
			b.cells = append(b.cells, backCell{c, nil, why})
		}
	}
	return steps
}

// lastUndo returns a timestamp at or before which the missing undos of column c are; negative:
// those that decide whether the row exists. The undos of a column are older than its redos.
func (s *salvage) lastUndo(h *delta.Hole, c int) mvcc.Timestamp { return min(h.Max, s.firstRedo[c+1]) }

// noteRedos sets s.firstRedo.
func (s *salvage) noteRedos(redo []delta.SalvagedDelta) {
	s.firstRedo = slices.Grow(s.firstRedo[:0], len(s.columns)+1)[:len(s.columns)+1]
	for i := range s.firstRedo {
		s.firstRedo[i] = mvcc.Max
	}
	for i := range redo {
		d := &redo[i]
		s.firstRedo[0] = min(s.firstRedo[0], d.TS)
		for r := d.List.Columns(); ; {
			id, _, ok := r.Next()
			if !ok {
				break
			}
			if c := s.d.Schema.IndexID(id); c >= 0 {
				s.firstRedo[c+1] = min(s.firstRedo[c+1], d.TS)
			}
		}
	}
}

// walkBack appends the row to the output. s.state is the newest version, steps lead back from it.
func (s *salvage) walkBack(key []byte, steps []back) {
	row := uint32(len(s.out.Keys))
	present := s.present(mvcc.Max)
	based := present
	if based {
		s.appendBase(key)
	}
	for i := 0; i < len(steps); {
		ts := steps[i].ts
		var touched []int
		for ; i < len(steps) && steps[i].ts == ts; i++ {
			touched = s.stepBack(&steps[i], touched)
		}
		older := s.present(ts)
		switch {
		case older && !based:
			s.appendBase(key)
			s.out.Redo = append(s.out.Redo, change.Delta{Row: row, TS: ts, List: change.AppendDelete(nil)})
			based = true
		case older && present && len(touched) > 0:
			s.appendUndo(row, ts, s.list(change.Update, touched))
		case older && !present:
			s.appendUndo(row, ts, s.list(change.Reinsert, nil))
		case !older && present:
			s.appendUndo(row, ts, change.AppendDelete(nil))
		}
		present = older
	}
}

// stepBack applies a step to s.state, except for what a missing undo may have set, and adds the
// columns that it sets to touched. A step back over the beginning of missing redos, which may be
// before the row began, restores only what is still unknown on account of them.
func (s *salvage) stepBack(b *back, touched []int) []int {
	restores := func(now reason, c int) bool {
		switch {
		case b.hole:
			return c >= 0 || b.unknown.is()
		case b.entered.is() && now.block != b.entered.block:
			return false
		}
		return s.hidden(true, b.file, b.part, c, b.ts) == nil
	}
	if restores(s.state.unknown, -1) {
		s.state.exists, s.state.unknown = b.exists, b.unknown
	}
	for _, c := range b.cells {
		if !restores(s.state.lost[c.column], c.column) {
			continue
		}
		s.state.cells[c.column], s.state.lost[c.column] = c.cell, c.lost
		if !slices.Contains(touched, c.column) {
			touched = append(touched, c.column)
		}
	}
	return touched
}

// present reports whether s.state, which ended at the timestamp, exists and is kept. It fills cells
// with NULL if they are to be filled.
func (s *salvage) present(end mvcc.Timestamp) bool {
	st := &s.state
	noted, newest := end > s.o.Floor, end == mvcc.Max
	if st.unknown.is() {
		if noted {
			s.note(st.unknown, false, newest)
		}
		return false
	}
	if !st.exists {
		return false
	}
	kept := true
	for c := range st.lost {
		if st.lost[c].is() && !s.nullable(c) {
			kept = false
		}
	}
	for c := range st.lost {
		if !st.lost[c].is() || !kept && s.nullable(c) {
			continue
		}
		if why := st.lost[c]; noted {
			if s.nullable(c) {
				why.column = c
			}
			s.note(why, s.nullable(c), newest)
		}
	}
	return kept
}

// cell returns the cell of s.state for column c, NULL if it is lost.
func (s *salvage) cell(c int) []byte {
	if s.state.lost[c].is() {
		return nil
	}
	return s.state.cells[c]
}

// appendBase appends s.state as base data.
func (s *salvage) appendBase(key []byte) {
	i := len(s.out.Keys)
	s.out.Keys = append(s.out.Keys, key)
	for c, v := range s.batch.Columns {
		v.SetCell(i, s.cell(c))
	}
}

func (s *salvage) appendUndo(row uint32, ts mvcc.Timestamp, list change.List) {
	s.out.Undo = append(s.out.Undo, change.Delta{Row: row, TS: ts, List: list})
}

// list returns a list that sets columns to the cells of s.state; nil columns are all.
func (s *salvage) list(kind change.Kind, columns []int) change.List {
	l := change.AppendUpdateHeader(nil, kind)
	if columns == nil {
		for c := s.d.Schema.Keys; c < len(s.state.cells); c++ {
			l = change.AppendColumn(l, s.columnID(c), s.cell(c))
		}
		return l
	}
	for _, c := range columns {
		l = change.AppendColumn(l, s.columnID(c), s.cell(c))
	}
	return l
}

func (s *salvage) columnID(c int) schema.ColumnID { return s.d.Schema.Columns[c].ID }
