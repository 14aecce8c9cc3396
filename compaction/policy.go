package compaction

import (
	"bytes"
	"fmt"
	"sort"
)

// RowSetInfo describes a rowset to a policy.
type RowSetInfo struct {
	ID             uint64
	MinKey, MaxKey []byte // encoded keys, both inclusive
	Rows           int64  // ghosts included
	LiveRows       int64
	Bytes          int64 // of all files
	Redos, Undos   int   // delta files
}

// Layout contains the rowsets of one table, ordered by first key.
type Layout struct {
	Table   string
	RowSets []RowSetInfo
}

// Choice contains the IDs of the rowsets to merge, and the reason in one sentence.
type Choice struct {
	RowSets []uint64
	Why     string
	// Quality is how much the merge is worth, by a measure of the policy; 0 if it has none.
	Quality float64
}

// Policy chooses what a merging compaction should rewrite.
type Policy interface {
	// Pick returns rowsets to merge (two or more, or none), and the reason. It sees bounds and
	// sizes but no files. The input should stay below budget bytes; a choice above it is allowed if
	// nothing smaller helps.
	Pick(layout Layout, budget int64) Choice
}

// None never merges.
type None struct{}

// Pick returns no rowsets.
func (None) Pick(Layout, int64) Choice { return Choice{} }

// Overlap merges where too many rowsets cover one key, since a point read has to look into each of
// them.
//
// It takes the key that most rowsets cover, if at least Depth do, and of these rowsets the smallest
// first, until the budget is used up. Depth 0 means 4.
type Overlap struct{ Depth int }

// Pick finds the deepest key and the rowsets over it.
func (o Overlap) Pick(layout Layout, budget int64) Choice {
	least := o.Depth
	if least <= 0 {
		least = 4
	}
	cover := deepest(layout.RowSets)
	if len(cover) < max(least, 2) {
		return Choice{}
	}
	sort.SliceStable(cover, func(i, j int) bool { return cover[i].Bytes < cover[j].Bytes })
	c := Choice{Why: fmt.Sprintf("%d rowsets cover one key", len(cover))}
	var used int64
	for _, r := range cover {
		if used += r.Bytes; used > budget && len(c.RowSets) >= 2 {
			break
		}
		c.RowSets = append(c.RowSets, r.ID)
	}
	return c
}

// deepest returns the rowsets over a key that the most rowsets cover. The rowsets are ordered by
// first key. The depth can increase only at a first key, so only first keys are considered.
func deepest(sets []RowSetInfo) []RowSetInfo {
	var open, best []RowSetInfo
	for _, r := range sets {
		kept := open[:0:0]
		for _, x := range open {
			if bytes.Compare(x.MaxKey, r.MinKey) >= 0 {
				kept = append(kept, x)
			}
		}
		open = append(kept, r)
		if len(open) > len(best) {
			best = append([]RowSetInfo(nil), open...)
		}
	}
	return best
}

// Groups splits a layout into groups of rowsets that overlap, directly or through others. Merging
// each group separately leaves no overlap. A rowset that overlaps no other is its own group.
func Groups(layout Layout) [][]RowSetInfo {
	var groups [][]RowSetInfo
	var reach []byte
	for i, r := range layout.RowSets {
		if i == 0 || bytes.Compare(r.MinKey, reach) > 0 {
			groups = append(groups, nil)
			reach = r.MaxKey
		} else if bytes.Compare(r.MaxKey, reach) > 0 {
			reach = r.MaxKey
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], r)
	}
	return groups
}
