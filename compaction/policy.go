package compaction

import (
	"bytes"
	"fmt"
	"sort"
)

// RowSetInfo is what a policy sees of a rowset.
type RowSetInfo struct {
	ID             uint64
	MinKey, MaxKey []byte // encoded keys, both inclusive
	Rows           int64  // ghosts included
	LiveRows       int64
	Bytes          int64 // of all files
	Redos, Undos   int   // delta files
}

// Layout is the rowsets of one table, by first key.
type Layout struct {
	Table   string
	RowSets []RowSetInfo
}

// Choice is the rowsets to merge, by ID, and why in one sentence.
type Choice struct {
	RowSets []uint64
	Why     string
}

// Policy chooses what a merging compaction should rewrite.
type Policy interface {
	// Pick returns rowsets to merge (two or more, or none), and why. It sees bounds, sizes and
	// histories, no files. budget is how many bytes of input it should stay below; a choice above
	// it is allowed when nothing smaller helps.
	Pick(layout Layout, budget int64) Choice
}

// None never merges.
type None struct{}

// Pick returns no rowsets.
func (None) Pick(Layout, int64) Choice { return Choice{} }

// Overlap merges where too many rowsets cover one key: the depth that a point read has to go
// through.
//
// Of the keys that at least Depth rowsets cover it takes the deepest, and of the rowsets there the
// smallest first, until the budget is used. Depth 0 means 4.
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

// deepest returns the rowsets over a key that the most rowsets cover. The rowsets come by first
// key: the depth can only rise at a first key, so only first keys are looked at.
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

// Groups splits a layout into groups of rowsets that overlap, directly or through others: merging
// each group alone leaves no overlap. A rowset that overlaps no other is a group of one.
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
