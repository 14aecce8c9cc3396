package memrowset

import (
	"bytes"

	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
)

// walker returns the items of one snapshot of the tree, in ascending or descending order.
type walker struct {
	m            *MemRowSet
	tree         *tree
	lower, upper []byte // keys in [lower, upper); nil = no bound
	lowerPrefix  uint64
	upperPrefix  uint64
	descending   bool
	begun, ended bool
	last         item   // the last one returned, valid once begun
	items        []item // reused
}

// newWalker returns a walker over the items with keys in [lower, upper), which belong to it.
func (m *MemRowSet) newWalker(lower, upper []byte, descending bool) walker {
	return walker{m: m, tree: m.snapshot(), lower: lower, upper: upper,
		lowerPrefix: keyenc.Head(lower), upperPrefix: keyenc.Head(upper), descending: descending}
}

// next returns up to max items, none at the end. They are valid until the next call.
func (w *walker) next(max int) []item {
	w.collect(max)
	if n := len(w.items); n > 0 {
		w.begun, w.last = true, w.items[n-1]
	}
	return w.items
}

// collect sets items to the next ones, up to max of them, and does not advance.
func (w *walker) collect(max int) {
	w.items = w.items[:0]
	if w.ended {
		return
	}
	take := func(it item) bool {
		if w.begun && it == w.last {
			return true // where the last call stopped
		}
		switch {
		case w.descending && w.upper != nil && !w.begun && !w.m.before(it, w.upperPrefix, w.upper):
			return true // upper itself
		case w.descending && w.lower != nil && w.m.before(it, w.lowerPrefix, w.lower),
			!w.descending && w.upper != nil && !w.m.before(it, w.upperPrefix, w.upper):
			w.ended = true
			return false
		}
		w.items = append(w.items, it)
		return len(w.items) < max
	}
	w.walk(take)
	if len(w.items) < max {
		w.ended = true
	}
}

// until moves the end of the walk to key; nil means no end. The key belongs to w.
func (w *walker) until(key []byte) {
	if w.descending {
		w.lower, w.lowerPrefix = key, keyenc.Head(key)
	} else {
		w.upper, w.upperPrefix = key, keyenc.Head(key)
	}
	w.ended = false
}

// seek skips items before key, in the walker's order, that were not returned yet.
func (w *walker) seek(key []byte) {
	if w.descending {
		upper := append(bytes.Clone(key), 0) // the least key above key
		prefix := keyenc.Head(upper)
		if w.begun && w.m.before(w.last, prefix, upper) ||
			!w.begun && w.upper != nil && bytes.Compare(w.upper, upper) <= 0 {
			return
		}
		w.upper, w.upperPrefix, w.begun = upper, prefix, false
		return
	}
	prefix := keyenc.Head(key)
	if w.begun && !w.m.before(w.last, prefix, key) || !w.begun && w.lower != nil && bytes.Compare(w.lower, key) >= 0 {
		return
	}
	w.lower, w.lowerPrefix, w.begun = bytes.Clone(key), prefix, false
}

// walk calls take with the items from the position of the last call on.
func (w *walker) walk(take func(it item) bool) {
	switch {
	case w.begun && w.descending:
		w.tree.descendFrom(w.last, take)
	case w.begun:
		w.tree.ascendFrom(w.last, take)
	case w.descending && w.upper != nil:
		w.m.withProbe(w.upper, func(probe item) { w.tree.descendFrom(probe, take) })
	case w.descending:
		w.tree.descend(take)
	case w.lower != nil:
		w.m.withProbe(w.lower, func(probe item) { w.tree.ascendFrom(probe, take) })
	default:
		w.tree.ascend(take)
	}
}

// Iterator returns the rows that are visible in one snapshot. Not for concurrent use; it needs no
// Close.
type Iterator struct {
	walker
	snap mvcc.Snapshot
	span *span   // only rows with a change in it are returned; nil = all rows
	from *Shared // where the rows come from instead of the walker; nil = none
	keys [][]byte
	rows [][]byte
	buf  []byte // images built for this call
}

// NewIterator returns an iterator over the rows with keys in [lower, upper) in snap; a nil bound is
// open, and the others must not be changed. All batches below snap have been applied. The iterator
// ignores rows that are inserted later, since they are at or above snap.
func (m *MemRowSet) NewIterator(snap mvcc.Snapshot, lower, upper []byte, descending bool) *Iterator {
	return &Iterator{walker: m.newWalker(lower, upper, descending), snap: snap}
}

// Reset makes it the iterator that m.NewIterator returns, and keeps its memory. If m is nil, it can
// only be reset, and refers to no row.
func (it *Iterator) Reset(m *MemRowSet, snap mvcc.Snapshot, lower, upper []byte, descending bool) {
	clear(it.keys[:cap(it.keys)])
	clear(it.rows[:cap(it.rows)])
	items, keys, rows := it.items[:0], it.keys[:0], it.rows[:0]
	*it = Iterator{snap: snap, keys: keys, rows: rows}
	if m != nil {
		it.walker = m.newWalker(lower, upper, descending)
	}
	it.items = items
}

// more returns up to max items that no other iterator of the same rows has.
func (it *Iterator) more(max int) []item {
	if it.from != nil {
		it.items = it.from.take(it.items[:0], max)
		return it.items
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
		items := it.more(max - len(it.rows))
		if len(items) == 0 {
			break
		}
		for _, at := range items {
			if it.span != nil && !it.m.changedIn(at.ref, it.span) {
				continue
			}
			row, buf, live := it.m.rowAt(at.ref, it.snap, it.buf)
			it.buf = buf
			if live {
				it.keys = append(it.keys, it.m.header(at.ref).key())
				it.rows = append(it.rows, row)
			}
		}
	}
	if len(it.rows) == 0 {
		return nil, nil
	}
	return it.keys, it.rows
}
