package versions

import (
	"cmp"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
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

// copyFrom makes v what o is.
func (v *rowVersion) copyFrom(o *rowVersion) {
	v.exists, v.unknown = o.exists, o.unknown
	v.cells, v.lost = append(v.cells[:0], o.cells...), append(v.lost[:0], o.lost...)
}

// back is a step back in time: what the row was before a timestamp, as far as it was different.
type back struct {
	ts      mvcc.Timestamp
	hole    bool   // undos are missing: it comes after those before them in the file
	entered reason // redos are missing from here on, with this reason
	file    int    // of undos, see damaged.Change; −1: of redos, which come before undos
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

// history is one row of a rowset, or of the log, with all its versions.
//
// It applies redos to the base and keeps for each a step back, as a merge does. With the undos these
// make one way from the newest version to the oldest. Where a file has a hole, what the missing
// changes could have changed is lost from the earliest time of such a change on, in the direction of
// the file, until a later change than theirs sets it.
type history struct {
	schema *schema.Schema
	o      *Options
	set    *rowset.Metadata // nil: the row is one of the log
	// note counts the row in a loss. It is nil if nothing of the row is lost.
	note  func(why reason, filled, newest bool)
	holes []damaged.Hole // of the rowset

	key          []byte
	row          batch.Ordinal
	undos, redos []damaged.Change
	state        rowVersion       // at the current time
	firstRedo    []mvcc.Timestamp // of all redos, then of each column
	forth        []back           // over redos, oldest first

	// See finish and rewind.
	newest rowVersion
	steps  []back
	next   int // step

	log logKnowledge
}

// begin applies the redos to s.state, which is the base data.
func (s *history) begin() {
	s.noteRedos(s.redos)
	s.forth = s.forward(s.forth[:0], s.redos)
}

// change applies a later change than those in files: one of the log.
func (s *history) change(ts mvcc.Timestamp, list change.List) {
	d := damaged.Change{Delta: change.Delta{Row: uint32(s.row), TS: ts, List: list}, File: math.MaxInt}
	s.noteRedo(&d)
	s.forth = append(s.forth, s.apply(&d))
}

// finish makes s.steps from the newest version, which is s.state, to the oldest.
func (s *history) finish() {
	s.newest.copyFrom(&s.state)
	s.steps = append(s.steps[:0], s.forth...)
	slices.Reverse(s.steps)
	for i := range s.undos {
		s.steps = append(s.steps, s.backStep(&s.undos[i]))
	}
	for i := range s.holes {
		if h := &s.holes[i]; h.Undo && s.inHole(h) {
			s.steps = append(s.steps, s.holeSteps(h)...)
		}
	}
	slices.SortStableFunc(s.steps, compareSteps)
	s.next = 0
}

// rewind makes s.state the newest version.
func (s *history) rewind() {
	s.state.copyFrom(&s.newest)
	s.next = 0
}

// earlier makes s.state the version before the next step back, and returns the time of that step,
// or false if no step is left. It adds the columns that it sets to touched.
func (s *history) earlier(touched *[]int) (ts mvcc.Timestamp, ok bool) {
	if s.next == len(s.steps) {
		return 0, false
	}
	ts = s.steps[s.next].ts
	for ; s.next < len(s.steps) && s.steps[s.next].ts == ts; s.next++ {
		*touched = s.stepBack(&s.steps[s.next], *touched)
	}
	return ts, true
}

// span is a time in which a row exists, or may exist. Its versions follow one another.
type span struct {
	from, to mvcc.Timestamp
	known    bool // all of its versions are
}

// spans appends the times of the row, newest first, and notes what is lost of them. It must be
// finished.
func (s *history) spans(dst []span) []span {
	s.rewind()
	first, to := len(dst), mvcc.Max
	var touched []int
	for more := true; more; {
		known, may := s.present(to)
		from, ok := s.earlier(&touched)
		touched = touched[:0]
		if more = ok; !ok {
			from = mvcc.Min
		}
		last := len(dst) - 1
		switch {
		case !may || from == to:
		case last >= first && dst[last].from == to && dst[last].known == known:
			dst[last].from = from
		default:
			dst = append(dst, span{from, to, known})
		}
		to = from
	}
	return dst
}

// compareSteps sorts steps back in the order in which they lead.
func compareSteps(a, b back) int {
	if c := cmp.Or(cmp.Compare(b.ts, a.ts), cmp.Compare(a.file, b.file), cmp.Compare(a.part, b.part)); c != 0 ||
		a.hole == b.hole {
		return c
	} else if b.hole {
		return -1
	}
	return 1
}

func (s *history) inHole(h *damaged.Hole) bool {
	return uint32(s.row) >= h.From && uint32(s.row) <= h.To
}

// hidden returns a hole on account of which a change of column c at ts, at a position in the files,
// has an unknown effect, or nil if its effect is known. With a hole, a change that is missing may
// come after it. A negative column is the existence of the row.
func (s *history) hidden(undo bool, file, part, c int, ts mvcc.Timestamp) *damaged.Hole {
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

// changedIn reports whether a hole may have changes of a column or, if c is negative, may have
// ended or begun the row. A delete changes no column, and the columns that a reinsert sets are
// among the columns of the hole.
func (s *history) changedIn(h *damaged.Hole, c int) bool {
	if c < 0 {
		return h.Existence
	}
	return c >= s.schema.Keys && h.Changes(s.schema.Columns[c].ID)
}

// forward applies redos, oldest first, and holes among them to s.state. It appends steps back,
// oldest first.
func (s *history) forward(steps []back, redo []damaged.Change) []back {
	var holes []*damaged.Hole
	for i := range s.holes {
		if h := &s.holes[i]; !h.Undo && s.inHole(h) {
			holes = append(holes, h)
		}
	}
	slices.SortFunc(holes, func(a, b *damaged.Hole) int { return cmp.Compare(a.Min, b.Min) })
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
func (s *history) keep(ts mvcc.Timestamp) back {
	return back{ts: ts, file: -1, exists: s.state.exists, unknown: s.state.unknown}
}

// put sets a cell of s.state and adds the old one to b.
func (s *history) put(b *back, c int, cell []byte, lost reason) {
	st := &s.state
	b.cells = append(b.cells, backCell{c, st.cells[c], st.lost[c]})
	st.cells[c], st.lost[c] = cell, lost
}

// enterHole applies missing redos to s.state.
func (s *history) enterHole(h *damaged.Hole) back {
	why := reason{h.Block, -1}
	b := s.keep(h.Min)
	b.entered = why
	if h.Existence {
		s.state.unknown = why
	}
	for c := range s.state.cells {
		if s.changedIn(h, c) {
			s.put(&b, c, nil, why)
		}
	}
	return b
}

// apply applies a redo to s.state.
func (s *history) apply(d *damaged.Change) back {
	b := s.keep(d.TS)
	if s.hidden(false, d.File, d.Part, -1, d.TS) == nil {
		s.state.exists, s.state.unknown = d.List.Kind() != change.Delete, reason{}
	}
	for r := d.List.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			return b
		}
		c := s.schema.IndexID(id)
		if c < s.schema.Keys {
			continue
		}
		if s.hidden(false, d.File, d.Part, c, d.TS) != nil {
			s.put(&b, c, nil, s.state.lost[c])
		} else {
			s.put(&b, c, cell, reason{})
		}
	}
}

// backStep returns the step back of an undo.
func (s *history) backStep(d *damaged.Change) back {
	b := back{ts: d.TS, file: d.File, part: d.Part, exists: d.List.Kind() != change.Delete}
	if d.List.Kind() == change.Reinsert { // a column that was added later gets its default
		for c := s.schema.Keys; c < len(s.schema.Columns); c++ {
			if column := &s.schema.Columns[c]; column.ReadDefault != nil || column.Nullable {
				b.cells = append(b.cells, backCell{c, column.ReadDefault, reason{}})
			}
		}
	}
	for r := d.List.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			return b
		}
		if c := s.schema.IndexID(id); c >= s.schema.Keys {
			b.cells = append(b.cells, backCell{c, cell, reason{}})
		}
	}
}

