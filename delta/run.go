package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// run is the result of applying one cblock to a window: picks [from, to).
type run struct {
	b        *deltaBlock
	from, to int
}

// pick is a delta whose cells are applied. Of the deltas of a row in a cblock, those are omitted
// whose columns are all set by later ones. It has no pointer, because a scan of the past has as
// many picks as rows.
type pick struct {
	row    uint32 // within the window
	delta  uint32 // index in the block
	off    uint32 // in the block's lists: the first column that was not read …
	column uint32 // … and its index in the list
}

// addRun adds the deltas [i, j) of a cblock that apply to the snapshot.
func (w *Window) addRun(b *deltaBlock, i, j int, undo bool) {
	w.seen = w.seen.Resize(len(b.columns))
	w.met = w.met.Resize(len(b.shapes))
	r := run{b: b, from: len(w.picks)}
	for i < j {
		end := i + 1
		for end < j && b.rows[end] == b.rows[i] {
			end++
		}
		w.addRow(b, i, end, undo)
		i = end
	}
	if r.to = len(w.picks); r.to > r.from {
		w.runs = append(w.runs, r)
	}
	for i := w.met.Next(0); i >= 0; i = w.met.Next(i + 1) {
		for _, id := range b.shapes[i].ids {
			w.column(id)
		}
	}
}

// addRow adds those of deltas [i, j) that apply; they are all deltas of one row in the cblock.
func (w *Window) addRow(b *deltaBlock, i, j int, undo bool) {
	row := uint32(uint64(b.rows[i]) - w.from)
	existenceKnown, first, before := !b.hasNonUpdates, len(w.picks), false
	taken := -1 // a shape whose columns newer deltas of the row have already set; −1 = none
	for k := j - 1; k >= i; k-- {
		if int(b.shape[k]) == taken || !applies(b.ts[k], w.snap, undo) {
			continue
		}
		w.some = true
		at := b.shape[k]
		s := &b.shapes[at]
		if !existenceKnown && s.kind != change.Update {
			existenceKnown = true
			w.setDead(int(row), s.kind == change.Delete)
		}
		if len(s.ids) == 0 || before && s.covers(w.seen) {
			continue
		}
		if s.kind == change.Update {
			taken = int(at)
		}
		if !before {
			before = true
			copy(w.seen, s.set)
		} else {
			for i, word := range s.set {
				w.seen[i] |= word
			}
		}
		w.met.Set(int(at))
		w.picks = append(w.picks, pick{row: row, delta: uint32(k), off: b.starts[k] + 1})
	}
	// They were found newest first, and are applied oldest first.
	for l, r := first, len(w.picks)-1; l < r; l, r = l+1, r-1 {
		w.picks[l], w.picks[r] = w.picks[r], w.picks[l]
	}
}

// applyRun overwrites cells of v with the cells of a column in the run.
func (w *Window) applyRun(r *run, id schema.ColumnID, v *batch.Vector) {
	b, width := r.b, v.Type.Width()
	known, index := -1, -1 // a shape, and the index of the column in it
	for i := r.from; i < r.to; i++ {
		p := &w.picks[i]
		if w.deleted && w.dead.Get(int(p.row)) {
			continue
		}
		if at := int(b.shape[p.delta]); at != known {
			known, index = at, b.shapes[at].index(id)
		}
		if index < 0 {
			continue
		}
		// Most columns are the next one in their list, with ID and size of one byte each, and not
		// NULL.
		if l := b.lists[p.off:]; p.column == uint32(index) && l[0] < 0x80 && int(l[1]) == width+1 && width > 1 {
			at := int(p.row) * width
			if cell, place := l[2:2+width], v.Data[at:at+width]; width == 8 {
				*(*[8]byte)(place) = [8]byte(cell)
			} else {
				copy(place, cell)
			}
			if v.Present != nil {
				v.Present.Set(int(p.row))
			}
			p.off, p.column = p.off+uint32(width)+2, p.column+1
			continue
		}
		v.SetCell(int(p.row), p.cell(b, index))
	}
}

// addTouchedOf is AddTouched for one run.
func (w *Window) addTouchedOf(r *run, id schema.ColumnID, rows batch.Bitmap) {
	known, sets := -1, false // a shape, and whether it sets the column
	for _, p := range w.picks[r.from:r.to] {
		if at := int(r.b.shape[p.delta]); at != known {
			known, sets = at, r.b.shapes[at].index(id) >= 0
		}
		if sets && !(w.deleted && w.dead.Get(int(p.row))) {
			rows.Set(int(p.row))
		}
	}
}

// index returns the last index of the column in the shape; −1 if it has none.
func (s *shape) index(id schema.ColumnID) int {
	for i := len(s.ids) - 1; i >= 0; i-- {
		if s.ids[i] == id {
			return i
		}
	}
	return -1
}

// cell returns the cell of the column with that index in the list. Columns are mostly read in the
// order of the list.
func (p *pick) cell(b *deltaBlock, index int) []byte {
	if uint32(index) < p.column {
		p.off, p.column = b.starts[p.delta]+1, 0
	}
	end := b.starts[p.delta+1]
	columns := change.ColumnsAt(b.lists[p.off:end:end])
	for {
		_, cell, _ := columns.Next()
		p.column++
		if p.column > uint32(index) {
			p.off = end - uint32(columns.Left())
			return cell
		}
	}
}
