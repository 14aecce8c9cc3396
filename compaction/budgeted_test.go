package compaction

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

const mib = 1 << 20

// The scores in the specification, which Kudu's own policy computes too. A size is in units of
// MiB/48.
func TestBudgetedReturnsTheScoresOfKudu(t *testing.T) {
	for _, test := range []struct {
		layout  string
		small   float64
		budget  int64 // MiB
		quality float64
		want    []uint64
	}{
		{"1:C-c=48 2:B-a=48 3:A-b=48", 0, 256, 1.9407, []uint64{3, 2, 1}},
		{"1:A-B=1382 2:A-B=1382 3:B-C=1382", 0, 256, 0.66647, []uint64{1, 2}},
		{"1:A-B=461 2:A-B=461 3:B-C=461", 0, 256, 0.68257, []uint64{1, 2, 3}},
		{"1:A-B=48 2:B-C=48", 0, 256, 0.01444, []uint64{1, 2}},
		{"1:A-B=96 2:B-C=96", 0, 256, 0.01388, []uint64{1, 2}},
		{"1:A-B=192 2:B-C=192", 0, 256, 0.01275, []uint64{1, 2}},
		{"1:A-B=384 2:B-C=384", 0, 256, 0.01050, []uint64{1, 2}},
		{"1:A-B=768 2:B-C=768", 0, 256, 0, nil},
		{"1:A-B=1536 2:B-C=1536", 0, 256, 0, nil},
		{"1:A-B=48 2:B-C=48", -1, 256, 0, nil},
		{"1:A-B=512 2:B-C=512 3:C-D=512", 0, 256, 0.0150, []uint64{1, 2, 3}},
		{"1:A-B=1536 2:A-B=1536 3:C-D=384 4:D-E=384 5:E-F=384 6:F-G=384", 0, 64, 0.66466, []uint64{1, 2}},
		{"", 0, 256, 0, nil},
		{"1:A-B=48", 0, 256, 0, nil},
	} {
		l := layoutOf(test.layout)
		for i := range l.RowSets {
			l.RowSets[i].Bytes = l.RowSets[i].Bytes * mib / 48
		}
		got := Budgeted{SmallRowSets: test.small}.Pick(l, test.budget*mib)
		if !slices.Equal(got.RowSets, test.want) || math.Abs(got.Quality-test.quality) > 0.00006 ||
			(got.Why == "") != (got.RowSets == nil) {
			t.Errorf("%s: %+v, want %v with %v", test.layout, got, test.want, test.quality)
		}
	}
}

// ycsbLayout returns the rowsets of a real table, by first key. The data contain sizes and keys.
func ycsbLayout(t testing.TB) Layout {
	l := Layout{Table: "ycsb"}
	for _, line := range corpustest.Lines(t, corpustest.Dir(t)+"/data/ycsb-test-rowsets.tsv") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		size := must.Get(strconv.ParseInt(f[0], 10, 64))(t)
		l.RowSets = append(l.RowSets,
			RowSetInfo{ID: uint64(len(l.RowSets) + 1), MinKey: []byte(f[1]), MaxKey: []byte(f[2]), Bytes: size * mib})
	}
	slices.SortStableFunc(l.RowSets, func(a, b RowSetInfo) int {
		return cmp.Compare(string(a.MinKey), string(b.MinKey))
	})
	return l
}

// someOf returns n neighbors of the real layout, of which it takes each third or so, with random
// sizes of up to a MiB.
func someOf(r *rand.Rand, l Layout, n int) Layout {
	out := Layout{Table: l.Table}
	for i := r.IntN(len(l.RowSets) - 4*n); len(out.RowSets) < n; i++ {
		if r.IntN(3) == 0 {
			out.RowSets = append(out.RowSets, l.RowSets[i])
		}
	}
	if r.IntN(3) > 0 {
		for i := range out.RowSets {
			out.RowSets[i].Bytes = 1 + r.Int64N(mib)
		}
	}
	return out
}

func bytesOf(l Layout, c Choice) (n int64) {
	for _, r := range l.RowSets {
		if slices.Contains(c.RowSets, r.ID) {
			n += r.Bytes
		}
	}
	return n
}

