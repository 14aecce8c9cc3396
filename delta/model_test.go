package delta

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// testSchema has a column of each relevant kind: not nullable, nullable with fixed widths, nullable
// byte string.
var testSchema = func() *schema.Schema {
	s, err := schema.New([]schema.Column{
		{ID: 10, Name: "key", Type: schema.Int64},
		{ID: 11, Name: "a", Type: schema.Int32},
		{ID: 12, Name: "b", Type: schema.String, Nullable: true},
		{ID: 13, Name: "d", Type: schema.Int64, Nullable: true},
		{ID: 300, Name: "c", Type: schema.Int8, Nullable: true},
		// its ID is two bytes, of which the second looks like the size of a cell
		{ID: 9<<7 | 5, Name: "e", Type: schema.Int64, Nullable: true},
	}, 1)
	if err != nil {
		panic(err)
	}
	return s
}()

// event is one operation on a row: insert, update, delete or reinsert.
type event struct {
	ts    mvcc.Timestamp
	kind  change.Kind
	cells map[schema.ColumnID][]byte // the cells that it set; all columns for insert and reinsert
}

// state is a row at one time.
type state struct {
	there bool
	cells map[schema.ColumnID][]byte
}

// history is the list of events of one row, oldest first. It begins with an insert.
type history []event

// at returns the row after the first n events. All other results are compared with it.
func (h history) at(n int) state {
	s := state{cells: map[schema.ColumnID][]byte{}}
	for _, e := range h[:n] {
		s.there = e.kind != change.Delete
		for id, cell := range e.cells {
			s.cells[id] = cell
		}
	}
	return s
}

// before returns the number of events before snap.
func (h history) before(snap mvcc.Snapshot) int {
	n := 0
	for n < len(h) && snap.Sees(h[n].ts) {
		n++
	}
	return n
}

// redo returns event n as a redo.
func (h history) redo(n int) change.List {
	e := h[n]
	if e.kind == change.Delete {
		return drop()
	}
	return listOf(e.kind, e.cells)
}

// undo returns event n as an undo.
func (h history) undo(n int) change.List {
	e, old := h[n], h.at(n)
	switch e.kind {
	case change.Insert, change.Reinsert:
		return drop()
	case change.Delete:
		return listOf(change.Reinsert, old.cells)
	}
	back := map[schema.ColumnID][]byte{}
	for id := range e.cells {
		back[id] = old.cells[id]
	}
	return listOf(change.Update, back)
}

func listOf(kind change.Kind, cells map[schema.ColumnID][]byte) change.List {
	ids := make([]schema.ColumnID, 0, len(cells))
	for id := range cells {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := change.AppendUpdateHeader(nil, kind)
	for _, id := range ids {
		list = change.AppendColumn(list, id, cells[id])
	}
	return list
}

// world is a rowset: the histories of its rows, and the same as base cells and delta stores.
type world struct {
	rows    []history
	base    []int  // number of events of each row that the base includes
	born    []bool // rows with a birth
	tracker *Tracker
	end     mvcc.Timestamp // above every event
}

func drawCells(t *rapid.T, all bool) map[schema.ColumnID][]byte {
	cells := map[schema.ColumnID][]byte{}
	pick := rapid.IntRange(1, 31).Draw(t, "columns")
	if all || pick&1 != 0 {
		cells[11] = []byte{rapid.Byte().Draw(t, "a"), 1, 2, 3}
	}
	if all || pick&2 != 0 {
		b := rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 30).Draw(t, "b")
		if len(b) == 30 {
			b = nil
		}
		cells[12] = b
	}
	if all || pick&4 != 0 {
		cells[300] = [][]byte{nil, {0}, {5}}[rapid.IntRange(0, 2).Draw(t, "c")]
	}
	for i, id := range []schema.ColumnID{13, 9<<7 | 5} {
		if all || pick&(8<<i) != 0 {
			cells[id] = [][]byte{nil, {7: 1}, {1, 2, 3, 4, 5, 6, 7, 8}}[rapid.IntRange(0, 2).Draw(t, "wide")]
		}
	}
	return cells
}

