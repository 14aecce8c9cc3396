package delta

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// run is the result of applying one cblock to a window: picks [from, to).
type run struct {
	b        *deltaBlock
	from, to int
	shape    int // of all picks; −1 if they have several
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

// addRun adds those deltas of entries [k, end) of a cblock that apply to the snapshot.
func (w *Window) addRun(b *deltaBlock, k, end int, undo bool) {
	oldest, newest := applies(b.oldest, w.snap, undo), applies(b.newest, w.snap, undo)
	if !oldest && !newest {
		return
	}
	w.seen = w.seen.Resize(len(b.columns))
	w.met = w.met.Resize(len(b.shapes))
	r := run{b: b, from: len(w.picks), shape: -1}
	w.entryRows = b.rows.read(w.entryRows, k, end-k)
	w.entryFirst = b.first.read(w.entryFirst, k, end-k+1)
	bound, applied, from := b.keyBound(w.snap), 0, uint32(w.from)
	next, ends := int(w.entryFirst[0]), w.entryFirst[1:]
	for e, row := range w.entryRows {
		i, j := next, int(ends[e])
		next = j
		if !oldest || !newest {
			j = b.appliedEnd(i, j, i+applied, bound, undo)
			if applied = j - i; applied == 0 {
				continue
			}
		}
		w.some = true
		at := b.shape.at(j - 1)
		s := &b.shapes[at]
		// The last delta determines whether the row exists. This assumes what writers ensure: a row
		// that does not exist is neither updated nor deleted, so no update comes right after a delete.
		if s.kind == change.Delete || b.hasNonUpdates && w.deleted {
			w.setDead(int(row-from), s.kind == change.Delete)
		}
		if s.all {
			w.take(b, row-from, j-1, at)
		} else if len(b.columns) > 0 {
			w.takeColumns(b, row-from, i, j)
		}
	}
	if r.to = len(w.picks); r.to == r.from {
		return
	}
	for i := w.met.Next(0); i >= 0; i = w.met.Next(i + 1) {
		for _, id := range b.shapes[i].ids {
			w.column(id)
		}
		r.shape = i
	}
	if w.met.Count() > 1 {
		r.shape = -1
	}
	w.runs = append(w.runs, r)
}

// takeColumns adds deltas [i, j) of a row to the picks, without those whose columns are all set by
// later ones.
func (w *Window) takeColumns(b *deltaBlock, row uint32, i, j int) {
	clear(w.seen)
	first := len(w.picks)
	for k := j - 1; k >= i; k-- {
		at := b.shape.at(k)
		s := &b.shapes[at]
		if len(s.ids) == 0 || s.covers(w.seen) {
			continue
		}
		w.take(b, row, k, at)
		if s.all {
			break
		}
		for i, word := range s.set {
			w.seen[i] |= word
		}
	}
	// They were found newest first, and are applied oldest first.
	slices.Reverse(w.picks[first:])
}

// take adds delta k, of that shape, to the picks.
func (w *Window) take(b *deltaBlock, row uint32, k int, shape uint64) {
	w.met.Set(int(shape))
	w.picks = append(w.picks, pick{row: row, delta: uint32(k), off: uint32(b.starts.at(k)) + 1})
}

// applyRun overwrites cells of v with the cells of a column in the run.
func (w *Window) applyRun(r *run, id schema.ColumnID, v *batch.Vector) {
	b, width := r.b, v.Type.Width()
	known, index := r.shape, -1 // a shape, and the index of the column in it
	if known >= 0 {
		index = b.shapes[known].index(id)
		if index < 0 {
			return
		}
	}
	picks := w.picks[r.from:r.to]
	for i := range picks {
		p := &picks[i]
		if w.deleted && w.dead.Get(int(p.row)) {
			continue
		}
		if r.shape < 0 {
			if at := int(b.shape.at(int(p.delta))); at != known {
				known, index = at, b.shapes[at].index(id)
			}
			if index < 0 {
				continue
			}
		}
		// Most columns are the next one in their list, with ID and size of one byte each, and not
		// NULL.
		l := b.lists[p.off:]
		if p.column != uint32(index) || l[0] >= 0x80 || int(l[1]) != width+1 || width <= 1 {
			v.SetCell(int(p.row), p.cell(b, index))
			continue
		}
		switch l, at := l[2:], int(p.row)*width; width {
		case 8:
			*(*[8]byte)(v.Data[at:]) = [8]byte(l)
		case 4:
			*(*[4]byte)(v.Data[at:]) = [4]byte(l)
		default:
			copy(v.Data[at:at+width], l[:width])
		}
		if v.Present != nil {
			v.Present.Set(int(p.row))
		}
		p.off, p.column = p.off+uint32(width)+2, p.column+1
	}
}

// addTouchedOf is AddTouched for one run.
func (w *Window) addTouchedOf(r *run, id schema.ColumnID, rows batch.Bitmap) {
	known, sets := -1, false // a shape, and whether it sets the column
	for _, p := range w.picks[r.from:r.to] {
		if at := int(r.b.shape.at(int(p.delta))); at != known {
			known, sets = at, r.b.shapes[at].index(id) >= 0
		}
		if sets && !(w.deleted && w.dead.Get(int(p.row))) {
			rows.Set(int(p.row))
		}
	}
}

// cell returns the cell of the column with that index in the list. Columns are mostly read in the
// order of the list.
func (p *pick) cell(b *deltaBlock, index int) []byte {
	if uint32(index) < p.column {
		p.off, p.column = uint32(b.starts.at(int(p.delta)))+1, 0
	}
	end := uint32(b.starts.at(int(p.delta) + 1))
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
