// Package invariant says whether expensive checks are compiled in.
//
// Code asks Enabled before a check that costs more than it may cost in a product: keys rising
// while a file is written, buffers overwritten when their time is over, things closed exactly
// once. Enabled is a constant, so that without the build tag "invariants" the check and what it
// would have read are gone from the program:
//
//	if invariant.Enabled && bytes.Compare(key, w.lastKey) <= 0 {
//		panic(fmt.Sprintf("keys fall: %x after %x", key, w.lastKey))
//	}
//
// A failed check panics with the values: this program is wrong. What a call returns never differs
// between the two builds, and bytes from disk are checked in both.
package invariant
