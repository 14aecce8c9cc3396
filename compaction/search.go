package compaction

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of a search, in steps: a step looks at one rowset, or extends one set by it.
const (
	maxBoundSteps = 64 << 20 // all pairs of 8,000 rowsets
	fewBoundSteps = 1 << 20  // after it, only bounds above the tolerance count
	fewExactSteps = 1 << 20  // after it, only bounds above the tolerance count
	maxExactSteps = 16 << 20
)

// candidate is a rowset in a search.
type candidate struct {
	Span
	value float64 // what it adds to the quality, before the union is subtracted
	bytes uint64  // at least 1
	set   int     // index in the layout
	bound float64 // no set of candidates from here on, within the budget, has more value
	upper float64 // no set that begins with this candidate has more quality; 0 before the first pass
	hope  float64 // likewise, known before; see boundGroups
}

// density returns the value per byte.
func (c *candidate) density() float64 { return c.value / float64(c.bytes) }

// search looks for the set with the best quality. A set belongs to its first candidate, the one
// with the lowest From:
//
//	first          ├──────────────┤
//	others             ├────┤ ├────────┤           From is not below first's
//	last                    ├──────────────┤       To is the highest
//	union          └───────────────────────┘
//
// For each first candidate the others come by ascending To, so that the union grows from step to
// step and each prefix of the others is one knapsack problem.
type search struct {
	options Budgeted
	layout  Layout
	budget  uint64
	all     []candidate // by To
	firsts  []int       // indexes of all, the most promising first
	greedy  greedy
	exact   exact

	best    []int   // indexes of all
	quality float64 // of best; at least MinQuality, also without a set

	boundSteps, exactSteps int
}

func newSearch(b Budgeted, layout Layout, budget int64) *search {
	s := &search{options: b, layout: layout, budget: uint64(budget), quality: b.MinQuality}
	spans := Spans(layout)
	full := float64(cmp.Or(max(0, layout.RowSetBytes), defaultRowSetBytes))
	for _, i := range layout.usable(budget) {
		r := &layout.RowSets[i]
		c := candidate{Span: spans[i], bytes: uint64(max(r.Bytes, 1)), set: i}
		c.value = c.Width() + b.SmallRowSets*max(0, 1-float64(r.Bytes)/full)
		if c.value > 0 {
			s.all = append(s.all, c)
		}
	}
	slices.SortStableFunc(s.all, func(a, b candidate) int { return cmp.Compare(a.To, b.To) })
	s.greedy.budget, s.exact.budget = s.budget, s.budget
	s.boundAll()
	return s
}

// boundAll computes the bound of each candidate, and sorts firsts by descending From.
func (s *search) boundAll() {
	s.firsts = make([]int, len(s.all))
	for i := range s.firsts {
		s.firsts[i] = i
	}
	slices.SortStableFunc(s.firsts, func(a, b int) int { return cmp.Compare(s.all[b].From, s.all[a].From) })
	s.greedy.reset()
	for i := 0; i < len(s.firsts); {
		end := i
		for end < len(s.firsts) && s.all[s.firsts[end]].From == s.all[s.firsts[i]].From {
			s.greedy.add(&s.all[s.firsts[end]], s.firsts[end])
			end++
		}
		for ; i < end; i++ {
			s.all[s.firsts[i]].bound = s.greedy.upper()
		}
	}
	for i := range s.all {
		s.all[i].hope = s.all[i].bound - unionCost*s.all[i].Width()
	}
}

// groupFirsts is the number of first candidates that boundGroups looks at together, and manyFirsts
// how many there are at least if it looks at all.
const (
	groupFirsts = 64
	manyFirsts  = 16 * groupFirsts
)

// boundGroups bounds the quality of sets that begin with one of some candidates that begin next to
// each other:
//
//	firsts       ├────┤
//	              ├─────┤
//	                 ├────┤
//	last                    ├─────┤
//	union            └────────────┘    at least
//
// The bound that boundAll computes counts the best candidates from there on, wherever they are. It
// is much too high for a budget that is small against the table: then the best candidates are not
// next to each other. Candidates are in firsts by descending From.
func (s *search) boundGroups() {
	for at := 0; at < len(s.firsts); at += groupFirsts {
		group := s.firsts[at:min(at+groupFirsts, len(s.firsts))]
		low, high := s.all[group[len(group)-1]].From, s.all[group[0]].From
		bound := s.all[group[len(group)-1]].bound
		upper := 0.0
		s.greedy.reset()
		start, _ := slices.BinarySearchFunc(s.all, low, func(c candidate, from float64) int {
			return cmp.Compare(c.To, from)
		})
		for i := start; i < len(s.all); i++ {
			s.boundSteps++
			c := &s.all[i]
			if c.From < low {
				continue
			}
			cost := unionCost * max(0, c.To-high)
			if bound-cost <= max(upper, s.quality) {
				upper = max(upper, bound-cost)
				break
			}
			s.greedy.add(c, i)
			upper = max(upper, s.greedy.upper()-cost)
		}
		for _, first := range group {
			s.all[first].hope = min(s.all[first].hope, upper)
		}
	}
}

