package compaction

import (
	"errors"
	"fmt"
	"math"
)

// Budgeted merges the rowsets whose merge lowers the depth of the table most, for a number of bytes
// rewritten that is at most the budget: the policy of Apache Kudu. The depth is the number of
// rowsets that a read by key has to look into, on average; see Spans.
//
// Merging a set of rowsets replaces their spans by one row of rowsets side by side, from the first
// to the last of their keys. So the depth falls by
//
//	sum of the widths of the rowsets
//	- 1.003 × distance from the first From to the last To
//	+ SmallRowSets × (1 - Bytes/Layout.RowSetBytes) for each small rowset
//
// which is the quality of a choice. The factor 1.003 makes sets that do not overlap not worth their
// cost, unless some of their rowsets are much smaller than those that the merge writes. The zero
// value is ready to use.
//
// Finding the best set is a knapsack problem for each pair of a first and a last rowset. A first
// pass bounds the quality of the sets that begin with each rowset, and finds good ones. A second
// pass finds the best ones where the bound is above the best quality so far. Each stops after a
// number of steps, but not while a bound is more than 5 % above that. Of a thousand rowsets or more,
// those that begin next to each other are bounded together first. In the worst case the first pass
// takes time O(n² log n) in the number of rowsets; from 8,000 rowsets on it may stop before it has
// looked at all of them, and returns the best set that it has found.
//
// The set never exceeds the budget. Rowsets above the budget and rowsets that are not well-formed
// (see Spans) are not considered. Source: tablet spec §16, with sizes in bytes instead of MiB.
type Budgeted struct {
	// SmallRowSets is the value of merging an empty rowset with its neighbors, as a share of the
	// key space. It must be less than MinQuality, or a table of small rowsets would be rewritten
	// again and again. The default is 0.009. A negative value means 0: such a merge has no value.
	SmallRowSets float64
	// MinQuality is the quality below which nothing is merged. As in Kudu it is a depth, whatever
	// the size of the table, though a merge of the same bytes lowers the depth of a table of twice
	// the size by half as much. Default: 0.01.
	MinQuality float64
}

const (
	unionCost = 1.003 // weight of the union of the spans against the sum of their widths
	tolerance = 1.05  // ratio of a bound to a quality that is close enough
)

// filled returns a copy with the defaults filled in.
func (b Budgeted) filled() Budgeted {
	switch {
	case b.SmallRowSets == 0:
		b.SmallRowSets = 0.009
	case b.SmallRowSets < 0:
		b.SmallRowSets = 0
	}
	if b.MinQuality == 0 {
		b.MinQuality = 0.01
	}
	return b
}

// Validate reports everything that is wrong with the options.
func (b Budgeted) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	finite := func(name string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			bad("%s is %v, want a number", name, v)
		}
	}
	finite("SmallRowSets", b.SmallRowSets)
	finite("MinQuality", b.MinQuality)
	if f := b.filled(); f.MinQuality <= f.SmallRowSets || f.MinQuality < 0 {
		bad("MinQuality is %v, want more than SmallRowSets, %v", f.MinQuality, f.SmallRowSets)
	}
	return errors.Join(errs...)
}

// Pick returns a set of rowsets whose merge lowers the depth most, by first key; none if that is
// not worth MinQuality, if less than two rowsets are below the budget, or if the options are not
// valid.
func (b Budgeted) Pick(layout Layout, budget int64) Choice {
	if budget <= 0 || b.Validate() != nil {
		return Choice{}
	}
	return newSearch(b.filled(), layout, budget).choice()
}
