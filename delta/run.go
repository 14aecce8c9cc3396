package delta

import (
	"encoding/binary"
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

// addRun adds those deltas of entries [k, end) of a cblock that apply to the snapshot. With onlyRows it
// may leave out entries without a delete or reinsert.
func (w *Window) addRun(b *deltaBlock, k, end int, undo, onlyRows bool) {
	oldest, newest := applies(b.oldest, w.snap, undo), applies(b.newest, w.snap, undo)
	if !oldest && !newest {
		return
	}
	w.seen = w.seen.Resize(len(b.columns))
	w.met = w.met.Resize(len(b.shapes))
	r := run{b: b, from: len(w.picks), shape: -1}
	if onlyRows {
		first, _ := slices.BinarySearch(b.nonUpdates, uint32(k))
		last, _ := slices.BinarySearch(b.nonUpdates, uint32(end))
		for _, e := range b.nonUpdates[first:last] {
			w.addEntries(b, int(e), int(e)+1, undo, oldest && newest)
		}
	} else {
		w.addEntriesOf(b, k, end, undo, oldest && newest)
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

// addEntriesOf adds the deltas that apply of entries [k, end), of which at least one does; all says
// that all do.
func (w *Window) addEntriesOf(b *deltaBlock, k, end int, undo, all bool) {
	inner, last := min(max(k, 1), end), min(max(b.entries-1, k), end) // those in between count in b.depths
	if last <= inner {
		w.addEntries(b, k, end, undo, all)
		return
	}
	n, known := b.depths.applied(w.snap, undo)
	at := b.depths.same(n)
	if !known || n > 0 && (at < 0 || !b.shapes[at].all) {
		w.addEntries(b, k, end, undo, all)
		return
	}
	w.addEntries(b, k, inner, undo, all)
	if n > 0 {
		w.addSame(b, inner, last, n, at)
	}
	w.addEntries(b, last, end, undo, all)
}

// addSame adds delta n−1 of each of the entries [k, end), which replaces those before it. All have
// the same shape.
func (w *Window) addSame(b *deltaBlock, k, end, n, at int) {
	w.some = true
	w.met.Set(at)
	w.entryRows = b.rows.read(w.entryRows, k, end-k)
	w.entryFirst = b.first.read(w.entryFirst, k, end-k)
	w.entryStarts = b.starts.gather(w.entryStarts, w.entryFirst, n-1)
	from, rows := uint32(w.from), w.entryRows
	if s := &b.shapes[at]; s.kind == change.Delete || len(b.nonUpdates) > 0 && w.deleted {
		for _, row := range rows {
			w.setDead(int(row-from), s.kind == change.Delete)
		}
	}
	w.picks = slices.Grow(w.picks, len(rows))
	picks, first, starts := w.picks[len(w.picks):][:len(rows)], w.entryFirst[:len(rows)], w.entryStarts[:len(rows)]
	for e := range picks {
		picks[e] = pick{row: rows[e] - from, delta: first[e] + uint32(n-1), off: starts[e] + 1}
	}
	w.picks = w.picks[:len(w.picks)+len(rows)]
}

// addEntries adds the deltas that apply of entries [k, end); all says that all do.
func (w *Window) addEntries(b *deltaBlock, k, end int, undo, all bool) {
	if k == end {
		return
	}
	w.entryRows = b.rows.read(w.entryRows, k, end-k)
	w.entryFirst = b.first.read(w.entryFirst, k, end-k+1)
	bound, applied, from := b.keyBound(w.snap), 0, uint32(w.from)
	next, ends := int(w.entryFirst[0]), w.entryFirst[1:]
	for e, row := range w.entryRows {
		i, j := next, int(ends[e])
		next = j
		if !all {
			j = b.appliedEnd(i, j, i+applied, bound, undo)
			if applied = j - i; applied == 0 {
				continue
			}
		}
		w.some = true
		at := b.shape.at(j - 1)
		s := &b.shapes[at]
		// The last delta determines whether the row exists. This assumes what writers ensure: a row
		// that does not exist is neither updated nor deleted, so no update comes right after a
		// delete.
		if s.kind == change.Delete || len(b.nonUpdates) > 0 && w.deleted {
			w.setDead(int(row-from), s.kind == change.Delete)
		}
		if s.all {
			w.take(b, row-from, j-1, at)
		} else if len(b.columns) > 0 {
			w.takeColumns(b, row-from, i, j)
		}
	}
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
	if known >= 0 && !w.deleted && width == 8 {
		picks = picks[applyPlain(picks, b.lists, uint32(index), v):]
	}
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

// applyPlain is applyRun for cells of eight bytes that are the next ones in their lists, with ID
// and size of one byte each. It returns the number of picks before the first pick with another size
// or order.
func applyPlain(picks []pick, lists []byte, index uint32, v *batch.Vector) int {
	const width = 8
	data, present := v.Data, v.Present
	for i := range picks {
		p := &picks[i]
		l := lists[p.off:]
		if p.column != index || len(l) < width+2 || binary.LittleEndian.Uint16(l)&0xff80 != (width+1)<<8 {
			return i
		}
		binary.LittleEndian.PutUint64(data[int(p.row)*width:], binary.LittleEndian.Uint64(l[2:]))
		if present != nil {
			present.Set(int(p.row))
		}
		p.off, p.column = p.off+width+2, index+1
	}
	return len(picks)
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
