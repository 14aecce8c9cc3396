// Package splice edits ordered lists in place.
package splice

import "slices"

// Edit removes some elements of a list and inserts others, and returns the list. gone are the
// indexes of the elements to remove, ascending. The element added[i] comes before the element that
// was at index at[i], which may be len(list); at is ascending too. For instance, Edit of a b c d
// with gone = [1], added = [x], at = [3] returns a c x d. Edit uses the array of list, as
// slices.Replace does. It takes time proportional to the elements from the first to the last that
// is removed or inserted, and moves the elements after them at once.
func Edit[T any](list []T, gone []int, added []T, at []int) []T {
	from, to := Window(len(list), gone, at)
	window := make([]T, 0, to-from+len(added))
	for i := from; i <= to; i++ {
		for len(at) > 0 && at[0] == i {
			window, added, at = append(window, added[0]), added[1:], at[1:]
		}
		switch {
		case len(gone) > 0 && gone[0] == i:
			gone = gone[1:]
		case i < to:
			window = append(window, list[i])
		}
	}
	return slices.Replace(list, from, to, window...)
}

// Window returns the part of a list of n elements that Edit looks at: those before it stay where
// they are, and those from its end on move by one distance.
func Window(n int, gone, at []int) (from, to int) {
	from = n
	if len(gone) > 0 {
		from, to = gone[0], gone[len(gone)-1]+1
	}
	if len(at) > 0 {
		from, to = min(from, at[0]), max(to, at[len(at)-1])
	}
	return from, max(from, to)
}
