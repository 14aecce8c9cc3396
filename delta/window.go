package delta

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Window is the cursor of one scan as of a snapshot over the deltas of one rowset. Prepare moves it
// to a window of row IDs, to which the other methods refer. Windows may come in any order;
// ascending is cheapest. Not for concurrent use. Source: tablet spec §8.3, §8.5.
//
//	w := tracker.NewWindow(snap)
//	for … {
//		err := w.Prepare(from, n)
//		w.ApplyDeletes(selection)
//		…                                   // read base cells of a column into v
//		w.ApplyColumn(column.ID, v)
//	}
type Window struct {
	// The stores with changes that apply to snap, chosen once by their statistics: most snapshots
	// are the newest, to which no undo applies, so most files never get a cursor.
	snap   mvcc.Snapshot
	files  []windowFile // undos newest first, redos oldest first: from the base outward
	mem    *MemStore    // nil if none of its changes applies to snap
	births []Birth      // nil if none applies to snap; otherwise some may not
	later  bool         // snap does not see all changes in redo files

	memDeletes bool // only the deletes in mem are needed

	// If deadRows is not nil, the window uses it and the overlays of columns instead of the stores.
	deadRows *Overlay
	overlays []overlaid

	// The changes in the current window. Changes from files stay in the form in which their cblock
	// has them, as runs: to decode each change into columns would take longer than all else that a
	// scan does with it. Changes in memory are few, and are sorted into columns at once. ApplyColumn
	// applies runs first, then images, then columns, so that the newest change of a cell wins.
	from    uint64
	n       int
	some    bool   // some change applies in this window
	runs    []run  // of files, in the order in which they are applied
	picks   []pick // of runs
	images  []rowImage
	columns []columnUpdates // the slots of earlier windows are used again
	used    int             // columns that have a slot for this window: columns[:used]
	hint    int             // the column slot after the slot of the previous change

	// dead has n bits: 1 for rows that do not exist as of snap. It is valid only if deleted is true,
	// so that a window without deletes, the usual case, need not clear it.
	deleted bool
	dead    batch.Bitmap

	// Memory of one call, kept so that a scan allocates it once and not for each window.
	rows  []memRow
	lists []change.List
	seen  batch.Bitmap
	met   batch.Bitmap

	entryRows, entryFirst, entryStarts []uint32 // of the current entries
}

type windowFile struct {
	cursor
	undo bool
}

// rowImage sets all non-key cells of a row.
type rowImage struct {
	row   uint32 // within the window
	image []byte // in the format of the mem store
}

// columnUpdates are the changes of the mem store to one column, in order; if a row occurs twice,
// the last one applies. A column that only files change or images set has none.
type columnUpdates struct {
	id    schema.ColumnID
	rows  []uint32 // within the window
	cells [][]byte // as long as rows
}

// NewWindow returns a Window as of snap over all columns, prepared for no rows.
func (t *Tracker) NewWindow(snap mvcc.Snapshot) *Window {
	w := new(Window)
	w.Reset(t, snap, nil)
	return w
}

// Reset makes w a Window as of snap, prepared for no rows. columns are the IDs, in ascending order, of
// the columns to which changes will be applied; nil stands for all columns. The window excludes
// stores whose changes do not apply to snap, and those that neither set one of the columns nor
// delete or reinsert a row: a scan does not pay for changes that do not concern it.
func (w *Window) Reset(t *Tracker, snap mvcc.Snapshot, columns []schema.ColumnID) {
	*w = Window{snap: snap}
	for _, f := range t.Undo {
		w.addFile(t, f, filter{kind: undos, to: snap}, columns)
	}
	for _, f := range t.Redo {
		w.later = w.later || !snap.Sees(f.stats.Max)
		w.addFile(t, f, filter{kind: redos, to: snap}, columns)
	}
	if any, cells := t.Mem.concerns(snap, columns); any {
		w.mem, w.memDeletes = t.Mem, !cells
	}
	w.births = t.birthsSince(snap)
}

// addFile adds a file if the window needs some of its changes.
func (w *Window) addFile(t *Tracker, f *File, need filter, columns []schema.ColumnID) {
	need.onlyRows = !f.stats.set(columns)
	if !f.has(need) || need.onlyRows && f.stats.Deletes == 0 && f.stats.Reinserts == 0 {
		return
	}
	w.files = append(w.files, windowFile{cursor{file: f, schema: t.schema(), filter: need}, need.kind == undos})
}

