// Package budget accounts for the memory of a store against one limit.
//
// Code that allocates memory which outlives a call reports it with Reserve, under its kind, and
// returns it with Release. A Budget counts but never refuses: a committed write batch must be
// applied whatever the count is. Code that starts new work (commits, compactions, cache fills)
// compares Used with Limit first. All methods are safe for concurrent use. On a nil *Budget they do
// nothing, which suits tools that read one file.
//
// Kudu has a tree of memory trackers, each with its own limit. Here all kinds share one limit; the
// counters by kind are for reports and for choosing what to flush.
package budget

import (
	"fmt"
	"sync/atomic"
)

// Kind is the purpose of memory.
type Kind uint8

// The kinds.
const (
	MemRowSet   Kind = iota // rows not yet flushed
	Delta                   // changes not yet flushed to rows on disk
	Cache                   // cblocks and decoded chunks that could be read again
	Compaction              // buffers of flushes and ingests
	Merge                   // what compactions read and write
	Scan                    // goroutines of scans
	Transaction             // what open transactions have read and written
	Metadata                // indexes in memory, footers, Pebble
	Kinds                   // count of the kinds
)

func (k Kind) String() string {
	switch k {
	case MemRowSet:
		return "memrowset"
	case Delta:
		return "delta"
	case Cache:
		return "cache"
	case Compaction:
		return "compaction"
	case Merge:
		return "merge"
	case Scan:
		return "scan"
	case Transaction:
		return "transaction"
	case Metadata:
		return "metadata"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Budget is the memory of one store.
type Budget struct {
	limit int64
	used  atomic.Int64
	kinds [Kinds]atomic.Int64
	watch func()
}

// New returns a Budget with a limit in bytes; 0 or less means no limit.
func New(limit int64) *Budget { return &Budget{limit: max(limit, 0)} }

// Watch makes each Reserve and Release call f after it has counted. It must be called before b is
// used; f must be safe for concurrent use.
func (b *Budget) Watch(f func()) { b.watch = f }

// Limit returns the limit in bytes, 0 for none.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Reserve counts n bytes more of kind k, above the limit too. A negative n is a Release of -n.
func (b *Budget) Reserve(k Kind, n int64) {
	if b == nil {
		return
	}
	// A count below zero means that something was given back twice: from here on the limit
	// would let in more than it says, without end.
	if now := b.kinds[k].Add(n); now < 0 {
		panic(fmt.Sprintf("budget: %v at %d bytes after %+d", k, now, n))
	}
	b.used.Add(n)
	if b.watch != nil {
		b.watch()
	}
}

// Release counts n bytes of kind k less, which a Reserve had counted.
func (b *Budget) Release(k Kind, n int64) { b.Reserve(k, -n) }

// Grower returns Reserve for kind k, in the form that arena.New takes.
func (b *Budget) Grower(k Kind) func(n int64) {
	return func(n int64) { b.Reserve(k, n) }
}

// Used returns the bytes of all kinds.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// UsedBy returns the bytes of kind k. Kinds read one after the other need not add up to Used,
// since others go on counting.
func (b *Budget) UsedBy(k Kind) int64 {
	if b == nil {
		return 0
	}
	return b.kinds[k].Load()
}

// Over returns by how many bytes Used is above Limit; 0 when it is not, or when there is no limit.
func (b *Budget) Over() int64 {
	if b == nil || b.limit == 0 {
		return 0
	}
	return max(b.used.Load()-b.limit, 0)
}
