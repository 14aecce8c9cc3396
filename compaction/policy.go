package compaction

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// RowSetInfo describes a rowset to a policy.
type RowSetInfo struct {
	ID             uint64
	MinKey, MaxKey []byte // encoded keys, both inclusive
	Rows           int64  // ghosts included
	LiveRows       int64
	Bytes          int64 // of all files
	Redos, Undos   int   // delta files
	// RedoBytes and UndoBytes are the parts of Bytes in delta files; 0 in an Event's Inputs
	// and Outputs.
	RedoBytes, UndoBytes int64
}

// Layout contains the rowsets of one table, ordered by first key.
type Layout struct {
	Table       string
	RowSetBytes int64 // size at which a merge starts a new rowset; 0 = 32 MiB
	RowSets     []RowSetInfo

	known *profile // of RowSets, from Replace; nil if not known
}

// defaultRowSetBytes is the size that Layout.RowSetBytes 0 means. It equals
// rowset.DefaultTargetBytes, which package compaction does not import.
const defaultRowSetBytes = 32 << 20

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
	// sizes but no files, and must not use the table. It does not see rowsets that other
	// compactions are rewriting. It may be called from several goroutines. The input should stay
	// below budget bytes; a choice above it is allowed if nothing smaller helps. Pick is called
	// again after each merge until it returns none.
	//
	// A choice that Choice.Check refuses and a panic are reported as a merge that failed.
	Pick(layout Layout, budget int64) Choice
}

// Check reports why a table with this layout cannot be merged as c says: c does not name two or
// more rowsets, each once, that the layout has. Errors: ErrNotFound for a rowset that it does not
// have.
func (c Choice) Check(layout Layout) error {
	if len(c.RowSets) < 2 {
		return fmt.Errorf("a merge of %d rowsets, want two or more", len(c.RowSets))
	}
	chosen, found := newIDSet(len(c.RowSets)), newIDSet(len(c.RowSets))
	for _, id := range c.RowSets {
		if !chosen.add(id) {
			return fmt.Errorf("rowset %d is chosen twice", id)
		}
	}
	for i := range layout.RowSets {
		if id := layout.RowSets[i].ID; chosen.has(id) {
			found.add(id)
		}
	}
	for _, id := range c.RowSets {
		if !found.has(id) {
			return fmt.Errorf("rowset %d: %w", id, ErrNotFound)
		}
	}
	return nil
}

// None never merges.
type None struct{}

// Pick returns no rowsets.
func (None) Pick(Layout, int64) Choice { return Choice{} }

// Overlap merges where too many rowsets cover one key, since a point read has to look into each of
// them.
//
// It takes the key that most rowsets cover, if at least Depth do, and of these rowsets the smallest
// first, until the budget is used up. Depth 0 means 4. Rowsets that are not well-formed (see Spans)
// are not considered.
type Overlap struct{ Depth int }

// Pick finds the deepest key and the rowsets over it, in time O(n log n).
func (o Overlap) Pick(layout Layout, budget int64) Choice {
	least := o.Depth
	if least <= 0 {
		least = 4
	}
	one := layout.together()
	place := layout.deepest(one, 1)[0]
	if place.depth < max(least, 2) {
		return Choice{}
	}
	cover := layout.cover(one, 0, place)
	slices.SortStableFunc(cover, layout.smaller)
	c := layout.choice(within(layout, cover, budget))
	if len(c.RowSets) < 2 { // two, even above the budget
		c = layout.choice(cover[:2])
	}
	c.Why = fmt.Sprintf("%d rowsets cover one key", len(cover))
	return c
}

// The functions below refer to rowsets by their indexes in a layout.

// wellFormed reports whether policies consider the rowset.
func (r *RowSetInfo) wellFormed() bool { return r.Bytes >= 0 && bytes.Compare(r.MinKey, r.MaxKey) <= 0 }

// usable returns the rowsets that a policy may choose: those that are well-formed and have at most
// budget bytes; of several with one ID only the first.
func (l Layout) usable(budget int64) []int {
	all := l.profile().allUsable()
	var seen *idSet
	if !all {
		seen = newIDSet(len(l.RowSets))
	}
	sets := make([]int, 0, len(l.RowSets))
	for i := range l.RowSets {
		r := &l.RowSets[i]
		if (all || seen.add(r.ID) && r.wellFormed()) && r.Bytes <= budget {
			sets = append(sets, i)
		}
	}
	return sets
}

func (l Layout) smaller(a, b int) int { return cmp.Compare(l.RowSets[a].Bytes, l.RowSets[b].Bytes) }

// choice returns the choice of sets, in their order.
func (l Layout) choice(sets []int) (c Choice) {
	for _, i := range sets {
		c.RowSets = append(c.RowSets, l.RowSets[i].ID)
	}
	return c
}

// within returns as many sets as the budget allows, from the first on.
func within(l Layout, sets []int, budget int64) []int {
	for n, i := range sets {
		if l.RowSets[i].Bytes > budget {
			return sets[:n]
		}
		budget -= l.RowSets[i].Bytes
	}
	return sets
}

// together returns the group of each rowset: 0 if a policy may choose it, else -1.
func (l Layout) together() []int {
	group := make([]int, len(l.RowSets))
	if l.profile().allUsable() {
		return group
	}
	for i := range group {
		group[i] = -1
	}
	for _, i := range l.usable(math.MaxInt64) {
		group[i] = 0
	}
	return group
}

// place is an endpoint of a profile, the last one of its key at which a rowset of a group begins,
// and how many of the group are over the key.
type place struct {
	end   int
	depth int
}

// deepest returns, for each of some groups of rowsets, the first key that the most of the group are
// over. Rowset i is in group[i], or in none if that is negative. The depth increases only at first
// keys, so only those are considered.
func (l Layout) deepest(group []int, groups int) []place {
	best, depth := make([]place, groups), make([]int, groups)
	for i, e := range l.profile().ends {
		g := group[e.set]
		switch {
		case g < 0:
		case e.last:
			depth[g]--
		default:
			if depth[g]++; depth[g] > best[g].depth {
				best[g] = place{i, depth[g]}
			}
		}
	}
	return best
}

// cover returns the rowsets of a group that are over the key of its deepest place, in their order.
func (l Layout) cover(group []int, g int, at place) []int {
	sets := make([]int, 0, at.depth)
	over := make([]bool, len(l.RowSets))
	for _, e := range l.profile().ends[:at.end+1] {
		over[e.set] = !e.last && group[e.set] == g
	}
	for i, is := range over {
		if is {
			sets = append(sets, i)
		}
	}
	return sets
}

// MaxHeight returns the number of rowsets over the key that most rowsets are over. Rowsets that are
// not well-formed (see Spans) do not count. It takes time O(n log n) in the number of rowsets.
func (l Layout) MaxHeight() int {
	return l.deepest(l.together(), 1)[0].depth
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