// Prepare collects the changes of rows [from, from+n) that apply, store by store starting next to
// the base. Errors: ErrCorrupt; in that case the window is prepared for no rows.
func (w *Window) Prepare(from batch.Ordinal, n int) error {
	w.clear()
	if len(w.files) == 0 && w.mem == nil && w.births == nil {
		return nil // no change applies in any window
	}
	w.from, w.n = uint64(from), n
	if w.deadRows != nil {
		w.prepareOverlays()
		return nil
	}
	to := w.from + uint64(n)
	for i := range w.files {
		f := &w.files[i]
		err := f.scan(w.from, to, func(b *deltaBlock, i, j int) {
			w.addRun(b, i, j, f.undo, f.filter.onlyRows)
		})
		if err != nil {
			w.clear()
			return err
		}
	}
	if w.mem != nil {
		w.addMem(w.mem, to)
	}
	for _, b := range birthsOf(w.births, w.from, to) {
		if lo, hi := b.within(w.from, to); applies(b.TS, w.snap, true) {
			w.some = true
			w.setDead(int(lo-w.from), true)
			w.dead.SetRange(int(lo-w.from), int(hi-w.from))
		}
	}
	return nil
}

// PrepareKnown prepares w for rows [from, to) and returns true if it is known, without reading a
// file, that no change applies to any of them, or if w uses overlays and all of them exist.
// Otherwise it does nothing.
func (w *Window) PrepareKnown(from, to batch.Ordinal) bool {
	if w.deadRows != nil {
		if lo, hi := w.deadRows.within(uint64(from), uint64(to)); hi > lo {
			return false
		}
		return w.Prepare(from, int(to-from)) == nil
	}
	if w.mem != nil && w.mem.changesIn(from, uint64(to), w.memDeletes) ||
		len(birthsOf(w.births, uint64(from), uint64(to))) > 0 {
		return false
	}
	for i := range w.files {
		if !w.files[i].knownUnchanged(uint32(from), uint32(to)) {
			return false
		}
	}
	w.clear()
	w.from, w.n = uint64(from), int(to-from)
	return true
}

// clear prepares w for no rows. It clears references to cells, which would keep cblocks in memory.
func (w *Window) clear() {
	for i := range w.columns[:w.used] {
		c := &w.columns[i]
		clear(c.cells)
		c.rows, c.cells = c.rows[:0], c.cells[:0]
	}
	for i := range w.overlays {
		w.overlays[i].lo, w.overlays[i].hi = 0, 0
	}
	clear(w.runs)
	w.runs, w.picks, w.images = w.runs[:0], w.picks[:0], w.images[:0]
	w.from, w.n, w.used, w.hint, w.some, w.deleted = 0, 0, 0, 0, false, false
}

// addMem adds the changes of a mem store that apply: for each row the nearest fold or replacement
// and the changes after it.
func (w *Window) addMem(m *MemStore, to uint64) {
	w.rows = m.appendRows(w.rows[:0], batch.Ordinal(w.from), to, w.memDeletes)
	for _, r := range w.rows {
		ref := newestBefore(m.changes, r.newest, w.snap)
		w.lists = appendState(w.lists[:0], m.changes, ref)
		for _, list := range w.lists {
			row := int(uint64(r.row) - w.from)
			if w.memDeletes && list.Kind() != change.Delete {
				continue
			}
			if list.Kind() == change.Replace {
				w.images = append(w.images, rowImage{uint32(row), list.Image()})
				continue
			}
			w.add(row, list)
		}
	}
	if len(w.images) == 0 {
		return
	}
	w.some = true
	for s, i := m.format.Schema(), m.format.Schema().Keys; i < len(s.Columns); i++ {
		w.column(s.Columns[i].ID)
	}
}

// add applies one more change to a row of the window.
func (w *Window) add(row int, list change.List) {
	w.some = true
	if kind := list.Kind(); kind != change.Update {
		w.setDead(row, kind == change.Delete)
	}
	columns := list.Columns()
	for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
		c := w.column(id)
		c.rows = append(c.rows, uint32(row))
		c.cells = append(c.cells, cell)
	}
}

