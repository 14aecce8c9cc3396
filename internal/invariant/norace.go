//go:build !race

package invariant

// Race reports whether the race detector is on. It drops values of a sync.Pool at random, so tests
// that measure memory cannot run with it.
const Race = false
