package rowset

import (
	"errors"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
)

// aheadRows is the number of rows that a consumer is offered at once. Their filter needs a selection
// of 8 KiB, but no cells.
const aheadRows = 16 * batch.WindowRows

// errDecode is the error of filter for rows that are more than a window, if it would have to decode
// them.
var errDecode = errors.New("rowset: the filter needs decoded cells")

// ahead is rows that were tested together, before they are read in windows.
type ahead struct {
	from, to batch.Ordinal
	sel      batch.Bitmap // those for which the filter is true
	off      bool         // the filter needs decoded cells
}

// looksAhead reports whether the next rows, up to to, are offered to the consumer together: up to
// aheadRows of them, if no change applies to them or the window has the changes in overlays. Testing
// and adding up stored values takes little more than the fixed work for each window.
func (it *Iterator) looksAhead() (to batch.Ordinal, ok bool) {
	a := &it.ahead
	if it.consumer == nil || a.off || it.next < a.to || it.req.Descending() || it.span != nil {
		return 0, false
	}
	to = min(it.end, (it.next/aheadRows+1)*aheadRows)
	return to, it.window.PrepareKnown(it.next, to)
}

// lookAhead tests the next rows, up to to, on stored values and offers them to the consumer. If it does not
// take them, they are read in windows, which are offered too, and are not tested again. If the
// filter needs decoded cells, so are these and all later rows.
func (it *Iterator) lookAhead(to batch.Ordinal) {
	a := &it.ahead
	from := it.next
	n := int(to - from)
	a.sel = a.sel.Resize(n)
	a.sel.SetRange(0, n)
	for _, c := range it.used {
		c.loaded, c.reversed = false, false
	}
	it.from, it.n, it.encoded.sel = from, n, a.sel
	it.counting.mark()
	any, err := it.choose(a.sel)
	switch {
	case errors.Is(err, errDecode):
		it.counting.undo()
		a.off = true
		return
	case err != nil:
		it.err = err
		return
	}
	if any {
		if it.taken, it.err = it.consumer(&it.encoded); !it.taken {
			a.from, a.to = from, to
			return
		}
	}
	it.counting.tookAhead(n, a.sel)
	it.next = to
}

// has reports whether rows [from, from+n) were tested.
func (a *ahead) has(from batch.Ordinal, n int) bool {
	return a.from <= from && from+batch.Ordinal(n) <= a.to
}

// selection sets the first n bits of dst to the results of the tests of rows [from, from+n).
func (a *ahead) selection(from batch.Ordinal, n int, dst batch.Bitmap) {
	encoding.CopyBits(dst, a.sel, int(from-a.from), n)
}
