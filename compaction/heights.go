package compaction

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// Heights returns, for each rowset of a layout that is ordered by first key, the number of rowsets
// over that key of it that most rowsets are over: so many a read of that key looks into. A rowset
// whose first key is above its last one has the height 0. It takes time O(n log n).
func Heights(layout Layout) []int {
	sets := layout.RowSets
	lasts := make([][]byte, len(sets))
	for i := range sets {
		lasts[i] = sets[i].MaxKey
	}
	slices.SortFunc(lasts, bytes.Compare)
	over := make([]int, len(sets)) // the first key of each rowset
	ended := 0
	for i, end := 0, 0; i < len(sets); i++ {
		for end <= i || end < len(sets) && bytes.Equal(sets[end].MinKey, sets[i].MinKey) {
			end++
		}
		for ended < len(lasts) && bytes.Compare(lasts[ended], sets[i].MinKey) < 0 {
			ended++
		}
		over[i] = end - ended
	}
	// The number increases only at first keys: the height of a rowset is the largest of those in its
	// interval.
	most := newMaxima(over)
	out := make([]int, len(sets))
	for i := range sets {
		last := sets[i].MaxKey
		end := i + sort.Search(len(sets)-i, func(k int) bool { return bytes.Compare(sets[i+k].MinKey, last) > 0 })
		if end > i {
			out[i] = most.of(i, end)
		}
	}
	return out
}

// maxima answers which number is the largest in an interval of a list: row k has the largest
// numbers of the intervals of length 2^k, by their beginning. Of 3 1 4 1, row 0 is 3 1 4 1, row 1
// is 3 4 4, and row 2 is 4.
type maxima [][]int

func newMaxima(list []int) maxima {
	m := maxima{list}
	for n := 1; 2*n <= len(list); n *= 2 {
		below := m[len(m)-1]
		row := make([]int, len(list)-2*n+1)
		for i := range row {
			row[i] = max(below[i], below[i+n])
		}
		m = append(m, row)
	}
	return m
}

// of returns the largest number in [from, to), which is not empty.
func (m maxima) of(from, to int) int {
	k := bits.Len(uint(to-from)) - 1
	return max(m[k][from], m[k][to-1<<k])
}
