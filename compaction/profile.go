package compaction

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"
)

// endpoint is the first or last key of a rowset, given by its index.
type endpoint struct {
	key  []byte
	set  int
	last bool
}

// profile is the distribution of the data of a layout over its keys: the endpoints of its
// well-formed rowsets, and the bytes between each two neighbors. A merge changes it only between
// the first and the last key of what it replaces. So Layout.Replace keeps the rest, and the bytes
// between are added up when they are needed.
//
//	endpoints     a   b     c d   e    f   g  h
//	replaced            ├─────────┤
//	unknown           └───────────────┘             all others are taken over
type profile struct {
	of   []RowSetInfo // of the layout; see Layout.profile
	ends []endpoint   // ordered by key; of one key first keys come first

	mu    sync.Mutex // guards the elements of bytes
	bytes []float64  // bytes[i] is between ends[i-1] and ends[i], NaN = not known; bytes[0] is 0
	swept int        // endpoints that fill has visited to compute bytes; for tests
}

// maxRegions is how many parts of a profile are filled on their own: each takes time O(n).
const maxRegions = 4

var unknown = math.NaN()

// profile returns the profile of a layout. It must not be changed.
func (l Layout) profile() *profile {
	p := l.known
	if p != nil && len(p.of) == len(l.RowSets) && (len(p.of) == 0 || &p.of[0] == &l.RowSets[0]) {
		return p
	}
	return newProfile(l.RowSets)
}

func newProfile(sets []RowSetInfo) *profile {
	all := make([]int, len(sets))
	for i := range all {
		all[i] = i
	}
	p := &profile{of: sets, ends: endsOf(sets, all)}
	p.bytes = make([]float64, len(p.ends))
	for i := 1; i < len(p.bytes); i++ {
		p.bytes[i] = unknown
	}
	return p
}

// endsOf returns the endpoints of those of some rowsets that are well-formed, in order.
func endsOf(sets []RowSetInfo, some []int) []endpoint {
	var firsts, lasts []endpoint
	for _, i := range some {
		if r := &sets[i]; r.wellFormed() {
			firsts, lasts = append(firsts, endpoint{r.MinKey, i, false}), append(lasts, endpoint{r.MaxKey, i, true})
		}
	}
	slices.SortFunc(firsts, compareEnds) // they are in order already, unless the layout is not
	slices.SortFunc(lasts, compareEnds)
	return mergedEnds(firsts, lasts)
}

func compareEnds(a, b endpoint) int {
	if c := bytes.Compare(a.key, b.key); c != 0 || a.last == b.last {
		return cmp.Or(c, cmp.Compare(a.set, b.set))
	} else if a.last {
		return 1
	}
	return -1
}