// bestOfAll returns the quality of the best of all 2^n sets within each budget; 0 if none is worth
// it.
func bestOfAll(b Budgeted, l Layout, budgets []int64) []float64 {
	b = b.filled()
	spans := Spans(l)
	type set struct {
		bytes           int64
		value, from, to float64
	}
	sets := make([]set, 1, 1<<len(spans))
	sets[0] = set{from: 1}
	best := make([]float64, len(budgets))
	for i, r := range l.RowSets {
		value := spans[i].Width() + b.SmallRowSets*max(0, 1-float64(r.Bytes)/(32*mib))
		for _, s := range sets[:len(sets):len(sets)] {
			s = set{s.bytes + r.Bytes, s.value + value, min(s.from, spans[i].From), max(s.to, spans[i].To)}
			sets = append(sets, s)
			quality := s.value - unionCost*(s.to-s.from)
			for k := range budgets {
				if quality > max(best[k], b.MinQuality) && s.bytes <= budgets[k] {
					best[k] = quality
				}
			}
		}
	}
	return best
}

func TestBudgetedFindsTheBestOfAllSets(t *testing.T) {
	r := seedtest.Rand(t)
	real := ycsbLayout(t)
	var picked, refused int
	for range 12 {
		l := someOf(r, real, 16)
		var budgets []int64
		for _, share := range []float64{0.05, 0.15, 0.4, 0.8, 1} {
			total := 0.0
			for _, set := range l.RowSets {
				total += float64(set.Bytes)
			}
			budgets = append(budgets, int64(share*total))
		}
		best := bestOfAll(Budgeted{}, l, budgets)
		for i, budget := range budgets {
			c := Budgeted{}.Pick(l, budget)
			if n := bytesOf(l, c); n > budget {
				t.Fatalf("budget %d of %+v: %v are %d bytes", budget, l.RowSets, c.RowSets, n)
			}
			if math.Abs(c.Quality-best[i]) > 1e-9 {
				t.Fatalf("budget %d of %+v: quality %v, want %v", budget, l.RowSets, c.Quality, best[i])
			}
			if len(c.RowSets) > 0 {
				picked++
			} else {
				refused++
			}
		}
	}
	if picked < 20 || refused < 1 {
		t.Errorf("%d picks, %d without one", picked, refused)
	}
}

// The quality does not fall as the budget grows, also with more rowsets than can be tried out.
func TestBudgetedIsNoWorseWithMoreBudget(t *testing.T) {
	r := seedtest.Rand(t)
	real := ycsbLayout(t)
	for range 3 {
		l := someOf(r, real, 120)
		last := Choice{}
		for budget := int64(1); budget < 1<<34; budget += budget/3 + 1 {
			c := Budgeted{}.Pick(l, budget)
			if n := bytesOf(l, c); n > budget || c.Quality < last.Quality {
				t.Fatalf("budget %d of %+v: %+v, %d bytes, after %+v", budget, l.RowSets, c, n, last)
			}
			last = c
		}
		if len(last.RowSets) < 2 {
			t.Errorf("nothing is picked with %d bytes for %+v", int64(1<<34), l.RowSets)
		}
	}
}

// The first pass alone is good, but not always the best: the second one is needed.
func TestBudgetedIsExactWhereGreedIsNot(t *testing.T) {
	// The densest rowset leaves no room for the other two, which are worth more together.
	l := layoutOf("1:A-Z=60 2:A-Y=50 3:A-Y=50")
	l.RowSets[0].Bytes = 51
	if c := (Budgeted{}).Pick(l, 100); !slices.Equal(c.RowSets, []uint64{2, 3}) {
		t.Errorf("%+v", c)
	}
}

func TestBudgetedOnARealLayout(t *testing.T) {
	l := ycsbLayout(t)
	s := newSearch(Budgeted{}.filled(), l, 128*mib)
	c := s.choice()
	// A step takes about 20 ns.
	if s.boundSteps > 4_500_000 || s.exactSteps > 100_000 {
		t.Errorf("%d and %d steps", s.boundSteps, s.exactSteps)
	}
	if math.Abs(c.Quality-0.17362) > 0.00001 || len(c.RowSets) != 10 || bytesOf(l, c) > 128*mib {
		t.Errorf("%+v, %d bytes", c, bytesOf(l, c))
	}
	if small := (Budgeted{}).Pick(l, 32*mib); small.Quality <= 0 || small.Quality >= c.Quality ||
		bytesOf(l, small) > 32*mib {
		t.Errorf("%+v, %d bytes", small, bytesOf(l, small))
	}
}

