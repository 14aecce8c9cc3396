package delta

import "github.com/oribi-db/oribi/mvcc"

// depths describes the deltas of a block by their position within their row: list[0] describes the
// first delta of each row, list[1] the second delta of each row with more than one. A program that
// changes all rows, one after another, gives the deltas of each time one position. Reads of times
// between them then need not look at the timestamps of the rows.
//
// The first and the last entry do not count, because neighboring cblocks may contain deltas of the
// same rows.
type depths struct {
	least, most int // deltas that each entry has, and that some entry has; 0 if no entry counts
	list        []depth
}

// depth describes the deltas of one position.
type depth struct {
	oldest, newest mvcc.Timestamp
	shape          int // of all of them; −1 if they have several
}

// maxDepths limits the memory of depths. A cblock with 16 changes of each row has about 3000
// deltas.
const maxDepths = 32

// set describes deltas by entry, with their timestamps and shapes. Entry k has the deltas
// [first[k], first[k+1]).
func (d *depths) set(first []uint32, ts []uint64, shapes []uint32) {
	*d = depths{list: d.list[:0]}
	for k := 1; k < len(first)-2; k++ {
		i, j := int(first[k]), int(first[k+1])
		if d.most = max(d.most, j-i); k == 1 {
			d.least = j - i
		}
		d.least = min(d.least, j-i)
		for n := range min(j-i, maxDepths) {
			t, shape := mvcc.Timestamp(ts[i+n]), int(shapes[i+n])
			if n == len(d.list) {
				d.list = append(d.list, depth{t, t, shape})
				continue
			}
			at := &d.list[n]
			at.oldest, at.newest = min(at.oldest, t), max(at.newest, t)
			if at.shape != shape {
				at.shape = -1
			}
		}
	}
}

// applied returns n if it is known that in each entry that counts the first n deltas apply, or all
// of them if the entry has fewer.
func (d *depths) applied(snap mvcc.Snapshot, undo bool) (n int, known bool) {
	for _, at := range d.list {
		oldest, newest := applies(at.oldest, snap, undo), applies(at.newest, snap, undo)
		if !oldest || !newest {
			return n, !oldest && !newest
		}
		n++
	}
	return n, n == d.most
}

// same returns the shape of delta n−1 of each entry that counts; −1 if they have several, or some
// entry has fewer deltas.
func (d *depths) same(n int) int {
	if n == 0 || n > min(d.least, len(d.list)) {
		return -1
	}
	return d.list[n-1].shape
}
