package compaction

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// splitLayout returns rowsets side by side between two keys, or of random keys.
func splitLayout(r *rand.Rand, id *uint64, from, to uint64, n int) (sets []RowSetInfo) {
	ends := make([]uint64, 2*n)
	for i := range ends {
		ends[i] = from + r.Uint64N(to-from)
	}
	slices.Sort(ends)
	key := func(k uint64) []byte { return binary.BigEndian.AppendUint64([]byte("key"), k) }
	for i := range n {
		*id++
		sets = append(sets, RowSetInfo{ID: *id, MinKey: key(ends[2*i]), MaxKey: key(ends[2*i+1]),
			Bytes: 1 + r.Int64N(mib)})
	}
	return sets
}

// indexesOf returns the indexes of the rowsets of a choice, ascending.
func indexesOf(l *Layout, c Choice) (list []int) {
	for i := range l.RowSets {
		if slices.Contains(c.RowSets, l.RowSets[i].ID) {
			list = append(list, i)
		}
	}
	return list
}

// All functions give the same results for a layout that was made by replacing rowsets as for a
// layout with these rowsets from the start.
func TestReplacedLayoutsAreLikeNewOnes(t *testing.T) {
	r := seedtest.Rand(t)
	id := uint64(0)
	l := Layout{Table: "t", RowSetBytes: mib}
	policies, most := Named(), 0
	for range 120 {
		if r.IntN(3) == 0 {
			l.Replace(nil, splitLayout(r, &id, 0, 1<<62, 1+r.IntN(9)))
		}
		if r.IntN(8) == 0 { // some others, which a policy would not choose
			hostile := hostileLayout(r).RowSets
			slices.SortStableFunc(hostile, func(a, b RowSetInfo) int { return slices.Compare(a.MinKey, b.MinKey) })
			l.Replace(nil, hostile)
		}
		if n := len(l.RowSets); n > 0 && r.IntN(2) == 0 { // the same rowsets with other sizes
			var old []int
			var others []RowSetInfo
			for i := r.IntN(n); i < n; i += 1 + r.IntN(8) {
				old, others = append(old, i), append(others, l.RowSets[i])
				if set := &others[len(others)-1]; set.Bytes >= 0 && set.Bytes < 1<<40 {
					set.Bytes = 1 + r.Int64N(mib)
				}
			}
			if len(old) > 0 {
				l.Replace(old, others)
				if !slices.EqualFunc(old, others,
					func(i int, r RowSetInfo) bool {
						return l.RowSets[i].ID == r.ID && l.RowSets[i].Bytes == r.Bytes
					}) {
					t.Fatal("a rowset with other sizes is not at its place")
				}
			}
		}
		if n := len(l.RowSets); n > 60 && r.IntN(2) == 0 { // some are dropped
			var old []int
			for i := r.IntN(n); i < n; i += 1 + r.IntN(8) {
				old = append(old, i)
			}
			l.Replace(old, nil)
		}
		fresh := Layout{Table: l.Table, RowSetBytes: l.RowSetBytes, RowSets: slices.Clone(l.RowSets)}
		if !slices.IsSortedFunc(l.RowSets, func(a, b RowSetInfo) int { return slices.Compare(a.MinKey, b.MinKey) }) {
			t.Fatal("not ordered by first key")
		}
		must.Equal(t, l.MaxHeight(), fresh.MaxHeight(), "height")
		if r.IntN(2) == 0 { // else several changes are computed at once
			want := Spans(fresh)
			for i, s := range Spans(l) {
				if math.Abs(s.From-want[i].From) > 1e-12 || math.Abs(s.To-want[i].To) > 1e-12 {
					t.Fatalf("span %d of %d: %v, want %v", i, len(want), s, want[i])
				}
			}
		}
		most = max(most, len(l.RowSets))
		for _, name := range slices.Sorted(maps.Keys(policies)) { // each uses random numbers
			p := policies[name]
			got, want := p.Pick(l, 4*mib), p.Pick(fresh, 4*mib)
			if !slices.Equal(got.RowSets, want.RowSets) || math.Abs(got.Quality-want.Quality) > 1e-9 {
				t.Fatalf("%s picks %+v, want %+v", name, got, want)
			}
			if name != []string{"overlap", "tiered", "leveled", "budgeted"}[r.IntN(4)] || len(got.RowSets) == 0 {
				continue
			}
			var span keyRange
			for i := range l.RowSets {
				if slices.Contains(got.RowSets, l.RowSets[i].ID) {
					span.add(&l.RowSets[i])
				}
			}
			if first, last := numberAfter(span.first, 3), numberAfter(span.last, 3); len(span.first) == 11 &&
				first < last {
				l.Replace(indexesOf(&l, got), splitLayout(r, &id, first, last, 1+r.IntN(len(got.RowSets))))
				break
			}
		}
	}
	if most < 50 {
		t.Errorf("at most %d rowsets", most)
	}
}

