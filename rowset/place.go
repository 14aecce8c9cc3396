package rowset

import (
	"bytes"
	"sort"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
)

// place finds keys among the rows of the current window, for a merge. It makes as few keys as the
// merge needs, in three steps. The first keys are sought in the key index, which reads nothing of
// the window. If several are in this window, or if the request has read its key columns anyway,
// those are searched. If there are very many, all keys of the window are made at once, and the keys
// of the next window as soon as it is read.
type place struct {
	sought  []byte          // the last key that was searched; empty if none was
	at      batch.Ordinal   // the rows below at, or from at on in a descending scan, come before sought
	uses    int             // keys of this window that were made or searched
	columns []*batch.Vector // the key columns of this window; empty until they are read
	made    bool            // Iterator.keys has all keys of this window
	dense   bool            // the last window was used so often that all its keys were made
	scratch []byte
}

// Limits of the first two steps: a seek takes as long as making about 20 keys, a search in the key
// columns as long as making about 10.
const (
	maxSeeks      = 8
	rowsPerSearch = 16
)

// reset begins a window. The key that was searched last is kept: it may be after the window.
func (p *place) reset(rows int) {
	p.dense = p.uses > maxUses(rows)
	p.uses, p.columns, p.made = 0, p.columns[:0], false
}

// maxUses returns how often keys of a window are used before all of them are made.
func maxUses(rows int) int { return maxSeeks + rows/rowsPerSearch }

// release forgets everything but memory.
func (p *place) release() {
	*p = place{sought: p.sought[:0], columns: p.columns[:0], scratch: p.scratch}
}

// prepare takes the next step if the keys of the current window were used often enough. Without
// key columns and keys, they are to be sought in the key index.
func (it *Iterator) prepare() error {
	p := &it.place
	p.uses++
	switch all := p.dense || p.uses > maxUses(it.n); {
	case p.made:
	case it.req.Keys():
		p.made = true
	case all || p.uses > maxSeeks || it.hasKeyColumns():
		if err := it.needKeyColumns(); err != nil {
			return err
		}
		if all {
			it.keys = change.AppendVectorKeys(it.keys[:0:0], it.d.encoder, p.columns, 0, it.n)
			p.made = true
		}
	}
	return nil
}

// KeyAt returns the encoded key of row i of the current window, in the order of the scan. It is
// never overwritten.
func (it *Iterator) KeyAt(i int) ([]byte, error) {
	if err := it.prepare(); err != nil {
		return nil, err
	}
	switch {
	case it.place.made:
		return it.keys[i], nil
	case len(it.place.columns) > 0:
		return it.appendKeyAt(nil, i), nil
	}
	return it.d.Key(it.rowAt(i))
}

// rowAt returns the row ID of row i of the current window.
func (it *Iterator) rowAt(i int) batch.Ordinal {
	if it.req.Descending() {
		return it.from + batch.Ordinal(it.n-1-i)
	}
	return it.from + batch.Ordinal(i)
}

// Search returns the index of the first row of the current window, from index from on, whose key is
// not before key in the order of the scan, or the number of rows if all keys are before it.
func (it *Iterator) Search(from int, key []byte) (int, error) {
	p := &it.place
	if len(p.sought) > 0 && bytes.Equal(p.sought, key) {
		return max(from, it.placed()), nil
	}
	if err := it.prepare(); err != nil {
		return 0, err
	}
	p.sought = p.sought[:0]
	if p.made || len(p.columns) > 0 {
		i := it.gallop(from, key)
		if from < i && i < it.n { // else it is not known where the key is
			p.sought, p.at = append(p.sought, key...), it.rowAt(i)
			if it.req.Descending() {
				p.at++
			}
		}
		return i, nil
	}
	at, exact, err := it.d.seek(key)
	if err != nil {
		return 0, err
	}
	if exact && it.req.Descending() {
		at++
	}
	p.sought, p.at = append(p.sought, key...), at
	i := it.placed()
	if i == 0 || i == it.n {
		p.uses-- // not in this window
	}
	return max(from, i), nil
}

// placed returns how many rows of the current window are before the key that was searched.
func (it *Iterator) placed() int {
	first, end := it.from, it.from+batch.Ordinal(it.n)
	at := min(max(it.place.at, first), end)
	if it.req.Descending() {
		return int(end - at)
	}
	return int(at - first)
}

// needKeyColumns reads the key columns of the current window, in the order of the scan.
func (it *Iterator) needKeyColumns() error {
	if len(it.place.columns) > 0 {
		return nil
	}
	cols := it.place.columns[:0]
	for i := range it.d.Schema.Keys {
		v, err := it.result(i, it.from, it.n)
		if err != nil {
			return err
		}
		cols = append(cols, v)
	}
	it.place.columns = cols
	return nil
}

// hasKeyColumns reports whether all key columns of the current window have been read.
func (it *Iterator) hasKeyColumns() bool {
	for i := range it.d.Schema.Keys {
		if c := it.columns[i]; c == nil || !c.loaded || it.req.Descending() && !c.reversed {
			return false
		}
	}
	return true
}

// gallop is Search after prepare: its steps double, so a key that is near costs little.
func (it *Iterator) gallop(from int, key []byte) int {
	step := 1
	for from+step <= it.n && it.isBefore(from+step-1, key) {
		from += step
		step *= 2
	}
	// Rows before from are before key; row from+step-1, if the window has it, is not.
	return from + sort.Search(min(step-1, it.n-from), func(i int) bool { return !it.isBefore(from+i, key) })
}

// isBefore reports whether row i comes before key in the order of the scan.
func (it *Iterator) isBefore(i int, key []byte) bool {
	var k []byte
	if it.place.made {
		k = it.keys[i]
	} else {
		it.place.scratch = it.appendKeyAt(it.place.scratch[:0], i)
		k = it.place.scratch
	}
	if it.req.Descending() {
		return bytes.Compare(k, key) > 0
	}
	return bytes.Compare(k, key) < 0
}

// appendKeyAt appends the key of row i, whose key columns were read.
func (it *Iterator) appendKeyAt(dst []byte, i int) []byte {
	for col, v := range it.place.columns {
		dst = it.d.encoder.AppendCell(dst, col, v.Cell(i))
	}
	return dst
}
