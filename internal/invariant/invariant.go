// Package invariant reports whether expensive checks are compiled in.
//
// Code tests Enabled before a check that is too expensive for production: whether keys ascend while
// a file is written, whether a buffer is used after it was released, whether something is closed
// exactly once. Enabled is a constant, so without the build tag "invariants" the compiler removes
// the check:
//
//	if invariant.Enabled && bytes.Compare(key, w.lastKey) <= 0 {
//		panic(fmt.Sprintf("keys fall: %x after %x", key, w.lastKey))
//	}
//
// A failed check panics with the values, since it is a bug in this program. A call returns the same
// results in both builds, and bytes from disk are checked in both.
package invariant