// mergedEnds merges two lists that are in order.
func mergedEnds(a, b []endpoint) []endpoint {
	out := make([]endpoint, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareEnds(a[0], b[0]) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// fill computes the bytes that are not known.
func (p *profile) fill(sets []RowSetInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	type region struct{ from, to int } // indexes of bytes
	var regions []region
	for i, n := range p.bytes {
		switch last := len(regions) - 1; {
		case !math.IsNaN(n):
		case last >= 0 && (regions[last].to == i || len(regions) == maxRegions):
			regions[last].to = i + 1
		default:
			regions = append(regions, region{i, i + 1})
		}
	}
	for _, r := range regions {
		p.sweep(sets, r.from, r.to)
	}
}

// sweep computes bytes[from:to], from > 0.
func (p *profile) sweep(sets []RowSetInfo, from, to int) {
	over := make([]bool, len(sets)) // rowsets over the first of the keys
	for _, e := range p.ends[:from] {
		over[e.set] = !e.last
	}
	used := slices.Clone(over)
	for _, e := range p.ends[from:to] {
		used[e.set] = true
	}
	active := newDensity(sets, func(set int) bool { return used[set] })
	for set, is := range over {
		if is {
			active.add(set)
		}
	}
	for i := from; i < to; i++ {
		e := &p.ends[i]
		p.bytes[i] = active.between(p.ends[i-1].key, e.key)
		if e.last {
			active.remove(e.set)
		} else {
			active.add(e.set)
		}
	}
	p.swept += to - from
}

// Replace returns the layout after a flush or a compaction: without the rowsets whose IDs are in old,
// and with others, which are ordered by first key. IDs that the layout does not have are ignored. A
// rowset of others with the ID and the keys of one in old takes its place, as after a compaction of
// its deltas.
//
// Spans and the policies take less time for it than for a layout of the same rowsets that was made
// otherwise: what they need to know of the keys that no replaced rowset spans is taken over. So the
// elements of RowSets of both layouts must not be changed afterwards, nor those of others.
func (l Layout) Replace(old []uint64, others []RowSetInfo) Layout {
	gone := newIDSet(len(old))
	for _, id := range old {
		gone.add(id)
	}
	again := make(map[uint64]*RowSetInfo) // others whose place is not known yet, if their IDs are gone
	for i := range others {
		if r := &others[i]; gone.has(r.ID) {
			again[r.ID] = r
		}
	}
	out := Layout{Table: l.Table, RowSetBytes: l.RowSetBytes, RowSets: make([]RowSetInfo, 0, len(l.RowSets)+len(others))}
	index := make([]int, len(l.RowSets)) // of a rowset of l in out; ^i: it is gone, and the next one has i
	var added []int                      // indexes of the others in out
	var changed keyRange
	from := 0
	take := func(to int) { // l.RowSets[from:to]
		for i := from; i < to; i++ {
			index[i] = len(out.RowSets) + i - from
		}
		out.RowSets = append(out.RowSets, l.RowSets[from:to]...)
		from = to
	}
	add := func(r *RowSetInfo) {
		if gone.has(r.ID) {
			if again[r.ID] == nil {
				return // it has a place
			}
			delete(again, r.ID)
		}
		changed.add(r)
		added = append(added, len(out.RowSets))
		out.RowSets = append(out.RowSets, *r)
	}
	addBefore := func(to int) { // the others whose places are before to
		for ; len(others) > 0; others = others[1:] {
			at := from + sort.Search(to-from, func(i int) bool { return bytes.Compare(l.RowSets[from+i].MinKey, others[0].MinKey) > 0 })
			if at == to {
				break
			}
			take(at)
			add(&others[0])
		}
	}
	for i := range l.RowSets {
		r := &l.RowSets[i]
		if !gone.has(r.ID) {
			continue
		}
		addBefore(i + 1)
		take(i)
		from, index[i] = i+1, len(out.RowSets)
		changed.add(r)
		if now := again[r.ID]; now != nil && now.sameKeys(r) {
			delete(again, r.ID)
			out.RowSets = append(out.RowSets, *now)
		} else {
			index[i] = ^index[i]
		}
	}
	addBefore(len(l.RowSets))
	take(len(l.RowSets))
	for i := range others {
		add(&others[i])
	}
	out.known = l.profile().replaced(out.RowSets, index, endsOf(out.RowSets, added), &changed)
	return out
}

// sameKeys reports whether two rowsets have the same endpoints.
func (r *RowSetInfo) sameKeys(o *RowSetInfo) bool {
	return r.wellFormed() == o.wellFormed() && bytes.Equal(r.MinKey, o.MinKey) && bytes.Equal(r.MaxKey, o.MaxKey)
}

// replaced returns the profile of a layout of which some rowsets were replaced. index has the
// indexes that the others have now, as in Replace, added are the new endpoints, and all that changed
// is in the key range.
func (p *profile) replaced(sets []RowSetInfo, index []int, added []endpoint, changed *keyRange) *profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := func(e endpoint) endpoint {
		if e.set = index[e.set]; e.set < 0 {
			e.set = ^e.set
		}
		return e
	}
	out := &profile{of: sets, ends: make([]endpoint, 0, len(p.ends)+len(added)), bytes: make([]float64, 0, len(p.ends)+len(added)), swept: p.swept}
	from := 0
	take := func(to int) { // p.ends[from:to]
		for from < to {
			run := from
			for run < to && index[p.ends[run].set] >= 0 {
				run++
			}
			k := len(out.ends)
			out.ends, out.bytes = append(out.ends, p.ends[from:run]...), append(out.bytes, p.bytes[from:run]...)
			for i := range out.ends[k:] {
				e := &out.ends[k+i]
				e.set = index[e.set]
			}
			from = min(run+1, to)
		}
	}
	for _, e := range added {
		take(from + sort.Search(len(p.ends)-from, func(i int) bool { return compareEnds(e, now(p.ends[from+i])) <= 0 }))
		out.ends, out.bytes = append(out.ends, e), append(out.bytes, unknown)
	}
	take(len(p.ends))
	if changed.some {
		first := sort.Search(len(out.ends), func(i int) bool { return bytes.Compare(out.ends[i].key, changed.first) >= 0 })
		last := sort.Search(len(out.ends), func(i int) bool { return bytes.Compare(out.ends[i].key, changed.last) > 0 })
		for i := first; i <= last && i < len(out.bytes); i++ {
			out.bytes[i] = unknown
		}
	}
	if len(out.bytes) > 0 {
		out.bytes[0] = 0
	}
	return out
}

// keyRange is the range of the keys of some rowsets.
type keyRange struct {
	some        bool   // there is one
	first, last []byte // inclusive
}

func (k *keyRange) add(r *RowSetInfo) {
	if !r.wellFormed() {
		return
	}
	if !k.some || bytes.Compare(r.MinKey, k.first) < 0 {
		k.first = r.MinKey
	}
	if !k.some || bytes.Compare(r.MaxKey, k.last) > 0 {
		k.last = r.MaxKey
	}
	k.some = true
}

// idSet is a set of the IDs of rowsets: an open-addressed table. ID 0 is stored apart, since 0
// marks a free place.
type idSet struct {
	table []uint64 // its length is a power of 2
	zero  bool
}

// newIDSet returns a set for up to n IDs.
func newIDSet(n int) *idSet {
	size := 2
	for size < 2*n {
		size *= 2
	}
	return &idSet{table: make([]uint64, size)}
}

// has reports whether an ID was added.
func (s *idSet) has(id uint64) bool {
	if id == 0 {
		return s.zero
	}
	mask := len(s.table) - 1
	for i := int(id*0x9E3779B97F4A7C15>>32) & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case id:
			return true
		case 0:
			return false
		}
	}
}

// add adds an ID and reports whether it is new.
func (s *idSet) add(id uint64) bool {
	if id == 0 {
		isNew := !s.zero
		s.zero = true
		return isNew
	}
	mask := len(s.table) - 1
	for i := int(id*0x9E3779B97F4A7C15>>32) & mask; ; i = (i + 1) & mask {
		switch s.table[i] {
		case id:
			return false
		case 0:
			s.table[i] = id
			return true
		}
	}
}
