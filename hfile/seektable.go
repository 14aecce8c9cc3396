package hfile

import (
	"bytes"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/oribi-db/oribi/internal/keyheads"
)

// seekTable speeds up seeks in one data block: it contains every n-th of its cells. It is made at
// the first seek in a block of a cache.
type seekTable struct {
	p atomic.Pointer[seekPoints]
}

// seekPoints are the cells of a seekTable.
type seekPoints struct {
	heads keyheads.Heads // of the rows of the cells

	at []int32 // offsets of the cells; in blocks without differences

	states []cellState // in blocks of differences
	keys   []byte      // of the states, see keyBytes, back to back
	ends   []int32     // of each key in keys
}

const (
	seekInterval     = 4  // cells from one point to the next, in the plain form
	seekIntervalDiff = 32 // the same for differences, at least
	seekStateBytes   = int(unsafe.Sizeof(cellState{})) + 4 + seekHeadBytes
	seekHeadBytes    = 8
)

func (t *seekTable) reset() { t.p.Store(nil) }

// seekTableBytes returns the most bytes that the table of a block with a payload of n bytes takes.
func seekTableBytes(n int) int { return n/4 + 256 }

// points returns the cells of the table, which it makes if necessary. It moves w, which is a walker
// of this block, and returns nil if the block is malformed or its tags need all cells before them.
func (t *seekTable) points(w *walker) *seekPoints {
	if p := t.p.Load(); p != nil {
		return p
	}
	if w.layout.dict {
		return nil
	}
	p := new(seekPoints)
	if w.differences() {
		p.addDifferences(w)
	} else {
		w.rewind()
		for n := 0; w.step(); n++ {
			if n%seekInterval == 0 {
				p.at = append(p.at, int32(w.at))
			}
		}
	}
	if w.bad != "" {
		return nil
	}
	p.heads = keyheads.Make(p.len(), func(i int) []byte { return p.row(w, i) })
	p.heads.Detach()
	t.p.Store(p)
	return p
}

// addDifferences adds cells of a block of differences. Their keys may be longer than the block: it
// adds as few as the limit of seekTableBytes requires.
func (p *seekPoints) addDifferences(w *walker) {
	limit := seekTableBytes(len(w.b))
	cells, bytes := 0, 0
	for w.rewind(); w.step(); cells++ {
		bytes += w.keyBytes() + seekStateBytes
	}
	interval := max(seekIntervalDiff, 1+bytes/limit)
	p.states = make([]cellState, 0, cells/interval+1)
	p.ends = make([]int32, 0, cells/interval+1)
	w.rewind()
	for n := 0; w.step(); n++ {
		if n%interval != 0 {
			continue
		}
		if len(p.keys)+w.keyBytes()+(len(p.states)+1)*seekStateBytes > limit {
			return // longer keys than the average
		}
		p.states = append(p.states, w.cellState)
		p.keys = append(p.keys, w.keys[:w.keyBytes()]...)
		p.ends = append(p.ends, int32(len(p.keys)))
	}
}

// key returns the key of state i.
func (p *seekPoints) key(i int) []byte {
	from := int32(0)
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.keys[from:p.ends[i]]
}

// len returns the number of points.
func (p *seekPoints) len() int { return len(p.at) + len(p.states) }

// row returns the row of point i, valid until the next move of w, which it may move.
func (p *seekPoints) row(w *walker, i int) []byte {
	if w.differences() {
		return p.key(i)[keyRowLen : keyRowLen+p.states[i].row]
	}
	at := int(p.at[i]) + cellFixedLen
	return indexRow(w.b[at:])
}

// seek moves w to the last of the points that is before t, or before the first cell.
func (p *seekPoints) seek(w *walker, t *target) {
	if p.len() == 0 || p.compare(w, 0, t) >= 0 {
		w.rewind()
		return
	}
	i, _ := p.heads.Find(t.Row, func(i int) (bool, error) { return p.compare(w, i, t) < 0, nil })
	if w.differences() {
		w.restore(&p.states[i], p.key(i))
	} else {
		w.moveTo(int(p.at[i]))
	}
}

// compare returns -1, 0, or 1 as point i is before, at, or after t. It moves w in the plain form.
func (p *seekPoints) compare(w *walker, i int, t *target) int {
	if !w.differences() {
		w.moveTo(int(p.at[i]))
		return w.compare(t)
	}
	s, key := &p.states[i], p.key(i)
	row := key[keyRowLen : keyRowLen+s.row]
	if c := bytes.Compare(row, t.Row); c != 0 || t.cellRows {
		return c
	}
	return Key{Row: row, Family: key[s.family:s.qualifier], Qualifier: key[s.qualifier:s.suffix],
		Timestamp: s.timestamp, Type: s.kind}.Compare(t.Key)
}

// differences reports whether cells of the block refer to the cell before them.
func (w *walker) differences() bool {
	return w.layout.encoding != EncodingNone && w.layout.encoding != EncodingRowIndexV1
}

// keyBytes returns how many bytes of the current key the next cell may refer to, in a block of
// differences: in PREFIX all of them, otherwise those up to timestamp and type.
func (w *walker) keyBytes() int {
	if w.layout.encoding == EncodingPrefix {
		return w.keyLen
	}
	return w.suffix
}

// moveTo makes the cell at an offset the current one. The block has no differences.
func (w *walker) moveTo(at int) {
	w.next = at
	w.stepPlain()
}

// restore makes a cell of a block of differences the current one.
func (w *walker) restore(s *cellState, key []byte) {
	if w.common == nil && w.layout.encoding == EncodingFastDiff {
		w.rewind()
		w.step() // the first cell has the family
	}
	w.cellState = *s
	w.grow(0, len(key))
	copy(w.buf, key)
}

// floor returns the last state whose cell is not after offset at, or -1.
func (p *seekPoints) floor(at int) int {
	return sort.Search(len(p.states), func(i int) bool { return p.states[i].at > at }) - 1
}
