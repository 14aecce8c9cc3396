package conflict

import (
	"bytes"
	"slices"
	"sort"
)

// ReadSet lists what a transaction has read: keys, also of rows that did not exist, and ranges of
// keys. The zero value is empty. Not safe for concurrent use.
type ReadSet struct {
	tables map[uint32]*tableReads
	bytes  int64
}

type tableReads struct {
	keys   map[string]bool
	ranges []*Range
	sorted []*Range // disjoint, ascending; nil until it is made of ranges
}

// Range is a range of keys that was read.
type Range struct {
	reads *tableReads
	Lower []byte // inclusive; nil = from the first key on
	Upper []byte // exclusive; nil = to the last key
}

// Approximate memory of a key and of a range besides their bytes.
const (
	keyBytes   = 64
	rangeBytes = 96
)

func (r *ReadSet) table(table uint32) *tableReads {
	t := r.tables[table]
	if t == nil {
		t = &tableReads{keys: map[string]bool{}}
		if r.tables == nil {
			r.tables = map[uint32]*tableReads{}
		}
		r.tables[table] = t
	}
	return t
}

// AddTable adds a table, of which unknown changes are looked for, without a key.
func (r *ReadSet) AddTable(table uint32) { r.table(table) }

// AddKey adds an encoded key, of which it makes a copy.
func (r *ReadSet) AddKey(table uint32, key []byte) {
	t := r.table(table)
	if !t.keys[string(key)] {
		t.keys[string(key)] = true
		r.bytes += int64(len(key)) + keyBytes
	}
}

// AddRange adds a range of encoded keys, of which it makes copies. The caller may narrow the result
// when it has read less.
func (r *ReadSet) AddRange(table uint32, lower, upper []byte) *Range {
	t := r.table(table)
	g := &Range{reads: t, Lower: bytes.Clone(lower), Upper: bytes.Clone(upper)}
	t.ranges, t.sorted = append(t.ranges, g), nil
	r.bytes += int64(len(lower)+len(upper)) + rangeBytes
	return g
}

// Narrow replaces the bounds of a range by tighter ones, of which it makes copies.
func (g *Range) Narrow(lower, upper []byte) {
	g.Lower, g.Upper, g.reads.sorted = bytes.Clone(lower), bytes.Clone(upper), nil
}

// Extend adds [lower, upper) to the range if it overlaps with it or touches it, and reports whether the
// range then contains it.
func (g *Range) Extend(lower, upper []byte) bool {
	switch {
	case upper != nil && bytes.Compare(lower, upper) >= 0:
		return true // it is empty
	case g.Upper != nil && bytes.Compare(lower, g.Upper) > 0, upper != nil && bytes.Compare(upper, g.Lower) < 0,
		g.Upper != nil && bytes.Compare(g.Lower, g.Upper) >= 0:
		return false
	}
	if bytes.Compare(lower, g.Lower) < 0 {
		g.Lower, g.reads.sorted = bytes.Clone(lower), nil
	}
	if g.Upper != nil && (upper == nil || bytes.Compare(upper, g.Upper) > 0) {
		g.Upper, g.reads.sorted = bytes.Clone(upper), nil
	}
	return true
}

// ExtendTo extends the range so that it contains key.
func (g *Range) ExtendTo(key []byte) {
	switch {
	case bytes.Compare(key, g.Lower) < 0:
		g.Lower = append(g.Lower[:0], key...)
	case g.Upper != nil && bytes.Compare(key, g.Upper) >= 0:
		g.Upper = append(append(g.Upper[:0], key...), 0)
	default:
		return
	}
	g.reads.sorted = nil
}

// Empty reports whether nothing was read.
func (r *ReadSet) Empty() bool { return len(r.tables) == 0 }

// Bytes returns about how much memory the set takes.
func (r *ReadSet) Bytes() int64 { return r.bytes }

// Ranges returns what was read of a table as disjoint ranges in ascending order. A key is the range
// from it to the next possible key.
func (r *ReadSet) Ranges(table uint32) []Range {
	t := r.tables[table]
	if t == nil {
		return nil
	}
	all := make([]*Range, 0, len(t.ranges)+len(t.keys))
	all = append(all, t.ranges...)
	for k := range t.keys {
		all = append(all, &Range{Lower: []byte(k), Upper: append([]byte(k), 0)})
	}
	merged := merge(all)
	out := make([]Range, len(merged))
	for i, g := range merged {
		out[i] = Range{Lower: g.Lower, Upper: g.Upper}
	}
	return out
}

// Contains reports whether a key was read, by itself or in a range.
func (r *ReadSet) Contains(table uint32, key []byte) bool {
	t := r.tables[table]
	if t == nil {
		return false
	}
	if t.keys[string(key)] {
		return true
	}
	if t.sorted == nil && len(t.ranges) > 0 {
		t.sorted = merge(t.ranges)
	}
	i := sort.Search(len(t.sorted), func(i int) bool { return bytes.Compare(t.sorted[i].Lower, key) > 0 })
	return i > 0 && (t.sorted[i-1].Upper == nil || bytes.Compare(key, t.sorted[i-1].Upper) < 0)
}

// merge returns the union of ranges as disjoint ranges in ascending order. It modifies none of them.
func merge(ranges []*Range) []*Range {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b *Range) int { return bytes.Compare(a.Lower, b.Lower) })
	out := []*Range{}
	for _, g := range ranges {
		if g.Upper != nil && bytes.Compare(g.Lower, g.Upper) >= 0 {
			continue // empty
		}
		if n := len(out); n > 0 && (out[n-1].Upper == nil || bytes.Compare(g.Lower, out[n-1].Upper) <= 0) {
			if last := out[n-1]; last.Upper != nil && (g.Upper == nil || bytes.Compare(g.Upper, last.Upper) > 0) {
				last.Upper = g.Upper
			}
			continue
		}
		out = append(out, &Range{Lower: g.Lower, Upper: g.Upper})
	}
	return out
}
