package carbondata

import (
	"cmp"
	"slices"
)

// manyCells is how many values are worth several goroutines.
const manyCells = 1 << 13

// eachColumn calls f for the index of each of the columns of a page, of which rows are about to be
// added or encoded, and returns the error of the first column that has one. f uses nothing that
// another column changes, so several goroutines call it if there is enough to do, for the columns
// with the most text first. The files are the same however many there are.
func eachColumn(columns []*columnWriter, rows int, f func(i int) error) error {
	procs := 1
	if rows*len(columns) >= manyCells {
		procs = parallel()
	}
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	if procs > 1 {
		text := make([]int, len(columns))
		for i, c := range columns {
			text[i] = c.textMemory()
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(text[b], text[a]) })
	}
	errs := make([]error, len(columns))
	together(len(columns), procs, func(_, i int) { errs[order[i]] = f(order[i]) })
	return cmp.Or(errs...)
}
