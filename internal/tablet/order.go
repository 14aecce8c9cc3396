package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// openRowSet is the function with which a scan opens rowsets.
func openRowSet(d *rowset.DiskRowSet, r *scan.Request) (scan.Iterator, error) {
	return d.NewIterator(r)
}

// setScan returns the rows of rowsets that do not overlap, in the order of the request. It releases
// the state at Close. Most short scans are such: they cost two allocations here, this one and the
// iterator of a rowset.
type setScan struct {
	scan.Sequence
	r     *scan.Request
	left  []*rowset.DiskRowSet // not opened yet, in key order
	state *tabletState         // nil after Close
}

func newSetScan(r *scan.Request, sets []*rowset.DiskRowSet, st *tabletState) *setScan {
	s := &setScan{r: r, left: sets, state: st}
	s.Init(r, s)
	return s
}

// Open opens the next rowset.
func (s *setScan) Open() (scan.Iterator, error) {
	n := len(s.left)
	if n == 0 {
		return nil, nil
	}
	next := s.left[0]
	if s.r.Descending() {
		next, s.left = s.left[n-1], s.left[:n-1]
	} else {
		s.left = s.left[1:]
	}
	return openRowSet(next, s.r)
}

func (s *setScan) Close() error {
	err := s.Sequence.Close()
	if s.state != nil {
		s.state.release()
		s.state = nil
	}
	return err
}

// anyOrder returns the rows of MemRowSets, then those of rowsets, one after another; last to first
// if r descends.
func anyOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*memIterator) scan.Iterator {
	var chain []scan.Opener
	for _, m := range mems {
		chain = append(chain, func() (scan.Iterator, error) { return m, nil })
	}
	for _, d := range sets {
		chain = append(chain, func() (scan.Iterator, error) { return openRowSet(d, r) })
	}
	if r.Descending() {
		slices.Reverse(chain)
	}
	return scan.Concat(r, chain...)
}

// inOrder returns the rows of rowsets, sorted by first key, and of MemRowSets in the order of r.
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
func inOrder(r *scan.Request, sets []*rowset.DiskRowSet, mems []*memIterator, open func(*rowset.DiskRowSet, *scan.Request) (scan.Iterator, error)) scan.Iterator {
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
	groups := overlapping(sets)
	if r.Descending() {
		slices.Reverse(groups)
	}
	for _, g := range groups {
		if len(mems) == 0 {
			add(g.sets, nil)
			continue
		}
		begin, end := append([]byte{}, g.first...), append(slices.Clip(g.last), 0) // keys in [begin, end)
		if r.Descending() {
			begin, end = end, begin
		}
		add(nil, begin)
		add(g.sets, end)
	}
	if len(mems) > 0 {
		add(nil, nil)
	}
	return scan.Concat(r, chain...)
}

// group is a list of rowsets. Each but the first overlaps with one before it.
type group struct {
	sets        []*rowset.DiskRowSet
	first, last []byte // the least and greatest keys
}

// overlapping joins rowsets, sorted by first key, that overlap into groups, which are in key order.
func overlapping(sets []*rowset.DiskRowSet) []group {
	var groups []group
	for _, d := range sets {
		m := d.Metadata()
		if n := len(groups); n > 0 && string(m.MinKey) <= string(groups[n-1].last) {
			g := &groups[n-1]
			g.sets = append(g.sets, d)
			if string(m.MaxKey) > string(g.last) {
				g.last = m.MaxKey
			}
			continue
		}
		groups = append(groups, group{[]*rowset.DiskRowSet{d}, m.MinKey, m.MaxKey})
	}
	return groups
}