// drawWorld draws a rowset. Its time is divided at random into the undos of two files, the base,
// the redos of three files, and a mem store, any of which may be empty. There are few rows among
// many row IDs.
func drawWorld(t *rapid.T) *world {
	w := &world{end: 60}
	var cuts []mvcc.Timestamp // base, then the beginnings of the redo files and the store
	for range 4 {
		cuts = append(cuts, mvcc.Timestamp(rapid.IntRange(2, 60).Draw(t, "cut")))
	}
	slices.Sort(cuts)
	undoCut := mvcc.Timestamp(rapid.IntRange(1, int(cuts[0])).Draw(t, "undo cut"))

	for range rapid.IntRange(1, 60).Draw(t, "rows") {
		h := history{{ts: mvcc.Timestamp(rapid.IntRange(1, int(cuts[0])-1).Draw(t, "insert")),
			kind: change.Insert, cells: drawCells(t, true)}}
		events, pause := rapid.IntRange(0, 6).Draw(t, "events"), 12
		hot := rapid.IntRange(0, 30).Draw(t, "hot") == 0
		if hot {
			events, pause = 300, 5 // enough for folds
		}
		for range events {
			last := h[len(h)-1]
			later := rapid.IntRange(0, pause).Draw(t, "later")
			if hot {
				later /= pause // mostly zero
			}
			e := event{ts: last.ts + mvcc.Timestamp(later)}
			switch {
			case last.kind == change.Delete && e.ts >= cuts[3]:
				e.ts = w.end // a mem store has no reinsert: the row stays deleted
			case last.kind == change.Delete:
				e.kind, e.cells = change.Reinsert, drawCells(t, true)
			case rapid.IntRange(0, max(5, events/2)).Draw(t, "delete") == 0:
				e.kind = change.Delete
			default:
				e.kind, e.cells = change.Update, drawCells(t, rapid.IntRange(0, 3).Draw(t, "whole") == 0)
			}
			if e.ts >= w.end {
				break
			}
			h = append(h, e)
		}
		w.rows = append(w.rows, h)
		base := h.before(mvcc.Before(cuts[0]))
		if h[base-1].kind == change.Delete {
			base-- // a deleted row keeps its last cells in the base, and the delete is a redo
		}
		w.base = append(w.base, base)
		w.born = append(w.born, rapid.Bool().Draw(t, "born"))
	}
	w.store(t, undoCut, cuts)
	return w
}

// store makes the tracker: births, undos before and after undoCut, redos between the cuts.
func (w *world) store(t *rapid.T, undoCut mvcc.Timestamp, cuts []mvcc.Timestamp) {
	tr := &Tracker{Schema: testSchema}
	var births []Birth
	for row, h := range w.rows {
		if last := len(births) - 1; !w.born[row] {
		} else if last >= 0 && births[last].TS == h[0].ts && births[last].end() == uint64(row) {
			births[last].Rows++
		} else {
			births = append(births, Birth{First: uint32(row), Rows: 1, TS: h[0].ts})
		}
	}
	must.Do(t, CheckBirths(births, int64(len(w.rows))))
	tr.SetBirths(births)
	add := appendFile
	if rapid.Bool().Draw(t, "cached") {
		add = appendCachedFile
	}
	for _, part := range [][2]mvcc.Timestamp{{undoCut, cuts[0]}, {0, undoCut}} {
		tr.Undo = add(t, tr.Undo, w.undos(part[0], part[1], w.born), true)
	}
	for _, part := range [][2]mvcc.Timestamp{{0, cuts[1]}, {cuts[1], cuts[2]}, {cuts[2], cuts[3]}} {
		tr.Redo = add(t, tr.Redo, w.redos(part[0], part[1]), false)
	}
	tr.Mem = memOf(w.redos(cuts[3], w.end))
	w.tracker = tr
}

// undos returns the undos of the events of the base in [from, to), in file order, except for the
// undos of inserts of rows in born.
func (w *world) undos(from, to mvcc.Timestamp, born []bool) []change.Delta {
	var out []change.Delta
	for row, h := range w.rows {
		for n := w.base[row] - 1; n >= 0; n-- {
			if h[n].ts >= from && h[n].ts < to && (n > 0 || born == nil || !born[row]) {
				out = append(out, change.Delta{Row: uint32(row), TS: h[n].ts, List: h.undo(n)})
			}
		}
	}
	return out
}