// choice runs both passes.
func (s *search) choice() Choice {
	if len(s.all) < 2 {
		return Choice{}
	}
	if len(s.firsts) >= manyFirsts {
		s.boundFirst(slices.MaxFunc(s.firsts, func(a, b int) int { return cmp.Compare(s.all[a].hope, s.all[b].hope) }))
		s.boundGroups()
	}
	slices.SortStableFunc(s.firsts, func(a, b int) int { return cmp.Compare(s.all[b].hope, s.all[a].hope) })
	for _, first := range s.firsts {
		hope := s.all[first].hope
		if hope <= s.quality || s.boundSteps > fewBoundSteps && hope <= s.quality*tolerance ||
			s.boundSteps > maxBoundSteps {
			break // nor is any later one better
		}
		s.boundFirst(first)
	}
	slices.SortStableFunc(s.firsts, func(a, b int) int { return cmp.Compare(s.all[b].upper, s.all[a].upper) })
	for _, first := range s.firsts {
		if s.exactSteps > fewExactSteps && s.all[first].upper <= s.quality*tolerance ||
			s.exactSteps > maxExactSteps || s.all[first].upper <= s.quality {
			break
		}
		s.solveFirst(first)
	}
	if len(s.best) < 2 {
		return Choice{}
	}
	slices.SortFunc(s.best, func(a, b int) int { return cmp.Compare(s.all[a].set, s.all[b].set) })
	var sets []int
	for _, i := range s.best {
		sets = append(sets, s.all[i].set)
	}
	c := s.layout.choice(sets)
	c.Quality = s.quality
	c.Why = fmt.Sprintf("merging %d rowsets lowers the depth by %.3f", len(sets), s.quality)
	return c
}

// others calls visit with each candidate that a set may have that begins with first, by ascending
// To, and with the cost of the union of the set if it ends there. It stops where no set can be
// better than the best one, or when visit returns false.
func (s *search) others(first int, steps *int, visit func(i int, cost float64) bool) {
	f := &s.all[first]
	start, _ := slices.BinarySearchFunc(s.all, f.From, func(c candidate, from float64) int {
		return cmp.Compare(c.To, from)
	})
	for i := start; i < len(s.all); i++ {
		*steps++
		if s.all[i].From < f.From {
			continue
		}
		cost := unionCost * (max(s.all[i].To, f.To) - f.From)
		if f.bound-cost <= s.quality || !visit(i, cost) {
			return
		}
	}
}

// boundFirst bounds the quality of sets that begin with first, and takes a good set if it finds
// one.
func (s *search) boundFirst(first int) {
	s.greedy.reset()
	upper, lower, last := 0.0, s.quality, -1
	s.others(first, &s.boundSteps, func(i int, cost float64) bool {
		s.greedy.add(&s.all[i], i)
		if i < first {
			return true
		}
		upper = max(upper, s.greedy.upper()-cost)
		if l := s.greedy.lower() - cost; l > lower {
			lower, last = l, i
		}
		return true
	})
	s.all[first].upper = upper
	if last < 0 {
		return
	}
	s.greedy.reset() // again, up to where it was best
	s.others(first, &s.boundSteps, func(i int, _ float64) bool {
		s.greedy.add(&s.all[i], i)
		return i < last
	})
	s.take(s.greedy.set(nil))
}

// solveFirst finds the best set that begins with first.
func (s *search) solveFirst(first int) {
	s.exact.reset(&s.all[first], first)
	lower, at := s.quality, int32(-1)
	s.others(first, &s.exactSteps, func(i int, cost float64) bool {
		if i != first {
			s.exactSteps += len(s.exact.states)
			if !s.exact.add(&s.all[i], i) {
				return false
			}
		}
		if i < first {
			return true
		}
		if best := s.exact.best(); best.value-cost > lower {
			lower, at = best.value-cost, best.node
		}
		return true
	})
	if at >= 0 {
		s.take(s.exact.set(at))
	}
}

// take makes set the best one, if it is.
func (s *search) take(set []int) {
	slices.Sort(set) // the order of a sum changes its last bits
	if q := s.qualityOf(set); len(set) >= 2 && q > s.quality {
		s.best, s.quality = set, q
	}
}

func (s *search) qualityOf(set []int) (q float64) {
	from, to := 1.0, 0.0
	for _, i := range set {
		c := &s.all[i]
		q += c.value
		from, to = min(from, c.From), max(to, c.To)
	}
	return q - unionCost*(to-from)
}