// A merge of a few rowsets makes a few spans known anew, however many there are.
func TestReplaceKeepsWhatIsKnownOfOtherKeys(t *testing.T) {
	const sets, merges = 10_000, 50
	r := seedtest.Rand(t)
	id := uint64(0)
	var l Layout
	for part := range uint64(sets / 4) { // four over each key
		for range 4 {
			l.RowSets = append(l.RowSets, splitLayout(r, &id, part<<32, (part+1)<<32, 1)...)
		}
	}
	slices.SortFunc(l.RowSets, func(a, b RowSetInfo) int { return slices.Compare(a.MinKey, b.MinKey) })
	l.Replace(nil, nil)
	Spans(l)
	before := l.known.swept
	if before < 2*sets-1 {
		t.Fatalf("%d endpoints of %d rowsets", before, sets)
	}
	for range merges {
		c := Tiered{Runs: 2, Ratio: 1000}.Pick(l, 1<<40)
		if len(c.RowSets) < 2 || len(c.RowSets) > 8 {
			t.Fatalf("%+v", c)
		}
		i := slices.IndexFunc(l.RowSets, func(r RowSetInfo) bool { return slices.Contains(c.RowSets, r.ID) })
		part := numberAfter(l.RowSets[i].MinKey, 3) >> 32
		l.Replace(indexesOf(&l, c), splitLayout(r, &id, part<<32, (part+1)<<32, 2))
	}
	Spans(l)
	if n := l.known.swept - before; n > 24*merges {
		t.Errorf("%d merges of a few rowsets: %d endpoints are visited", merges, n)
	}
}

// RowSets that the caller has changed as a whole are not taken for those that are known.
func TestSpansOfChangedRowSets(t *testing.T) {
	r := seedtest.Rand(t)
	id := uint64(0)
	var l Layout
	l.Replace(nil, splitLayout(r, &id, 0, 1<<60, 9))
	Spans(l)
	for _, sets := range [][]RowSetInfo{nil, l.RowSets[1:], l.RowSets[:3], slices.Clone(l.RowSets),
		{{ID: 9, MinKey: []byte("a"), MaxKey: []byte("b"), Bytes: 1}}} {
		changed := l
		changed.RowSets = sets
		must.Equal(t, Spans(changed), Spans(Layout{RowSets: sets}))
	}
}

// After replacements, it is known whether all rowsets are usable: well-formed, with IDs that
// differ.
func TestReplaceKnowsWhetherAllAreUsable(t *testing.T) {
	r := seedtest.Rand(t)
	known := map[bool]int{}
	for range 60 {
		id := uint64(0)
		var l Layout
		for range 12 {
			others := splitLayout(r, &id, 0, 1<<62, r.IntN(4))
			for i := range others {
				switch {
				case r.IntN(12) == 0:
					others[i].ID = 1 + r.Uint64N(id)
				case r.IntN(20) == 0:
					others[i].Bytes = -1
				}
			}
			var old []int
			for i := range l.RowSets {
				if r.IntN(3) == 0 {
					old = append(old, i)
				}
			}
			l.Replace(old, others)
			fresh := Layout{RowSets: slices.Clone(l.RowSets)}
			got, want := l.usable(math.MaxInt64), fresh.usable(math.MaxInt64)
			must.Equal(t, got, want, "usable", l.RowSets)
			all := l.profile().allUsable()
			must.Equal(t, all, len(want) == len(l.RowSets), "usable rowsets", want)
			known[all]++
		}
	}
	if known[true] < 100 || known[false] < 100 {
		t.Errorf("all are usable in %d layouts, not all in %d", known[true], known[false])
	}
}