// redos returns the redos of the events after the base in [from, to), in file order.
func (w *world) redos(from, to mvcc.Timestamp) []change.Delta {
	var out []change.Delta
	for row, h := range w.rows {
		for n := w.base[row]; n < len(h); n++ {
			if h[n].ts >= from && h[n].ts < to {
				out = append(out, change.Delta{Row: uint32(row), TS: h[n].ts, List: h.redo(n)})
			}
		}
	}
	return out
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// writeFile writes deltas with cblocks so small that a few deltas fill several.
func writeFile(t fataler, deltas []change.Delta, undo bool) (*block.Memory, Stats) {
	t.Helper()
	sink := &block.Memory{Number: 77}
	w := must.Get(newWriter(sink, undo, 512))(t)
	for _, d := range deltas {
		must.Do(t, w.Append(d))
	}
	stats := must.Get(w.Finish())(t)
	return sink, stats
}

func openFile(t fataler, src block.Source) *File {
	t.Helper()
	return openCached(t, src, nil)
}

func openCached(t fataler, src block.Source, c *cache.Cache) *File {
	t.Helper()
	return must.Get(OpenFile(src, cfile.ReaderOptions{Cache: c}))(t)
}

func appendFile(t fataler, files []*File, deltas []change.Delta, undo bool) []*File {
	t.Helper()
	return appendTo(t, files, deltas, undo, nil)
}

// appendCachedFile is appendFile with a cache of its own: all files have the same number. Every other
// file is read like one with long changes.
func appendCachedFile(t fataler, files []*File, deltas []change.Delta, undo bool) []*File {
	t.Helper()
	before := len(files)
	files = appendTo(t, files, deltas, undo, cache.New(1<<20))
	for _, f := range files[before:] {
		f.long = f.size%2 == 0
	}
	return files
}

func appendTo(t fataler, files []*File, deltas []change.Delta, undo bool, c *cache.Cache) []*File {
	t.Helper()
	if len(deltas) == 0 {
		return files
	}
	sink, _ := writeFile(t, deltas, undo)
	f := openCached(t, sink, c)
	must.Do(t, f.Verify(testSchema, 1<<20, undo))
	return append(files, f)
}

var testFormat = change.NewRowFormat(testSchema)

// replacement returns the replacement that an update of all columns is applied as, and other lists
// as they are.
func replacement(list change.List) change.List {
	cells := [][]byte{{7: 0}} // of the key
	for _, c := range testSchema.Columns[1:] {
		if cell, ok := list.Find(c.ID); ok {
			cells = append(cells, cell)
		}
	}
	if list.Kind() != change.Update || len(cells) < len(testSchema.Columns) {
		return list
	}
	return change.AppendReplace(nil, testFormat.AppendRow(nil, cells))
}

// memOf applies deltas to a mem store in the order of time, deletes as runs; nil for none.
func memOf(deltas []change.Delta) *MemStore {
	if len(deltas) == 0 {
		return nil
	}
	byTime := slices.Clone(deltas)
	slices.SortStableFunc(byTime, func(a, b change.Delta) int { return cmp.Compare(a.TS, b.TS) })
	m := NewMemStore(testFormat, nil)
	for i := 0; i < len(byTime); i++ {
		d, n := byTime[i], uint32(1)
		if d.List.Kind() != change.Delete {
			m.Apply(batch.Ordinal(d.Row), d.TS, lsn.LSN(i+1), replacement(d.List))
			continue
		}
		for ; i+1 < len(byTime); i++ {
			if next := byTime[i+1]; next.TS != d.TS || next.Row != d.Row+n || next.List.Kind() != change.Delete {
				break
			}
			n++
		}
		m.DeleteRun(batch.Ordinal(d.Row), n, d.TS, lsn.LSN(i+1))
	}
	return m
}

func (w *world) checkRows(t *rapid.T, snap mvcc.Snapshot) {
	var r RowState
	for row, h := range w.rows {
		must.Do(t, w.tracker.RowAt(batch.Ordinal(row), snap, &r))
		want, base := h.at(h.before(snap)), h.at(w.base[row])
		if r.Deleted == want.there {
			t.Fatalf("row %d at %d: deleted %v, want there %v", row, snap, r.Deleted, want.there)
		}
		if !want.there {
			continue
		}
		for _, c := range testSchema.Columns[1:] {
			cell, ok := r.Cell(c.ID)
			if !ok {
				cell = base.cells[c.ID]
			}
			if !sameCell(cell, want.cells[c.ID]) {
				t.Fatalf("row %d at %d: column %d is %x, want %x", row, snap, c.ID, cell, want.cells[c.ID])
			}
		}
	}
}

func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// checkTouched checks that ApplyColumn overwrites the cells that AddTouched names.
func (w *world) checkTouched(t *rapid.T, win *Window, id schema.ColumnID, v *batch.Vector) {
	touched := batch.MakeBitmap(v.Len)
	win.AddTouched(id, touched)
	var marks [2]*batch.Vector // with different cells: what is equal in both was overwritten
	for k := range marks {
		marks[k] = batch.NewVector(v.Type, v.Len)
		mark := bytes.Repeat([]byte{0x5a + byte(k)}, max(v.Type.Width(), 3))
		for i := range v.Len {
			marks[k].SetCell(i, mark)
		}
		win.ApplyColumn(id, marks[k])
	}
	for i := range v.Len {
		if overwritten := sameCell(marks[0].Cell(i), marks[1].Cell(i)); overwritten != touched.Get(i) {
			t.Fatalf("column %d, row %d of the window: touched %v, overwritten %v", id, i, touched.Get(i), overwritten)
		}
	}
}

// columnsWindow is a window over the columns with some IDs; all columns if ids is nil.
type columnsWindow struct {
	*Window
	ids []schema.ColumnID
}

// newWindow returns a window over all columns, or over any of them.
func (w *world) newWindow(t *rapid.T, snap mvcc.Snapshot) columnsWindow {
	if rapid.Bool().Draw(t, "all columns") {
		return columnsWindow{w.tracker.NewWindow(snap), nil}
	}
	ids := []schema.ColumnID{}
	for _, c := range testSchema.Columns {
		if rapid.IntRange(0, 2).Draw(t, "column") == 0 {
			ids = append(ids, c.ID)
		}
	}
	win := new(Window)
	win.Reset(w.tracker, snap, ids)
	return columnsWindow{win, ids}
}

// checkWindow compares one prepared window with the model, column by column.
func (w *world) checkWindow(t *rapid.T, win columnsWindow, snap mvcc.Snapshot, from, n int) {
	touched, some, cells := w.touched(snap, from, n, win.ids)
	if win.PrepareKnown(batch.Ordinal(from), batch.Ordinal(from+n)) {
		if cells {
			t.Fatalf("rows [%d,%d) at %d: unchanged for columns %v", from, from+n, snap, win.ids)
		}
	} else {
		must.Do(t, win.Prepare(batch.Ordinal(from), n))
	}
	if win.ids == nil && win.Empty() == some || win.Empty() && cells {
		t.Fatalf("rows [%d,%d) at %d: empty %v for columns %v", from, from+n, snap, win.Empty(), win.ids)
	}
	sel := batch.MakeBitmap(n + 64)
	sel.SetRange(0, n+64)
	sel.Clear(n / 2) // the caller has already excluded this row
	win.ApplyDeletes(sel)
	for i := range n + 64 {
		want := i >= n || from+i >= len(w.rows)
		if !want {
			h := w.rows[from+i]
			want = h.at(h.before(snap)).there
		}
		if i == n/2 {
			want = false
		}
		if sel.Get(i) != want {
			t.Fatalf("rows [%d,%d) at %d: selection of row %d is %v", from, from+n, snap, from+i, sel.Get(i))
		}
	}
	for _, c := range testSchema.Columns[1:] {
		if win.ids != nil && !slices.Contains(win.ids, c.ID) {
			continue
		}
		if got := win.Touches(c.ID); got != touched[c.ID] {
			t.Fatalf("rows [%d,%d) at %d: touches column %d: %v", from, from+n, snap, c.ID, got)
		}
		v := batch.NewVector(c.Type, n)
		for i := range n {
			if row := from + i; row < len(w.rows) {
				v.SetCell(i, w.rows[row].at(w.base[row]).cells[c.ID])
			}
		}
		w.checkTouched(t, win.Window, c.ID, v)
		win.ApplyColumn(c.ID, v)
		for i := range n {
			row := from + i
			if row >= len(w.rows) || !sel.Get(i) {
				continue
			}
			want := w.rows[row].at(w.rows[row].before(snap)).cells[c.ID]
			if !sameCell(v.Cell(i), want) {
				t.Fatalf("row %d at %d: column %d is %x, want %x", row, snap, c.ID, v.Cell(i), want)
			}
		}
	}
}

// touched returns the columns that changes between base and snap set in rows [from, from+n). some
// reports whether the rows have any change, and concerned whether they have a change that sets a column with
// an ID in ids, or deletes or reinserts a row; nil stands for all columns.
func (w *world) touched(
	snap mvcc.Snapshot, from, n int, ids []schema.ColumnID,
) (touched map[schema.ColumnID]bool, some, concerned bool) {
	touched = map[schema.ColumnID]bool{}
	see := func(list change.List) {
		some = true
		concerned = concerned || ids == nil || list.Kind() != change.Update
		columns := list.Columns()
		for id, _, ok := columns.Next(); ok; id, _, ok = columns.Next() {
			touched[id] = true
			concerned = concerned || slices.Contains(ids, id)
		}
	}
	for row := from; row < min(from+n, len(w.rows)); row++ {
		h := w.rows[row]
		seen := h.before(snap)
		for i := seen; i < w.base[row]; i++ {
			see(h.undo(i))
		}
		for i := w.base[row]; i < seen; i++ {
			see(h.redo(i))
		}
	}
	return touched, some, concerned
}

// TestDeltasMatchModel compares every way of reading with the replayed histories of the rows.
func TestDeltasMatchModel(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for row, h := range w.rows {
			live := must.Get(w.tracker.Live(batch.Ordinal(row)))(t)
			if want := h.at(len(h)).there; live != want {
				t.Fatalf("row %d: live %v, want %v", row, live, want)
			}
		}
		for range 4 {
			snap := mvcc.Snapshot(rapid.IntRange(0, int(w.end)+1).Draw(t, "snap"))
			w.checkRows(t, snap)
			win := w.newWindow(t, snap)
			// Ascending windows of every length with gaps; then windows in any order.
			for from := 0; from < len(w.rows)+5; {
				from += rapid.SampledFrom([]int{0, 0, 0, 1, 20}).Draw(t, "gap")
				n := rapid.IntRange(1, 30).Draw(t, "n")
				w.checkWindow(t, win, snap, from, n)
				from += n
			}
			for range 3 {
				w.checkWindow(t, win, snap, rapid.IntRange(0, len(w.rows)).Draw(t, "from"),
					rapid.IntRange(1, 30).Draw(t, "n"))
			}
			w.checkCollect(t, snap)
		}
	})
}

