// Package lsn defines the type of log sequence numbers.
//
// Each write batch of a store has one LSN, its number in the store's log. LSNs begin with 1 and
// have no gaps; timestamps increase with them. Packages that know neither the log nor each other
// (mvcc, blockmanager, memrowset, delta) share the type, so it is in a package that imports nothing
// of the module.
//
// LSNs serve as two kinds of bounds, and each field documents which one it is. An included LSN, a
// flushed LSN and a durable LSN are inclusive: each is the last LSN that is in files or on disk, or
// 0 before the first. A log start is the first LSN that is still needed.
package lsn

import (
	"math"
	"sync/atomic"
)

// LSN is the log sequence number of a write batch. 1 is the first; 0 means none.
type LSN uint64

// Max is above every LSN of a batch. It is the lowest LSN of an empty set.
const Max LSN = math.MaxUint64

// Atomic is an LSN that goroutines may read and write concurrently. The zero value is LSN 0. An
// Atomic must not be copied after its first use.
type Atomic struct{ v atomic.Uint64 }

// Load returns the LSN.
func (a *Atomic) Load() LSN { return LSN(a.v.Load()) }

// Store sets the LSN.
func (a *Atomic) Store(l LSN) { a.v.Store(uint64(l)) }

// CompareAndSwap sets the LSN to new if it is old, and reports whether it was.
func (a *Atomic) CompareAndSwap(old, new LSN) bool {
	return a.v.CompareAndSwap(uint64(old), uint64(new))
}
