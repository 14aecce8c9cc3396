package compaction

import "encoding/binary"

// Span is where a rowset is in the key space, measured by data: From is the share of the table's
// bytes that are below the rowset's keys, To the share that are not above them. Both are in [0, 1].
type Span struct{ From, To float64 }

// Width returns the share of the key space that the rowset spans.
func (s Span) Width() float64 { return s.To - s.From }

// Spans returns the spans of a layout's rowsets, in their order.
//
// A rowset's bytes count as spread evenly between its first and last key, which are compared by the
// 8 bytes after their common prefix. A rowset without bytes, or with keys that do not differ there,
// adds nothing to the distribution but has a span. A rowset that is not well-formed (its first key
// is above its last one, or its size is negative) has the span {0, 0}.
//
// The sum of all widths is the table's depth: the number of rowsets over a key, on average.
//
// It takes time O(n log n) in the number of rowsets, and less if Layout.Replace has made the
// layout. Source: tablet spec §16.2.
func Spans(layout Layout) []Span {
	p := layout.profile()
	p.fill(layout.RowSets)
	spans := make([]Span, len(layout.RowSets))
	total := 0.0
	for i, e := range p.ends {
		if total += p.bytes[i]; e.last {
			spans[e.set].To = total
		} else {
			spans[e.set].From = total
		}
	}
	for i := range spans {
		if total > 0 {
			spans[i].From /= total
			spans[i].To /= total
		}
	}
	return spans
}

// density is the number of bytes per key of the rowsets over the current key.
//
// A key is a number only next to a prefix: its 8 bytes after it. Rowsets with the same common prefix
// of first and last key use the same numbers, so their bytes per key are added up once for all of
// them:
//
//	rowset 1     user1──────────────────user9     prefix "user", bytes per key d1
//	rowset 2            user4──────user8          prefix "user", bytes per key d2
//	rowset 3            user41─user42             prefix "user4", bytes per key d3
//	                       p───q                  d1+d2 between p and q by the bytes after "user",
//	                                              d3 by the bytes after "user4"
//
// All rowsets over p and q have prefixes of p and q, so there is one sum for each length of prefix.
// If p and q have l bytes in common, prefixes shorter than l-7 do not distinguish them, and there
// are none longer than l. So at most 8 sums contribute.
type density struct {
	sets []setDensity // by index in the layout
	sums []sumTree    // by length of the prefix
}

// setDensity is the part of the distribution that one rowset adds.
type setDensity struct {
	perKey float64 // bytes per key; 0 if it adds nothing
	length int32   // of its prefix
	leaf   int32   // in the sum of this length
}

// newDensity returns the density where none of the rowsets is over the current key. Those for
// which use returns false never will be.
func newDensity(sets []RowSetInfo, use func(set int) bool) *density {
	d := &density{sets: make([]setDensity, len(sets))}
	var counts []int32 // by length
	for i := range sets {
		r := &sets[i]
		if !use(i) {
			continue
		}
		n := commonPrefix(r.MinKey, r.MaxKey)
		keys := numberAfter(r.MaxKey, n) - numberAfter(r.MinKey, n)
		if keys == 0 {
			continue
		}
		for len(counts) <= n {
			counts = append(counts, 0)
		}
		d.sets[i] = setDensity{float64(r.Bytes) / float64(keys), int32(n), counts[n]}
		counts[n]++
	}
	d.sums = make([]sumTree, len(counts))
	for n, count := range counts {
		d.sums[n] = newSumTree(int(count))
	}
	return d
}

func (d *density) add(set int)    { d.put(set, d.sets[set].perKey) }
func (d *density) remove(set int) { d.put(set, 0) }

func (d *density) put(set int, perKey float64) {
	if s := &d.sets[set]; s.perKey > 0 {
		d.sums[s.length].put(int(s.leaf), perKey)
	}
}

// between returns the number of bytes from key p to key q, between which no rowset begins or ends.
func (d *density) between(p, q []byte) (n float64) {
	l := commonPrefix(p, q)
	for length := max(0, l-7); length <= min(l, len(d.sums)-1); length++ {
		if sum := d.sums[length].total(); sum > 0 {
			n += sum * float64(numberAfter(q, length)-numberAfter(p, length))
		}
	}
	return n
}

// numberAfter returns the 8 bytes of key from offset n as a number. Missing bytes are zero.
func numberAfter(key []byte, n int) uint64 {
	if n+8 <= len(key) {
		return binary.BigEndian.Uint64(key[n:])
	}
	var b [8]byte
	if n < len(key) {
		copy(b[:], key[n:])
	}
	return binary.BigEndian.Uint64(b[:])
}

// commonPrefix returns the number of bytes at the beginning that a and b have in common.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// sumTree is the sum of changing numbers that are not negative. Unlike a running total, from which
// a large number is subtracted again, it has no rounding errors of numbers that are gone.
type sumTree []float64 // node i is the sum of nodes 2i and 2i+1; the leaves are the second half

func newSumTree(leaves int) sumTree { return make(sumTree, 2*leaves) }

func (t sumTree) total() float64 {
	if len(t) == 0 {
		return 0
	}
	return t[1]
}

func (t sumTree) put(leaf int, x float64) {
	i := len(t)/2 + leaf
	t[i] = x
	for i /= 2; i > 0; i /= 2 {
		t[i] = t[2*i] + t[2*i+1]
	}
}
