package delta

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Overlay has the rows of a rowset in which a column was changed, and their cells, in one state of
// the stores that a Window has called settled. It is immutable. A Window that uses overlays visits
// no store: scans that are repeated while nothing changes do not look for the same changes again.
type Overlay struct {
	rows   []uint32     // ascending
	cells  batch.Vector // of rows; of fixed width, or empty if rows are dead rows
	starts []uint32     // the number of rows before each window of batch.WindowRows; the last one is len(rows)
	diffs  []int64      // of each row, see Window.Differences; nil if they are not known
}

// NewOverlay returns the overlay of rows of a rowset that has total rows. cells and base are their
// cells and the cells that the base has, as many as rows. Both are nil for the overlay of deleted
// rows, base also for cells that are not integers. The overlay keeps rows and cells.
func NewOverlay(rows []uint32, cells, base *batch.Vector, total int64) *Overlay {
	o := &Overlay{rows: rows}
	windows := int((total + batch.WindowRows - 1) / batch.WindowRows)
	o.starts = make([]uint32, windows+1)
	for _, row := range rows {
		o.starts[row/batch.WindowRows+1]++
	}
	for i := range windows {
		o.starts[i+1] += o.starts[i]
	}
	if cells != nil {
		o.cells = *cells
	}
	if base == nil {
		return o
	}
	diffs := make([]int64, len(rows))
	for i := range diffs {
		if cells.IsNull(i) || base.IsNull(i) {
			return o
		}
		a, b := batch.Int128OfCell(cells.Type, cells.Cell(i)), batch.Int128OfCell(base.Type, base.Cell(i))
		lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
		if diffs[i] = int64(lo); a.Hi-b.Hi-int64(borrow) != diffs[i]>>63 {
			return o
		}
	}
	o.diffs = diffs
	return o
}

// Bytes returns the size of o in memory.
func (o *Overlay) Bytes() int64 {
	const header = 192
	return header + 4*int64(cap(o.rows)+cap(o.starts)) + 8*int64(cap(o.diffs)+len(o.cells.Present)) +
		int64(cap(o.cells.Data))
}

// within returns which of the rows are in [from, to).
func (o *Overlay) within(from, to uint64) (lo, hi int) {
	last := uint64(len(o.starts) - 1)
	first, end := min(from/batch.WindowRows, last), min((to+batch.WindowRows-1)/batch.WindowRows, last)
	lo, hi = int(o.starts[first]), int(o.starts[end])
	if from%batch.WindowRows != 0 {
		n, _ := slices.BinarySearch(o.rows[lo:hi], uint32(from))
		lo += n
	}
	if to%batch.WindowRows != 0 {
		n, _ := slices.BinarySearch(o.rows[lo:hi], uint32(to))
		hi = lo + n
	}
	return lo, hi
}

// overlaid is the overlay of a column in a Window.
type overlaid struct {
	id     schema.ColumnID
	o      *Overlay
	lo, hi int // of its rows, those in the current window
}

// memStores is the number of MemStores that were made.
var memStores atomic.Uint32

// Settled reports whether the snapshot sees all changes in files, and those in the MemStore if the
// window has it. Then version is a number of the state of the MemStore, different from the number
// of any other state of any MemStore; 0 if the window has none. The files, which the caller knows, and version determine
// what the window has for this snapshot and for all later ones that are settled with the same
// version. changed are those of columns that some store may change, and changes is at least the
// number of rows that have changes.
func (w *Window) Settled(columns []schema.ColumnID) (
	version uint64, changed []schema.ColumnID, changes int64, ok bool,
) {
	if w.later || w.births != nil || len(w.files) == 0 && w.mem == nil {
		return 0, nil, 0, false
	}
	var all []*Stats
	for i := range w.files {
		f := &w.files[i]
		if f.undo {
			return 0, nil, 0, false
		}
		changes += f.file.Len()
		all = append(all, &f.file.stats)
	}
	replaced := false
	if m := w.mem; m != nil {
		m.mu.RLock()
		defer m.mu.RUnlock()
		if !w.snap.Sees(m.stats.Max) {
			return 0, nil, 0, false
		}
		changes += int64(m.rows.Len()) + m.runRows
		version, replaced = uint64(m.id)<<32|uint64(uint32(m.count)), m.replaced
		all = append(all, &m.stats)
	}
	for _, id := range columns {
		if replaced || slices.ContainsFunc(all, func(s *Stats) bool { return s.Updates(id) > 0 }) {
			changed = append(changed, id)
		}
	}
	return version, slices.Compact(changed), changes, true
}

// Overlay makes w use overlays instead of its stores: dead, of the deleted rows, and those of all
// columns that some store changes. They must have been made from a window that was settled with the
// same version and the same files.
func (w *Window) Overlay(ids []schema.ColumnID, columns []*Overlay, dead *Overlay) {
	w.clear()
	w.deadRows, w.overlays = dead, w.overlays[:0]
	for i, id := range ids {
		w.overlays = append(w.overlays, overlaid{id: id, o: columns[i]})
	}
}

// prepareOverlays is Prepare for a window that uses overlays.
func (w *Window) prepareOverlays() {
	to := w.from + uint64(w.n)
	for i := range w.overlays {
		c := &w.overlays[i]
		c.lo, c.hi = c.o.within(w.from, to)
		w.some = w.some || c.hi > c.lo
	}
	lo, hi := w.deadRows.within(w.from, to)
	for _, row := range w.deadRows.rows[lo:hi] {
		w.some = true
		w.setDead(int(uint64(row)-w.from), true)
	}
}

// overlay returns the overlay of a column that has rows of the window; nil if none has.
func (w *Window) overlay(id schema.ColumnID) *overlaid {
	for i := range w.overlays {
		if c := &w.overlays[i]; c.id == id && c.hi > c.lo {
			return c
		}
	}
	return nil
}

// apply overwrites the cells in v, of rows from row from on.
func (c *overlaid) apply(from uint64, v *batch.Vector) {
	rows := c.o.rows[c.lo:c.hi]
	if v.Present != nil || c.o.cells.Present != nil || v.Type.Width() != 8 || v.Dict != nil {
		for i, row := range rows {
			v.SetCell(int(uint64(row)-from), c.o.cells.Cell(c.lo+i))
		}
		return
	}
	dst, src := v.Data, c.o.cells.Data[8*c.lo:8*c.hi]
	for i, row := range rows {
		at := 8 * int(uint64(row)-from)
		*(*[8]byte)(dst[at:]) = [8]byte(src[8*i:])
	}
}

// Differences returns the rows of the window, ascending, in which a column of integers was changed,
// and the new cell of each, less the cell of the base. ok is false if they are not known.
// Read-only.
func (w *Window) Differences(id schema.ColumnID) (rows []uint32, diffs []int64, ok bool) {
	c := w.overlay(id)
	if c == nil || c.o.diffs == nil {
		return nil, nil, false
	}
	return c.o.rows[c.lo:c.hi], c.o.diffs[c.lo:c.hi], true
}