// setDead records that a row is deleted, or exists again.
func (w *Window) setDead(row int, dead bool) {
	switch {
	case !dead:
		if w.deleted {
			w.dead.Clear(row)
		}
		return
	case !w.deleted:
		w.dead = w.dead.Resize(w.n)
		w.deleted = true
	}
	w.dead.Set(row)
}

// column returns the slot of a column, and adds it if necessary. Lists mostly set the same columns
// in the same order, so the slot after the previous one is tried first.
func (w *Window) column(id schema.ColumnID) *columnUpdates {
	for range 2 {
		if w.hint < w.used && w.columns[w.hint].id == id {
			w.hint++
			return &w.columns[w.hint-1]
		}
		w.hint = 0
	}
	if i := w.find(id); i >= 0 {
		w.hint = i + 1
		return &w.columns[i]
	}
	if w.used == len(w.columns) {
		w.columns = append(w.columns, columnUpdates{})
	}
	w.columns[w.used].id = id
	w.used++
	w.hint = w.used
	return &w.columns[w.used-1]
}

func (w *Window) find(id schema.ColumnID) int {
	return slices.IndexFunc(w.columns[:w.used], func(c columnUpdates) bool { return c.id == id })
}

// Empty reports whether no change applies in the window, so that base cells are unchanged.
func (w *Window) Empty() bool { return !w.some }

// Touches reports whether a change in the window sets the column. If none does, the column's zone
// maps and encoded data may decide a predicate; deletes do not matter for that.
func (w *Window) Touches(id schema.ColumnID) bool { return w.find(id) >= 0 || w.overlay(id) != nil }

// AddTouched sets bit i of rows for each row from+i whose cell ApplyColumn overwrites. rows has at
// least n bits.
func (w *Window) AddTouched(id schema.ColumnID, rows batch.Bitmap) {
	if c := w.overlay(id); c != nil {
		for _, row := range c.o.rows[c.lo:c.hi] {
			rows.Set(int(uint64(row) - w.from))
		}
		return
	}
	i := w.find(id)
	if i < 0 {
		return
	}
	for k := range w.runs {
		w.addTouchedOf(&w.runs[k], id, rows)
	}
	if w.imageColumn(id) >= 0 {
		for k := range w.images {
			rows.Set(int(w.images[k].row))
		}
	}
	for _, row := range w.columns[i].rows {
		rows.Set(int(row))
	}
}

// imageColumn returns the index in images of a column that they set, −1 if they do not.
func (w *Window) imageColumn(id schema.ColumnID) int {
	if len(w.images) == 0 {
		return -1
	}
	s := w.mem.format.Schema()
	if i := s.IndexID(id); i >= s.Keys {
		return i
	}
	return -1
}

// ApplyDeletes clears the bits of rows that do not exist as of the snapshot; bit i of sel, which
// has at least n bits, is row from+i. It sets no bit and does not change bits beyond the window. It
// returns false if it has cleared none.
func (w *Window) ApplyDeletes(sel batch.Bitmap) (any bool) {
	if !w.deleted {
		return false
	}
	for i, dead := range w.dead {
		sel[i] &^= dead
	}
	return true
}

// DeadForGood reports whether rows that ApplyDeletes clears do not exist in any later snapshot
// either: they were deleted, not inserted later, and no change in a file reinserts a row.
func (w *Window) DeadForGood() bool {
	return w.births == nil && !slices.ContainsFunc(w.files, func(f windowFile) bool {
		return f.undo || f.file.stats.Reinserts > 0
	})
}

// ApplyColumn overwrites the base cells in v, of rows [from, from+n), with the changes of the
// column. Byte strings in v are never overwritten. v changes only if Touches(id).
func (w *Window) ApplyColumn(id schema.ColumnID, v *batch.Vector) {
	c := w.overlay(id)
	i := w.find(id)
	if i < 0 && c == nil {
		return
	}
	if v.Len != w.n {
		panic(fmt.Sprintf("delta: %d cells of column %d, window of %d rows", v.Len, id, w.n))
	}
	if c != nil {
		c.apply(w.from, v)
		return
	}
	for k := range w.runs {
		w.applyRun(&w.runs[k], id, v)
	}
	if at := w.imageColumn(id); at >= 0 {
		for k := range w.images {
			r := &w.images[k]
			v.SetCell(int(r.row), w.mem.format.Cell(r.image, at))
		}
	}
	u := &w.columns[i]
	for k, row := range u.rows {
		v.SetCell(int(row), u.cells[k])
	}
}
