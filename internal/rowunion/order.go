// Package rowunion reads MemRowSets and DiskRowSets as one set of rows: of the iterators over all of
// them it makes one, in key order or in any.
//
// Each key is live in at most one of the sets at any time. Iterators are not safe for concurrent use.
// Source: tablet spec §19.1.
package rowunion

import (
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

// AnyOrder returns the rows of MemRowSets, then those of rowsets, one after another; last to first
// if r descends.
func AnyOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*MemIterator) scan.Iterator {
	var chain []scan.Opener
	for _, m := range mems {
		chain = append(chain, func() (scan.Iterator, error) { return m, nil })
	}
	for _, d := range sets {
		chain = append(chain, func() (scan.Iterator, error) { return OpenRowSet(d, r) })
	}
	if r.Descending() {
		slices.Reverse(chain)
	}
	return scan.Concat(r, chain...)
}

// InOrder returns the rows of rowsets, sorted by first key, and of MemRowSets in the order of r.
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
// The iterator of a MemRowSet continues from range to range, so a scan makes a single one. A rowset
// is opened when the scan reaches its first key or, in a descending scan, its last key.
func InOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*MemIterator, open Open) scan.Iterator {
	var chain []scan.Opener
	// add adds the range up to end, exclusive or, in a descending scan, inclusive; nil is the end
	// of the scan's range.
	add := func(group []*rowset.DiskRowSet, end []byte) {
		chain = append(chain, func() (scan.Iterator, error) {
			var inputs []scan.Iterator
			for _, m := range mems {
				if m.until(end) {
					inputs = append(inputs, m)
				}
			}
			if len(inputs) == 0 && len(group) == 1 {
				return open(group[0], r)
			}
			var parts []scan.Part
			for _, d := range group {
				m := d.Metadata()
				parts = append(parts, scan.Part{First: m.MinKey, Last: m.MaxKey, Open: func() (scan.Iterator, error) { return open(d, r) }})
			}
			return scan.Merge(r, inputs, parts...), nil
		})
	}
	groups := Overlapping(sets)
	if r.Descending() {
		slices.Reverse(groups)
	}
	for _, g := range groups {
		if len(mems) == 0 {
			add(g.Sets, nil)
			continue
		}
		begin, end := append([]byte{}, g.First...), append(slices.Clip(g.Last), 0) // keys in [begin, end)
		if r.Descending() {
			begin, end = end, begin
		}
		add(nil, begin)
		add(g.Sets, end)
	}
	if len(mems) > 0 {
		add(nil, nil)
	}
	return scan.Concat(r, chain...)
}

// Group is a list of rowsets. Each but the first overlaps with one before it.
type Group struct {
	Sets        []*rowset.DiskRowSet
	First, Last []byte // the least and greatest keys
}

// Overlapping joins rowsets, sorted by first key, that overlap into groups, which are in key order.
func Overlapping(sets []*rowset.DiskRowSet) []Group {
	var groups []Group
	for _, d := range sets {
		m := d.Metadata()
		if n := len(groups); n > 0 && string(m.MinKey) <= string(groups[n-1].Last) {
			g := &groups[n-1]
			g.Sets = append(g.Sets, d)
			if string(m.MaxKey) > string(g.Last) {
				g.Last = m.MaxKey
			}
			continue
		}
		groups = append(groups, Group{[]*rowset.DiskRowSet{d}, m.MinKey, m.MaxKey})
	}
	return groups
}