// holeSteps returns the steps back over missing undos.
func (s *history) holeSteps(h *damaged.Hole) (steps []back) {
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
func (s *history) lastUndo(h *damaged.Hole, c int) mvcc.Timestamp {
	return min(h.Max, s.firstRedo[c+1])
}

// noteRedos sets s.firstRedo.
func (s *history) noteRedos(redo []damaged.Change) {
	n := len(s.schema.Columns) + 1
	s.firstRedo = slices.Grow(s.firstRedo[:0], n)[:n]
	for i := range s.firstRedo {
		s.firstRedo[i] = mvcc.Max
	}
	for i := range redo {
		s.noteRedo(&redo[i])
	}
}

func (s *history) noteRedo(d *damaged.Change) {
	s.firstRedo[0] = min(s.firstRedo[0], d.TS)
	for r := d.List.Columns(); ; {
		id, _, ok := r.Next()
		if !ok {
			return
		}
		if c := s.schema.IndexID(id); c >= 0 {
			s.firstRedo[c+1] = min(s.firstRedo[c+1], d.TS)
		}
	}
}

// stepBack applies a step to s.state, except for cells that a missing undo may have set, and adds
// the columns that it sets to touched. A step back over the beginning of missing redos, which may
// be before the row began, restores only what is still unknown on account of them.
func (s *history) stepBack(b *back, touched []int) []int {
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

// present reports whether s.state, which ended at the timestamp, is known to exist and kept, and
// whether it may exist. It fills cells with NULL if they are to be filled.
func (s *history) present(end mvcc.Timestamp) (kept, may bool) {
	st := &s.state
	noted, newest := end > s.o.Floor && s.note != nil, end == mvcc.Max
	if st.unknown.is() {
		if noted {
			s.note(st.unknown, false, newest)
		}
		return false, true
	}
	if !st.exists {
		return false, false
	}
	kept = true
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
	return kept, true
}

// nullable reports whether a column may be filled with NULL.
func (s *history) nullable(c int) bool {
	return s.o.FillNull && c >= s.schema.Keys && s.schema.Columns[c].Nullable
}

// cell returns the cell of s.state for column c, NULL if it is lost.
func (s *history) cell(c int) []byte {
	if s.state.lost[c].is() {
		return nil
	}
	return s.state.cells[c]
}

// list returns a list that sets columns to the cells of s.state.
func (s *history) list(kind change.Kind, columns []int) change.List {
	l := change.AppendUpdateHeader(nil, kind)
	for _, c := range columns {
		l = change.AppendColumn(l, s.schema.Columns[c].ID, s.cell(c))
	}
	return l
}
