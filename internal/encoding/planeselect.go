package encoding

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
)

// planeWork is the memory of a computation on the planes of a payload.
type planeWork struct {
	test  planeTest
	part  planeView // of the values at hand; here, since calls of functions would move it to the heap
	view  viewBuffer
	group cellGroup
	sel   [maxWords]uint64
	selections
}

var planeWorks = sync.Pool{New: func() any { return new(planeWork) }}

// Select tests planes and decodes no cell. It leaves predicates that are not comparisons with a few
// numbers to the caller.
func (b *shuffled) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	one := [1]*batch.Predicate{p}
	return b.SelectAll(one[:], from, n, sel, at)
}

func (b *shuffled) SelectAll(ps []*batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	return b.selectCounted(ps, from, n, sel, at, nil)
}

// SelectCounted is Select. It counts the values that constant planes decide.
func (b *shuffled) SelectCounted(p *batch.Predicate, from, n int, sel batch.Bitmap, at int,
	c *batch.TestCounts) (bool, error) {
	one := [1]*batch.Predicate{p}
	return b.selectCounted(one[:], from, n, sel, at, c)
}

// selectCounted is SelectAll. If c is not nil, it counts the values that constant planes decide.
func (b *shuffled) selectCounted(ps []*batch.Predicate, from, n int, sel batch.Bitmap, at int,
	c *batch.TestCounts) (bool, error) {
	if len(ps) == 1 && selectAll(ps[0], n, sel, at) {
		return true, nil
	}
	w := planeWorks.Get().(*planeWork)
	defer planeWorks.Put(w)
	if !w.test.compileAll(ps, b.typ) {
		return false, nil
	}
	return true, b.filter(w, from, n, sel, at, c)
}

// filter clears the bits in [at, at+n) of sel whose values, from value from on, do not pass w.test.
// If c is not nil, it counts the values that constant planes decide.
func (b *shuffled) filter(w *planeWork, from, n int, sel batch.Bitmap, at int, c *batch.TestCounts) error {
	chunks := 0 // that are tested one by one
	for n > 0 {
		k := b.restOfChunk(from, n)
		if chunks == 0 && c == nil {
			if chunks = b.runOf(from, n, at); chunks > 1 {
				done, err := b.filterRun(w, from, chunks, sel, at)
				if err != nil {
					return err
				}
				if done {
					k = chunks << b.shift
					from, n, at, chunks = from+k, n-k, at+k, 0
					continue
				}
			}
		}
		chunks--
		if sel.AnyRange(at, at+k) {
			if err := b.viewPart(&w.part, from, k, &w.view); err != nil {
				return err
			}
			cells := w.align(from, k, sel, at)
			if err := w.test.checkCodes(&w.part, cells, &w.selections); err != nil {
				return err
			}
			selected := 0
			if c != nil {
				selected = batch.Bitmap(cells).Count()
			}
			w.part.visited = false
			w.test.filter(&w.part, cells, &w.selections)
			if c != nil && !w.part.visited {
				c.Planes += int64(selected)
			}
			w.alignBack(from, k, sel, at)
		}
		from, n, at = from+k, n-k, at+k
	}
	return nil
}

// filterRun is filter for a run of chunks. It reports whether w.test is one pass over their planes.
func (b *shuffled) filterRun(w *planeWork, from, chunks int, sel batch.Bitmap, at int) (done bool, err error) {
	n := chunks << b.shift
	if !w.test.once() {
		return false, nil
	}
	if !sel.AnyRange(at, at+n) {
		return true, nil
	}
	v := &w.part
	if err := b.viewRun(v, from, chunks, &w.view); err != nil {
		return false, err
	}
	if w.test.codes != 0 && v.ones.or(v.mixed()).lo >= w.test.codes {
		return false, nil
	}
	w.test.filter(v, sel[at>>6:(at+n)>>6], &w.selections)
	return true, nil
}

// restOfChunk returns how many of values [from, from+n) are in the same chunk as value from.
func (b *shuffled) restOfChunk(from, n int) int {
	return min(n, 1<<b.shift-from&(1<<b.shift-1))
}

// viewPart sets v to the view of values [from, from+n), which are in one chunk, and of up to 7
// values before them: it begins with a whole byte of the planes. It is valid until buf is used
// again.
func (b *shuffled) viewPart(v *planeView, from, n int, buf *viewBuffer) (err error) {
	i := from >> b.shift
	if w := b.walk.Load(); w != nil && w.chunks[i].found {
		c := &w.chunks[i]
		v.base, v.row, v.width, v.ones, v.refs = b.stream(i), b.chunkCells(i)/8, b.width, c.ones, w.refs[c.first:][:c.n]
		v.offsets = nil
	} else if *v, err = b.view(i, buf); err != nil {
		return err
	}
	if lead := from & 7; lead+n < 8*v.row {
		*v = v.part(from&(1<<b.shift-1)-lead, lead+n)
	}
	return nil
}

// align returns bits [at, at+n) of sel as a selection of the cells of viewPart(from, n): part of
// sel itself if possible, otherwise a copy.
func (w *planeWork) align(from, n int, sel batch.Bitmap, at int) []uint64 {
	if aligned(from, n, at) {
		return sel[at>>6 : (at+n)>>6]
	}
	lead := from & 7
	cells := w.sel[:(lead+n+63)/64]
	CopyBits(cells, sel, at-lead, lead+n)
	cells[0] &^= lowBits(lead)
	return cells
}

// alignBack clears the bits in [at, at+n) of sel that are 0 in the selection that align returned.
func (w *planeWork) alignBack(from, n int, sel batch.Bitmap, at int) {
	if !aligned(from, n, at) {
		keepBits(sel, at, w.sel[:], from&7, n)
	}
}

// aligned reports whether whole words of a selection, from bit at on, correspond to n values.
func aligned(from, n, at int) bool { return (from&7 | at&63 | n&63) == 0 }

// keepBits clears the bits in [at, at+n) of dst for which bits [from, from+n) of keep are 0.
func keepBits(dst batch.Bitmap, at int, keep []uint64, from, n int) {
	for n > 0 {
		k := min(n, 64-at&63, 64-from&63)
		dst[at>>6] &^= ^keep[from>>6] >> (from & 63) << (64 - k) >> (64 - k - at&63)
		at, from, n = at+k, from+k, n-k
	}
}
