package delta

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// run is what a window took of one cblock: picks [from, to).
type run struct {
	b        *deltaBlock
	from, to int
}

// pick is a delta that decides about a cell. Of a row's deltas in a cblock those are left out all
// of whose columns later ones set. It holds no pointer: a scan of the past has as many of them as
// rows.
type pick struct {
	row    uint32 // within the window
	delta  uint32 // index in the block
	off    uint32 // in the block's lists: the column that was not read yet …
	column uint32 // … and its index in the list
}

// addRun takes what counts of deltas [i, j) of a cblock.
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

// addRow takes what counts of deltas [i, j), which are all those of one row in the cblock.
func (w *Window) addRow(b *deltaBlock, i, j int, undo bool) {
	row := uint32(uint64(b.rows[i]) - w.from)
	existenceKnown, first, before := !b.hasNonUpdates, len(w.picks), false
	taken := -1 // a shape that has nothing more to say about the row; −1 = none yet
	for k := j - 1; k >= i; k-- {
		if int(b.shape[k]) == taken || !counts(b.ts[k], w.snap, undo) {
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
	// They were taken from the last back, and are applied from the first on.
	for l, r := first, len(w.picks)-1; l < r; l, r = l+1, r-1 {
		w.picks[l], w.picks[r] = w.picks[r], w.picks[l]
	}
}

// applyRun puts the cells of a column over v.
func (w *Window) applyRun(r *run, id schema.ColumnID, v *batch.Vector) {
	b, width := r.b, v.Type.Width()
	known, index := -1, -1 // a shape, and where it has the column
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
		// Most columns are the next of their lists, of IDs and sizes of one byte, and not NULL.
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

// index is where the shape has a column, the last time; −1 if it does not.
func (s *shape) index(id schema.ColumnID) int {
	for i := len(s.ids) - 1; i >= 0; i-- {
		if s.ids[i] == id {
			return i
		}
	}
	return -1
}

// cell reads the cell of the column with that index in the list. Columns are mostly asked for in
// the order of the list.
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
