package compaction

import "math"

// levels returns the level of each rowset of a layout, and how many levels there are. A rowset that
// is not well-formed has level -1.
//
// Stores of sorted runs keep their data in levels: each run spans all keys, and a run of the next
// level is some times as large. Rowsets have no level, but it shows in how much of the data between
// their first and last key is their own. Of a table of four runs
//
//	run 1   ├─────────────1────────────┤   1 % of the data
//	run 2   ├──────9──────┤├─────9─────┤   9 %, in two rowsets
//	run 3   ├─45─┤├─45──┤├─45─┤├─45────┤  45 %, in four
//	run 4   ├──45─┤├─45─┤├─45──┤├─45───┤  45 %
//
// each rowset of run 2 has 9 % of the data between its keys, however large it is. With the ratio
// 10, shares of at least 10 % are level 0, of at least 1 % level 1: runs 3 and 4 are one level. A
// flush makes a rowset of a high level; merges of n rowsets that span the same keys add up their
// shares, so levels fall.
//
// Unlike in stores of runs, any rowsets of a level may be merged, not only rowsets of neighboring
// ages, since each key is live in one rowset only.
func levels(layout Layout, spans []Span, ratio float64) (of []int, count int) {
	total := 0.0
	for i := range layout.RowSets {
		if r := &layout.RowSets[i]; r.wellFormed() {
			total += float64(max(r.Bytes, 1))
		}
	}
	of = make([]int, len(spans))
	log := math.Log(ratio)
	for i := range of {
		r := &layout.RowSets[i]
		if !r.wellFormed() {
			of[i] = -1
			continue
		}
		// The inverse of the share; a rowset with one key has all the data between its keys. A
		// share that is below a limit only because of rounding counts as equal to it.
		inverse := spans[i].Width() * total / float64(max(r.Bytes, 1))
		of[i] = int(max(0, math.Ceil(math.Log(inverse)/log-1e-9)-1))
		count = max(count, of[i]+1)
	}
	return of, count
}

// validRatio reports whether a ratio between levels makes sense.
func validRatio(ratio float64) bool { return ratio >= 1.5 && ratio <= 1000 }
