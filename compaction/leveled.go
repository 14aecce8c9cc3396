package compaction

import (
	"fmt"
	"slices"
)

// Leveled merges rowsets of one level until no two of them overlap: leveled compaction, as in
// LevelDB and RocksDB. The level of a rowset shows in its share of the data between its keys.
//
// A read by key looks into one rowset of each level, so this policy reads least. A byte is
// rewritten about Ratio/2 times for each level. It suits tables that are mostly read by key. The
// zero value is ready to use.
type Leveled struct {
	// Ratio is the ratio between the sizes of two levels: 1.5 to 1000. Default: 10.
	Ratio float64
}

func (l Leveled) filled() Leveled {
	if l.Ratio == 0 {
		l.Ratio = 10
	}
	return l
}

// Validate reports everything that is wrong with the options.
func (l Leveled) Validate() error {
	if l = l.filled(); !validRatio(l.Ratio) {
		return fmt.Errorf("Ratio is %v, want 1.5 to 1000", l.Ratio)
	}
	return nil
}

// Pick begins with the level of the smallest rowsets per key. There it finds the key that most
// rowsets of the level cover, and takes the widest of these rowsets, with the rowsets of the level
// that overlap it, by first key, within the budget. If the options are not valid, it picks nothing.
// Rowsets that have only one key in common do not overlap. The quality is by how much the merge
// lowers the depth; see Spans. It takes time O(n log n) in the number of rowsets.
func (l Leveled) Pick(layout Layout, budget int64) Choice {
	if l.Validate() != nil {
		return Choice{}
	}
	spans := Spans(layout)
	of, count := levels(layout, spans, l.filled().Ratio)
	usable := make([]bool, len(spans))
	for _, i := range layout.usable(budget) {
		usable[i] = spans[i].Width() > 0
	}
	byLevel := make([]level, count)
	for _, e := range layout.profile().ends {
		if !usable[e.set] {
			continue
		}
		if l := &byLevel[of[e.set]]; e.last {
			l.ends = append(l.ends, spans[e.set].To)
		} else {
			l.sets = append(l.sets, e.set)
		}
	}
	for n, level := range slices.Backward(byLevel) {
		sets := level.sets
		widest := level.widestAtDeepest(spans)
		if widest < 0 {
			continue
		}
		chosen := []int{widest}
		for _, i := range sets {
			if i != widest && spans[i].From < spans[widest].To && spans[widest].From < spans[i].To {
				chosen = append(chosen, i)
			}
		}
		if sets := within(layout, chosen, budget); len(sets) >= 2 {
			c := layout.choice(sets)
			c.Quality = gain(spans, sets)
			c.Why = fmt.Sprintf("%d rowsets of level %d overlap", len(chosen), n)
			return c
		}
	}
	return Choice{}
}

// level has the rowsets of a level that a merge may take.
type level struct {
	sets []int     // by From
	ends []float64 // their To, ascending
}

// widestAtDeepest returns the widest rowset over the place that most of the level span, -1 if none
// overlap.
func (l *level) widestAtDeepest(spans []Span) int {
	ended, depth, place := 0, 1, 0.0
	for k, i := range l.sets {
		for l.ends[ended] <= spans[i].From {
			ended++
		}
		if k+1-ended > depth {
			depth, place = k+1-ended, spans[i].From
		}
	}
	widest := -1
	if depth > 1 {
		for _, i := range l.sets {
			if spans[i].From <= place && place < spans[i].To && (widest < 0 ||
				spans[i].Width() > spans[widest].Width()) {
				widest = i
			}
		}
	}
	return widest
}

// Gain returns by how much merging the rowsets of a choice lowers the depth of the table; see
// Spans. It can be negative: a merge of rowsets that are far apart spans what is between them.
func (c Choice) Gain(layout Layout) float64 {
	chosen := newIDSet(len(c.RowSets))
	for _, id := range c.RowSets {
		chosen.add(id)
	}
	var sets []int
	for i := range layout.RowSets {
		if chosen.has(layout.RowSets[i].ID) {
			sets = append(sets, i)
		}
	}
	if len(sets) == 0 {
		return 0
	}
	return gain(Spans(layout), sets)
}

// leastWorth is the worth of a merge that a policy picks although the depth does not fall: a policy
// may have its reasons.
const leastWorth = 0.01

// Worth returns how much a choice improves reads, above 0: its quality or, if it has none, its gain.
func (c Choice) Worth(layout Layout) float64 {
	if c.Quality > 0 { // not NaN
		return c.Quality
	}
	return max(c.Gain(layout), leastWorth)
}

// gain returns by how much merging sets lowers the depth.
func gain(spans []Span, sets []int) (sum float64) {
	from, to := 1.0, 0.0
	for _, i := range sets {
		sum += spans[i].Width()
		from, to = min(from, spans[i].From), max(to, spans[i].To)
	}
	return sum - (to - from)
}
