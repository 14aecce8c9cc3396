package compaction

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/oribi-db/oribi/internal/splice"
)

// endpoint is the first or last key of a rowset, given by its index.
type endpoint struct {
	key  []byte
	set  int
	last bool
}

// profile is the distribution of the data of a layout over its keys: the endpoints of its
// well-formed rowsets, and the bytes between each two neighbors. A merge changes it only between
// the first and the last key of the rowsets that it replaces. So Layout.Replace keeps the rest, and
// the bytes between are added up when they are needed.
//
//	endpoints     a   b     c d   e    f   g  h
//	replaced            ├─────────┤
//	unknown           └───────────────┘             all others are kept
type profile struct {
	of   []RowSetInfo // of the layout; see Layout.profile
	ends []endpoint   // ordered by key; of one key first keys come first

	ids    map[uint64]int // how many rowsets have each ID; nil before the first Replace
	shared int            // IDs that several rowsets have

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

// endsOf returns the endpoints of the well-formed rowsets among some, in order.
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

// allUsable reports whether all rowsets are known to be well-formed, with IDs that differ.
func (p *profile) allUsable() bool {
	return p.ids != nil && p.shared == 0 && len(p.ends) == 2*len(p.of)
}

// count adds n, 1 or -1, to the number of rowsets that have an ID.
func (p *profile) count(id uint64, n int) {
	before := p.ids[id]
	switch max(before, before+n) {
	case 1:
		if n < 0 {
			delete(p.ids, id)
			return
		}
	case 2:
		p.shared += n
	}
	p.ids[id] = before + n
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

// Replace makes l the layout after a flush or compaction: without the rowsets at some indexes,
// which are ascending, and with others, which are ordered by first key. Of one first key, others
// come last. But if each of the others has the ID and the keys of the rowset that it replaces, it
// takes its place.
//
// Replace keeps the profile of the keys that no replaced rowset spans, so Spans and the policies
// take less time than for a layout of the same rowsets that was made otherwise. Replace takes time
// O(k log n) for k rowsets, plus the time to move the others in memory.
//
// It changes l and the array of l.RowSets: copies of l that were made before must no longer be
// used. Nor may RowSets be changed in another way.
func (l *Layout) Replace(old []int, others []RowSetInfo) {
	p := l.profile()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = make(map[uint64]int, len(l.RowSets))
		for i := range l.RowSets {
			p.count(l.RowSets[i].ID, 1)
		}
	}
	if l.sameKeys(old, others) {
		var changed keyRange
		for k, i := range old {
			if others[k].Bytes != l.RowSets[i].Bytes {
				p.forget(&changed, &others[k])
			}
			l.RowSets[i] = others[k]
		}
		p.forgetRange(&changed)
	} else {
		for _, i := range old {
			p.count(l.RowSets[i].ID, -1)
		}
		for k := range others {
			p.count(others[k].ID, 1)
		}
		p.remove(l.RowSets, old)
		at := make([]int, len(others))
		for k := range others {
			at[k] = sort.Search(len(l.RowSets), func(i int) bool {
				return bytes.Compare(l.RowSets[i].MinKey, others[k].MinKey) > 0
			})
		}
		p.move(len(l.RowSets), old, at)
		l.RowSets = splice.Edit(l.RowSets, old, others, at)
		p.insert(l.RowSets, others, old, at)
	}
	p.of, l.known = l.RowSets, p
}

// sameKeys reports whether each of the others has the ID and the keys of the rowset that it
// replaces.
func (l *Layout) sameKeys(old []int, others []RowSetInfo) bool {
	for k, i := range old {
		if len(old) != len(others) {
			return false
		}
		a, b := &l.RowSets[i], &others[k]
		if a.ID != b.ID || !bytes.Equal(a.MinKey, b.MinKey) || !bytes.Equal(a.MaxKey, b.MaxKey) ||
			a.wellFormed() != b.wellFormed() {
			return false
		}
	}
	return len(old) > 0
}

// remove drops the endpoints of the rowsets with some indexes.
func (p *profile) remove(sets []RowSetInfo, old []int) {
	var gone []int
	for _, i := range old {
		if r := &sets[i]; r.wellFormed() {
			gone = append(gone, p.find(endpoint{r.MinKey, i, false}), p.find(endpoint{r.MaxKey, i, true}))
		}
	}
	slices.Sort(gone)
	p.ends, p.bytes = splice.Edit(p.ends, gone, nil, nil), splice.Edit(p.bytes, gone, nil, nil)
	var changed keyRange
	for _, i := range old {
		p.forget(&changed, &sets[i])
	}
	p.forgetRange(&changed)
}

// find returns the index of the first endpoint that is not before e.
func (p *profile) find(e endpoint) int {
	return sort.Search(len(p.ends), func(i int) bool { return compareEnds(p.ends[i], e) >= 0 })
}

// move gives the endpoints the indexes that their rowsets get when, of n rowsets, those at old are
// removed and others are inserted before those at some indexes.
func (p *profile) move(n int, old, at []int) {
	from, to := splice.Window(n, old, at)
	moved := make([]int, 0, to-from+1) // new indexes of the rowsets of the window, and of the one after it
	gone, added := 0, 0
	for i := from; i <= to; i++ {
		for added < len(at) && at[added] == i {
			added++
		}
		moved = append(moved, i+added-gone)
		if gone < len(old) && old[gone] == i {
			gone++
		}
	}
	if from == to && len(at) == 0 {
		return
	}
	for i := range p.ends {
		switch e := &p.ends[i]; {
		case e.set >= to:
			e.set += moved[to-from] - to
		case e.set >= from:
			e.set = moved[e.set-from]
		}
	}
}

// insert adds the endpoints of the others, each of which is now before the rowset that was at one
// of some indexes.
func (p *profile) insert(sets, others []RowSetInfo, old, at []int) {
	indexes := make([]int, len(others))
	gone := 0
	for k, i := range at {
		for gone < len(old) && old[gone] < i {
			gone++
		}
		indexes[k] = i - gone + k
	}
	added := endsOf(sets, indexes)
	places, bytes := make([]int, len(added)), make([]float64, len(added))
	for i, e := range added {
		places[i] = p.find(e)
	}
	p.ends, p.bytes = splice.Edit(p.ends, nil, added, places), splice.Edit(p.bytes, nil, bytes, places)
	var changed keyRange
	for i := range others {
		p.forget(&changed, &others[i])
	}
	p.forgetRange(&changed)
}

// forget makes the bytes over the keys of a rowset unknown. Rowsets come by first key, and changed
// is the range of those over which the bytes are not unknown yet: of overlapping rowsets it is
// forgotten once.
func (p *profile) forget(changed *keyRange, r *RowSetInfo) {
	if changed.some && r.wellFormed() && bytes.Compare(r.MinKey, changed.last) > 0 {
		p.forgetRange(changed)
		*changed = keyRange{}
	}
	changed.add(r)
}

// forgetRange makes the bytes between all neighbors unknown of which one is in a range, or the
// range is between them.
func (p *profile) forgetRange(changed *keyRange) {
	if !changed.some {
		return
	}
	i := sort.Search(len(p.ends), func(i int) bool { return bytes.Compare(p.ends[i].key, changed.first) >= 0 })
	for ; i < len(p.ends) && (i == 0 || bytes.Compare(p.ends[i-1].key, changed.last) <= 0); i++ {
		p.bytes[i] = unknown
	}
	if len(p.bytes) > 0 {
		p.bytes[0] = 0
	}
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
	return *s.place(id) == id
}

// add adds an ID and reports whether it is new.
func (s *idSet) add(id uint64) bool {
	if id == 0 {
		isNew := !s.zero
		s.zero = true
		return isNew
	}
	p := s.place(id)
	isNew := *p != id
	*p = id
	return isNew
}

// place returns the place of an ID that is not 0, or the free one where it would be.
func (s *idSet) place(id uint64) *uint64 {
	mask := len(s.table) - 1
	for i := int(id*0x9E3779B97F4A7C15>>32) & mask; ; i = (i + 1) & mask {
		if p := &s.table[i]; *p == id || *p == 0 {
			return p
		}
	}
}
