package memrowset

import (
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
)

// Iterator returns the rows that are visible in one snapshot. Not for concurrent use; it needs no
// Close.
type Iterator struct {
	walker
	span *span   // only rows with a change in it are returned; nil = all rows
	from *Shared // where the rows come from instead of the walker; nil = none
	keys [][]byte
	rows [][]byte
	buf  []byte // images built for this call

	taken []arena.Ref // from from
}

// NewIterator returns an iterator over the rows with keys in [lower, upper) in snap; a nil bound is
// open, and the others must not be changed. All batches below snap have been applied. The iterator
// ignores rows that are inserted later, since they are at or above snap.
func (m *MemRowSet) NewIterator(snap mvcc.Snapshot, lower, upper []byte, descending bool) *Iterator {
	it := &Iterator{walker: m.newWalker(snap, lower, upper, descending)}
	it.look.learn(m)
	return it
}

// Reset makes it the iterator that m.NewIterator returns, and keeps its memory. If m is nil, it can
// only be reset, and refers to no row.
func (it *Iterator) Reset(m *MemRowSet, snap mvcc.Snapshot, lower, upper []byte, descending bool) {
	clear(it.keys[:cap(it.keys)])
	clear(it.rows[:cap(it.rows)])
	clear(it.path[:cap(it.path)])
	path, keys, rows := it.path[:0], it.keys[:0], it.rows[:0]
	*it = Iterator{keys: keys, rows: rows}
	if m != nil {
		it.walker = m.newWalker(snap, lower, upper, descending)
		it.look.learn(m)
	}
	it.path = path
}

// more returns up to max rows that no other iterator of the same rows has, as next does.
func (it *Iterator) more(max int) []arena.Ref {
	if it.from != nil {
		it.taken = it.from.take(it.taken[:0], max)
		return it.taken
	}
	return it.next(max)
}

// Seek skips rows that were not returned yet: those with keys below key, or above key if the
// iterator descends. It never goes back.
func (it *Iterator) Seek(key []byte) { it.seek(key) }

// Until moves the end of the range to key, which must not be changed afterwards: the iterator
// returns rows with keys below key or, if it descends, not below key. A nil key is no bound. The
// end may move in either direction, so a caller can read a range in pieces.
func (it *Iterator) Until(key []byte) { it.until(key) }

// Next returns the keys and the images of the next visible rows, up to max of them, in the
// iterator's order; nil, nil at the end. Both slices are valid until the next call; keys and images
// are never overwritten. All are read-only.
func (it *Iterator) Next(max int) (keys, rows [][]byte) {
	it.keys, it.rows, it.buf = it.keys[:0], it.rows[:0], nil
	for len(it.rows) < max {
		refs := it.more(max - len(it.rows))
		if len(refs) == 0 {
			break
		}
		before := len(it.rows)
		for i := range refs {
			ref := refs[i]
			if it.descending {
				ref = refs[len(refs)-1-i]
			}
			if it.span != nil && !it.m.changedIn(ref, it.span) {
				continue
			}
			h := it.m.header(ref)
			if h.newest() == 0 && it.snap.Sees(h.ts()) { // as most rows
				key, row := h.inserted()
				it.keys, it.rows = append(it.keys, key), append(it.rows, row)
				continue
			}
			row, buf, live := it.m.rowAt(h, it.snap, it.buf)
			it.buf = buf
			if live {
				it.keys = append(it.keys, h.key())
				it.rows = append(it.rows, row)
			}
		}
		it.looked(refs, len(it.rows) == before)
	}
	if len(it.rows) == 0 {
		return nil, nil
	}
	return it.keys, it.rows
}
