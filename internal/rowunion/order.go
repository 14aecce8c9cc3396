// Package rowunion reads MemRowSets and DiskRowSets as one set of rows: of the iterators over all of
// them it makes one, in key order or in any.
//
// Each key is live in at most one of the sets at any time. Iterators are not safe for concurrent use.
// Source: tablet spec §19.1.
package rowunion

import (
	"bytes"
	"slices"

	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// Open opens a rowset for a request.
type Open func(*rowset.DiskRowSet, *scan.Request) (scan.Iterator, error)

// OpenRowSet opens all rows of a rowset.
func OpenRowSet(d *rowset.DiskRowSet, r *scan.Request) (scan.Iterator, error) {
	return d.NewIterator(r)
}

// AnyOrder returns the rows of the MemRowSets, then of the rowsets, one after another, or last to
// first if r descends.
func AnyOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*MemIterator) scan.Iterator {
	var chain []scan.Opener
	for _, m := range mems {
		chain = append(chain, func() (scan.Iterator, error) { return m, nil })
	}
	for _, d := range sets {
		if !d.Dead(r.Snapshot()) {
			chain = append(chain, func() (scan.Iterator, error) { return OpenRowSet(d, r) })
		}
	}
	if r.Descending() {
		slices.Reverse(chain)
	}
	return scan.Concat(r, chain...)
}

// orderedScan returns the rows of rowsets, sorted by first key, and of MemRowSets in the order of a
// request.
//
// Groups of overlapping rowsets divide the key space into ranges. Within a range, the rowsets and
// those MemRowSets that have rows there are merged. A rowset alone in its range is not merged with
// anything, and its batches are not copied.
//
//	keys                    ├───────────────────────────────────────▶
//	rowsets                   ├─0─┤     ├──1──┤     ├─3─┤
//	                                       ├─2──┤
//	MemRowSet               x    x  x             x           x  x
//	ranges                  M│0,M │  M  │ 1,2  │ M  │ 3  │      M
//
// The iterator of a MemRowSet continues from range to range, so a scan makes a single one. A range is
// made when the scan reaches it, so a scan of few rows takes no time for the others; and a rowset is
// opened when the scan reaches its first key or, in a descending scan, its last key.
type orderedScan struct {
	scan.Sequence
	r      *scan.Request
	left   []*rowset.DiskRowSet // not opened yet
	starts []int                // of the groups in left, for a descending scan
	mems   []*MemIterator       // released at Close
	atGap  bool                 // the next range is before the next group, or after all of them
	open   Open
}

// InOrder returns the rows of rowsets, sorted by first key, and of MemRowSets in the order of r. It
// does not change sets. The iterators of the MemRowSets belong to it.
func InOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*MemIterator, open Open) scan.Iterator {
	s := &orderedScan{r: r, left: sets, mems: mems, open: open, atGap: len(mems) > 0}
	if r.Descending() {
		for n := 0; n < len(sets); n += len(Overlapping(sets[n:])) {
			s.starts = append(s.starts, n)
		}
	}
	if len(sets) > 0 {
		for _, m := range mems {
			m.startSmall()
		}
	}
	s.Init(r, s)
	return s
}

// Overlapping returns the first group of rowsets, sorted by first key: the longest beginning in which
// each but the first overlaps with one before it.
func Overlapping(sets []*rowset.DiskRowSet) []*rowset.DiskRowSet {
	n, last := 1, sets[0].Metadata().MaxKey
	for ; n < len(sets) && string(sets[n].Metadata().MinKey) <= string(last); n++ {
		last = greater(last, sets[n].Metadata().MaxKey)
	}
	return sets[:n:n]
}

// next returns the next group of s.left, or nil at the end.
func (s *orderedScan) next() []*rowset.DiskRowSet {
	switch n := len(s.starts); {
	case len(s.left) == 0:
		return nil
	case s.r.Descending():
		return s.left[s.starts[n-1]:]
	}
	return Overlapping(s.left)
}

// skip removes the next group, which has n rowsets, from s.left.
func (s *orderedScan) skip(n int) {
	if s.r.Descending() {
		s.left, s.starts = s.left[:len(s.left)-n], s.starts[:len(s.starts)-1]
	} else {
		s.left = s.left[n:]
	}
}

// Open returns the iterator of the next range.
func (s *orderedScan) Open() (scan.Iterator, error) {
	group := s.next()
	for len(group) > 0 && dead(group, s.r) {
		s.skip(len(group))
		group = s.next()
	}
	if s.atGap {
		s.atGap = false
		if end := s.before(group); end == nil || s.begins(end) {
			return scan.Merge(s.r, s.memsUpTo(end)), nil
		}
	}
	if len(group) == 0 {
		return nil, nil
	}
	s.skip(len(group))
	if len(s.mems) == 0 && len(group) == 1 {
		return s.open(group[0], s.r)
	}
	var inputs []scan.Iterator
	if len(s.mems) > 0 {
		inputs, s.atGap = s.memsUpTo(s.after(group)), true
	}
	parts := make([]scan.Part, 0, len(group))
	for _, d := range group {
		if d.Dead(s.r.Snapshot()) {
			continue
		}
		m := d.Metadata()
		parts = append(parts, scan.Part{First: m.MinKey, Last: m.MaxKey, Open: func() (scan.Iterator, error) {
			return s.open(d, s.r)
		}})
	}
	return scan.Merge(s.r, inputs, parts...), nil
}

// dead reports whether it is known that no row of the rowsets is in the result.
func dead(sets []*rowset.DiskRowSet, r *scan.Request) bool {
	return !slices.ContainsFunc(sets, func(d *rowset.DiskRowSet) bool { return !d.Dead(r.Snapshot()) })
}

// before returns the end of the range before a group, exclusive or, in a descending scan, inclusive;
// nil, the end of the scan's range, if there is no group.
func (s *orderedScan) before(group []*rowset.DiskRowSet) []byte {
	switch {
	case len(group) == 0:
		return nil
	case s.r.Descending():
		return above(group)
	}
	return group[0].Metadata().MinKey
}

// after returns the end of a group's range as before does.
func (s *orderedScan) after(group []*rowset.DiskRowSet) []byte {
	if s.r.Descending() {
		return group[0].Metadata().MinKey
	}
	return above(group)
}

// begins reports whether the scan's range begins before end.
func (s *orderedScan) begins(end []byte) bool {
	lower, upper := s.r.Bounds()
	if s.r.Descending() {
		return upper == nil || bytes.Compare(end, upper) < 0
	}
	return lower == nil || bytes.Compare(lower, end) < 0
}

// above returns the least key above all keys of a group.
func above(group []*rowset.DiskRowSet) []byte {
	var last []byte
	for _, d := range group {
		last = greater(last, d.Metadata().MaxKey)
	}
	return append(slices.Clip(last), 0)
}

// greater returns the greater of two keys.
func greater(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

// memsUpTo returns the iterators of the MemRowSets, which then end at key, the end of a range.
func (s *orderedScan) memsUpTo(key []byte) []scan.Iterator {
	inputs := make([]scan.Iterator, len(s.mems))
	for i, m := range s.mems {
		m.until(key)
		inputs[i] = m
	}
	return inputs
}

// Close releases the iterators of the MemRowSets.
func (s *orderedScan) Close() error {
	err := s.Sequence.Close()
	for _, m := range s.mems {
		m.release()
	}
	s.mems, s.left = nil, nil
	return err
}