func (w *world) checkCollect(t *rapid.T, snap mvcc.Snapshot) {
	var undo, redo []change.Delta
	c := w.tracker.NewCollector(snap)
	for from := 0; from < len(w.rows); {
		n := rapid.IntRange(1, 40).Draw(t, "collect")
		u, r := must.Get2(c.Collect(batch.Ordinal(from), n))(t)
		undo, redo = appendClones(undo, u), appendClones(redo, r)
		from += n
	}
	sameDeltas(t, "undo", undo, w.undos(0, w.end, nil))
	sameDeltas(t, "redo", redo, w.redos(0, min(mvcc.Timestamp(snap), w.end)))
}

// appendClones appends deltas with copies of their lists.
func appendClones(dst, deltas []change.Delta) []change.Delta {
	for _, d := range deltas {
		d.List = slices.Clone(d.List)
		dst = append(dst, d)
	}
	return dst
}

func sameDeltas(t fataler, what string, got, want []change.Delta) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "none", "none"
		if i < len(got) {
			g = fmt.Sprintf("row %d at %d: %x", got[i].Row, uint64(got[i].TS), []byte(got[i].List))
		}
		if i < len(want) {
			w = fmt.Sprintf("row %d at %d: %x", want[i].Row, uint64(want[i].TS), []byte(want[i].List))
		}
		if g != w {
			t.Fatalf("%s %d: %s, want %s", what, i, g, w)
		}
	}
}

// TestFlushKeepsEveryChange writes a mem store to a file and compares the two.
func TestFlushKeepsEveryChange(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		m := w.tracker.Mem
		if m == nil {
			t.Skip()
		}
		var held []change.Delta
		must.Do(t, m.Each(mvcc.Everything, func(d change.Delta) error {
			d.List = slices.Clone(d.List)
			held = append(held, d)
			return nil
		}))
		sink, stats := writeFile(t, held, false)
		f := openFile(t, sink)
		must.Do(t, f.Verify(testSchema, uint64(len(w.rows)), false))
		_, redo := must.Get2((&Tracker{Redo: []*File{f}}).Collect(0, len(w.rows), mvcc.Everything))(t)
		sameDeltas(t, "flushed", redo, held)
		if stats.Max != m.MaxTimestamp() || stats.Deletes != m.Deleted() || f.Len() != int64(m.Len()) {
			t.Fatalf("statistics %+v of a store with %d changes", stats, m.Len())
		}
	})
}
