package encoding

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
)

// sparseBinary is a PLAIN payload of byte strings so short that their offsets would take much more
// memory than the compressed payload. It records the position of every 64th group of offsets and
// reads the others on demand. The format is the same as binaryBlock's.
type sparseBinary struct {
	ordinal batch.Ordinal
	count   int
	payload []byte
	groups  []byte
	end     uint32   // of the values in the payload
	marks   []uint32 // offset in groups of each window
}

// sparseValues is the number of values of a window.
const sparseValues = 256

// offsetWindow contains the offsets of a window's values, then the offset of their end.
type offsetWindow [sparseValues + 4]uint32

func parseSparse(payload []byte, ordinal, end uint32, g offsetGroups) (*sparseBinary, error) {
	b := &sparseBinary{ordinal: batch.Ordinal(ordinal), count: g.count, payload: payload, groups: g.rest, end: end}
	b.marks = make([]uint32, 0, (g.count+sparseValues-1)/sparseValues)
	for g.i < g.count {
		if g.i%sparseValues == 0 {
			b.marks = append(b.marks, uint32(len(b.groups)-len(g.rest)))
		}
		if _, err := g.next(); err != nil {
			return nil, err
		}
	}
	return b, g.finish(end)
}

func (b *sparseBinary) Ordinal() batch.Ordinal { return b.ordinal }
func (b *sparseBinary) Len() int               { return b.count }
func (b *sparseBinary) Footprint() int         { return 128 + 4*cap(b.marks) }

// load reads the window of value i and returns its first value and its number of values. The groups
// were checked when b was created.
func (b *sparseBinary) load(i int, w *offsetWindow) (first, n int) {
	first = i &^ (sparseValues - 1)
	n = min(sparseValues, b.count-first)
	groups := b.groups[b.marks[first/sparseValues]:]
	for k := 0; k < n; k += 4 {
		v, used, _ := coding.GroupVarint(groups)
		*(*[4]uint32)(w[k:]) = v
		groups = groups[used:]
	}
	w[n] = b.end
	if first+n < b.count {
		v, _, _ := coding.GroupVarint(groups)
		w[n] = v[0]
	}
	return first, n
}

// each calls f for values [from, from+n), at most one window at a time: k values of w starting with
// value skip.
func (b *sparseBinary) each(from, n int, f func(w *offsetWindow, skip, k int)) {
	var w offsetWindow
	for n > 0 {
		first, have := b.load(from, &w)
		k := min(n, first+have-from)
		f(&w, from-first, k)
		from, n = from+k, n-k
	}
}

func (b *sparseBinary) value(w *offsetWindow, i int) []byte { return b.payload[w[i]:w[i+1]:w[i+1]] }

func (b *sparseBinary) cell(i int) []byte {
	var w offsetWindow
	first, _ := b.load(i, &w)
	return b.value(&w, i-first)
}

func (b *sparseBinary) Cell(i int) ([]byte, error) {
	if i < 0 || i >= b.count {
		panic("encoding: plain binary: value out of range")
	}
	return b.cell(i), nil
}

func (b *sparseBinary) Decode(from, n int, dst *batch.Vector, at int) error {
	out := dst.Bytes[at : at+n]
	b.each(from, n, func(w *offsetWindow, skip, k int) {
		for i := range k {
			out[i] = b.value(w, skip+i)
		}
		out = out[k:]
	})
	return nil
}

// Seek does a binary search over the windows by their first values, then within one.
func (b *sparseBinary) Seek(target []byte) (int, bool, error) {
	lo, hi := 0, len(b.marks) // the windows before lo begin below target
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(b.cell(mid*sparseValues), target) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo > 0 {
		var w offsetWindow
		first, n := b.load((lo-1)*sparseValues, &w)
		i, end := 0, n
		for i < end {
			mid := int(uint(i+end) >> 1)
			if bytes.Compare(b.value(&w, mid), target) < 0 {
				i = mid + 1
			} else {
				end = mid
			}
		}
		if i < n {
			return first + i, bytes.Equal(b.value(&w, i), target), nil
		}
	}
	i := min(lo*sparseValues, b.count)
	return i, i < b.count && bytes.Equal(b.cell(i), target), nil
}

// Select tests only the values whose bits are set, in place.
func (b *sparseBinary) Select(p *batch.Predicate, from, n int, sel batch.Bitmap, at int) (bool, error) {
	if selectAll(p, n, sel, at) {
		return true, nil
	}
	var t stringTest
	t.compile(p)
	b.each(from, n, func(w *offsetWindow, skip, k int) {
		t.filter(b.payload, w[skip:skip+k+1], sel, at)
		at += k
	})
	return true, nil
}
