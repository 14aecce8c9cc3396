package mvcc

import "math"

// Snapshot is the bound in time up to which a reader sees changes: a change is in the snapshot if
// and only if Sees reports true for its timestamp.
//
// The number is Kudu's exclusive bound, one above the newest visible timestamp. Timestamps in the
// API of the root package are inclusive. AsOf and Newest are the only conversions between the two;
// no other code adds or subtracts one.
//
//	timestamp        1   2   3   4   5
//	Before(3)        x   x
//	AsOf(3)          x   x   x
//	Nothing
//	Everything       x   x   x   x   x …
type Snapshot uint64

const (
	Nothing    Snapshot = 0              // sees no change
	Everything Snapshot = math.MaxUint64 // sees every change
)

// AsOf returns the snapshot of the changes at ts and before it.
func AsOf(ts Timestamp) Snapshot {
	if ts == Max {
		return Everything
	}
	return Snapshot(ts) + 1
}

// Before returns the snapshot of the changes before ts.
func Before(ts Timestamp) Snapshot { return Snapshot(ts) }

// Sees reports whether a change at ts is in the snapshot.
func (s Snapshot) Sees(ts Timestamp) bool { return uint64(ts) < uint64(s) }

// Newest returns the highest timestamp that s sees, Min for Nothing.
func (s Snapshot) Newest() Timestamp {
	if s == Nothing {
		return Min
	}
	return Timestamp(s) - 1
}
