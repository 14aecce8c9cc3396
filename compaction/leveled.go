package compaction

import (
	"cmp"
	"fmt"
	"slices"
)

// Leveled merges rowsets of one level until no two of them overlap: leveled compaction, as in
// LevelDB and RocksDB. The level of a rowset shows in its share of the data between its keys.
//
// A read by key looks into one rowset of each level, so this policy reads least. A byte is rewritten
// about Ratio/2 times for each level. It suits tables that are mostly read by key. The zero value is
// ready to use.
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

// Pick begins with the level of the smallest rowsets per key. There it takes the widest rowset over
// the key that most of the level cover, with those of the level that overlap it, by first key,
// within the budget; none if the options are not valid. Rowsets that have only one key in common do
// not overlap. The quality is by how much the merge lowers the depth; see Spans. It takes time
// O(n log n) in the number of rowsets.
func (l Leveled) Pick(layout Layout, budget int64) Choice {
	if l.Validate() != nil {
		return Choice{}
	}
	spans := Spans(layout)
	of, count := levels(layout, spans, l.filled().Ratio)
	byLevel := make([][]int, count)
	for _, i := range layout.usable(budget) {
		if spans[i].Width() > 0 {
			byLevel[of[i]] = append(byLevel[of[i]], i)
		}
	}
	for level, sets := range slices.Backward(byLevel) {
		slices.SortStableFunc(sets, func(a, b int) int { return cmp.Compare(spans[a].From, spans[b].From) })
		widest := widestAtDeepest(sets, spans)
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
			c.Why = fmt.Sprintf("%d rowsets of level %d overlap", len(chosen), level)
			return c
		}
	}
	return Choice{}
}

// widestAtDeepest returns the widest rowset over the place that most of sets span, -1 if none
// overlap. The sets are ordered by From.
func widestAtDeepest(sets []int, spans []Span) int {
	ends := make([]float64, len(sets))
	for k, i := range sets {
		ends[k] = spans[i].To
	}
	slices.Sort(ends)
	ended, depth, place := 0, 1, 0.0
	for k, i := range sets {
		for ends[ended] <= spans[i].From {
			ended++
		}
		if k+1-ended > depth {
			depth, place = k+1-ended, spans[i].From
		}
	}
	widest := -1
	if depth > 1 {
		for _, i := range sets {
			if spans[i].From <= place && place < spans[i].To && (widest < 0 || spans[i].Width() > spans[widest].Width()) {
				widest = i
			}
		}
	}
	return widest
}

// Gain returns by how much merging the rowsets of a choice lowers the depth of the table; see Spans.
// It can be negative: a merge of rowsets that are far apart spans what is between them.
func (c Choice) Gain(layout Layout) float64 {
	var sets []int
	for i := range layout.RowSets {
		if slices.Contains(c.RowSets, layout.RowSets[i].ID) {
			sets = append(sets, i)
		}
	}
	if len(sets) == 0 {
		return 0
	}
	return gain(Spans(layout), sets)
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
