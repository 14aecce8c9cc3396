package mvcc

import "slices"

// Retained says which states of a table can be read: all from Floor on, and of the earlier ones
// those as of Points, which are ascending and below Floor.
//
//	Floor 9, Points 2, 5     2     5           9 10 11 …
type Retained struct {
	Floor  Timestamp
	Points []Timestamp
}

// First returns the lowest timestamp that can be read.
func (r *Retained) First() Timestamp {
	if len(r.Points) > 0 {
		return r.Points[0]
	}
	return r.Floor
}

// Has reports whether the state at ts can be read.
func (r *Retained) Has(ts Timestamp) bool {
	_, ok := slices.BinarySearch(r.Points, ts)
	return ok || ts >= r.Floor
}

// Before returns the highest timestamp that can be read and at which a change at ts is not visible.
// ok is false if there is none.
func (r *Retained) Before(ts Timestamp) (at Timestamp, ok bool) {
	if ts > r.Floor {
		return ts - 1, true
	}
	i, _ := slices.BinarySearch(r.Points, ts)
	if i == 0 {
		return 0, false
	}
	return r.Points[i-1], true
}
