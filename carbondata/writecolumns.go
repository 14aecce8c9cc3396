package carbondata

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/internal/parallel"
)

// manyCells is how many values are worth several goroutines.
const manyCells = 1 << 13

// eachColumn calls f for the index of each of the columns of a page, of which rows are about to be
// added or encoded, and returns the error of the first column that has one. f uses nothing that
// another column changes, so several goroutines call it if there is enough to do, for the columns
// with the most text first. The files are the same however many there are.
func eachColumn(columns []*columnWriter, rows int, f func(i int) error) error {
	workers := 1
	if rows*len(columns) >= manyCells {
		workers = procs()
	}
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	if workers > 1 {
		text := make([]int, len(columns))
		for i, c := range columns {
			text[i] = c.textMemory()
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(text[b], text[a]) })
	}
	errs := make([]error, len(columns))
	parallel.Each(len(columns), workers, func(_, i int) error {
		errs[order[i]] = f(order[i])
		return nil // so that f is called for all, whatever their order
	})
	return cmp.Or(errs...)
}