func BenchmarkBudgeted(b *testing.B) {
	l := ycsbLayout(b)
	for _, budget := range []int64{32, 128, 256} {
		b.Run("rowsets=6815/budget="+strconv.FormatInt(budget, 10)+"MB", func(b *testing.B) {
			for b.Loop() {
				if c := (Budgeted{}).Pick(l, budget*mib); len(c.RowSets) == 0 {
					b.Fatal("nothing picked")
				}
			}
		})
	}
}

// What is known of rowsets that begin next to each other before they are looked at one by one is true of
// each, and rules most of them out if the budget is small against the table.
func TestBudgetedBoundsGroups(t *testing.T) {
	r := seedtest.Rand(t)
	var l Layout
	const rows, side = 60, 25 // rowsets over each key, rowsets side by side
	for row := range uint64(rows) {
		from := uint64(0)
		for i := range uint64(side) {
			to := (i + 1) * 1_000_000
			if i+1 < side {
				to += r.Uint64N(400_000)
			}
			l.RowSets = append(l.RowSets, RowSetInfo{ID: row*side + i, Bytes: 1000 + r.Int64N(200),
				MinKey: binary.BigEndian.AppendUint64(nil, from), MaxKey: binary.BigEndian.AppendUint64(nil, to-1)})
			from = to
		}
	}
	const budget = 30_000
	s := newSearch(Budgeted{}.filled(), l, budget)
	s.boundGroups()
	hopes := make([]float64, len(s.all))
	for i := range s.all {
		hopes[i] = s.all[i].hope
	}
	for i := range s.all {
		s.quality, s.best = s.options.MinQuality, nil
		s.boundFirst(i)
		if worth := max(s.all[i].upper, s.quality); worth > s.options.MinQuality && worth > hopes[i]+1e-9 {
			t.Fatalf("a set that begins with rowset %d may have quality %v, the group at most %v", s.all[i].set,
				worth, hopes[i])
		}
	}
	all := s.boundSteps
	s = newSearch(Budgeted{}.filled(), l, budget)
	if c := s.choice(); c.Quality < 0.9 || bytesOf(l, c) > budget {
		t.Errorf("quality %v, %d bytes", c.Quality, bytesOf(l, c))
	}
	if 3*s.boundSteps > all {
		t.Errorf("%d steps, one by one %d", s.boundSteps, all)
	}
}

// Layouts that would take the search too long get a good set.
func TestBudgetedEndsOnHostileLayouts(t *testing.T) {
	r := seedtest.Rand(t)
	var l Layout
	for id := range uint64(1500) {
		key := r.Uint64N(1 << 40)
		l.RowSets = append(l.RowSets, RowSetInfo{ID: id, Bytes: 1 + r.Int64N(1<<40),
			MinKey: binary.BigEndian.AppendUint64(nil, key),
			MaxKey: binary.BigEndian.AppendUint64(nil, key+r.Uint64N(1<<30))})
	}
	s := newSearch(Budgeted{}.filled(), l, 1<<42)
	if c := s.choice(); c.Quality <= 0 || bytesOf(l, c) > 1<<42 {
		t.Errorf("quality %v, %d bytes", c.Quality, bytesOf(l, c))
	}
	if n := len(l.RowSets); s.boundSteps > n*n || s.exactSteps > maxExactSteps+n*maxStates {
		t.Errorf("%d and %d steps", s.boundSteps, s.exactSteps)
	}
}

func TestBudgetedValidatesItsOptions(t *testing.T) {
	nan := math.NaN()
	for _, b := range []Budgeted{{SmallRowSets: 0.01}, {SmallRowSets: 0.5, MinQuality: 0.5}, {MinQuality: -1},
		{MinQuality: nan},
		{SmallRowSets: nan}, {MinQuality: math.Inf(1)}, {SmallRowSets: -1, MinQuality: -0.5}} {
		must.Refuse(t, b.Validate(), b, "is valid")
		if c := b.Pick(layoutOf("1:A-B=10 2:A-B=10 3:A-B=10"), 100); len(c.RowSets) > 0 {
			t.Errorf("%+v picks %v", b, c.RowSets)
		}
	}
	for _, b := range []Budgeted{{}, {SmallRowSets: -1}, {SmallRowSets: 0.4, MinQuality: 0.5}} {
		must.Do(t, b.Validate(), b)
		if c := b.Pick(layoutOf("1:A-B=10 2:A-B=10 3:A-B=10"), 100); len(c.RowSets) != 3 {
			t.Errorf("%+v picks %v", b, c.RowSets)
		}
	}
}
