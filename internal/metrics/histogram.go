// Package metrics counts events and measures durations at little cost, and writes figures in the
// text format of Prometheus.
//
// A Counter and a Histogram have several shards, each on cache lines of its own. A goroutine uses
// the shard that the address of its stack selects, so goroutines on different processors rarely
// write to the same line. Recording takes one or two atomic additions, no lock and no memory;
// reading adds up the shards, and may miss what is recorded meanwhile.
package metrics

import (
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	cacheLine = 128 // two lines of 64 bytes: processors fetch them in pairs
	maxShards = 16
)

// shards returns how many shards a histogram has, a power of two.
func shards() int {
	n := 1
	for n < 2*runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return n
}

// shard returns a number below n, a power of two, that seldom differs between calls of one
// goroutine and is independent of the number of most other goroutines: stacks move rarely.
func shard(n int) uint64 {
	var onStack byte
	page := uint64(uintptr(unsafe.Pointer(&onStack)) >> 12)
	return page * 0x9e3779b97f4a7c15 >> 32 & uint64(n-1)
}

// Counter is a number that only rises. The zero value is ready to use.
type Counter struct{ cells [maxShards]counterCell }

type counterCell struct {
	n atomic.Int64
	_ [cacheLine - 8]byte
}

// Add adds n and returns the sum of one shard, from which a caller may choose every k-th event.
func (c *Counter) Add(n int64) (ofShard int64) { return c.cells[shard(maxShards)].n.Add(n) }

// Load returns the sum.
func (c *Counter) Load() (sum int64) {
	for i := range c.cells {
		sum += c.cells[i].n.Load()
	}
	return sum
}

// The buckets of a Histogram. Their width grows with the duration: each power of two has eight, so
// a bucket is at most an eighth of its bounds wide.
const (
	lowBits = 6                                      // the first bucket is [0, 64 ns]
	subBits = 3                                      // 8 buckets for each power of two
	powers  = 31                                     // up to 2^37 ns, about 137 s
	Buckets = 1 + powers<<subBits + 1                // count; the last has no upper bound
	Longest = time.Duration(1) << (lowBits + powers) // upper bound of the last bucket but one
)

// bucket returns the index of the bucket of a duration.
func bucket(d time.Duration) int {
	if d <= 1<<lowBits {
		return 0
	}
	if d > Longest {
		return Buckets - 1
	}
	n := uint64(d - 1) // bounds are inclusive
	power := bits.Len64(n) - 1
	sub := n >> (power - subBits) & (1<<subBits - 1)
	return 1 + (power-lowBits)<<subBits + int(sub)
}

// Bound returns the upper bound of bucket i, inclusive: the lower bound of the next one, exclusive.
func Bound(i int) time.Duration {
	switch {
	case i <= 0:
		return 1 << lowBits
	case i >= Buckets-1:
		return math.MaxInt64
	}
	power, sub := lowBits+(i-1)>>subBits, (i-1)&(1<<subBits-1)
	return time.Duration(1<<subBits+sub+1) << (power - subBits)
}

// Histogram counts durations by size. See NewHistogram.
type Histogram struct{ cells []histogramCell }

type histogramCell struct {
	sum    atomic.Int64 // nanoseconds
	counts [Buckets]atomic.Int64
	_      [cacheLine]byte
}

// NewHistogram returns an empty Histogram.
func NewHistogram() *Histogram { return &Histogram{make([]histogramCell, shards())} }

// Record counts one duration; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	c := &h.cells[shard(len(h.cells))]
	c.counts[bucket(d)].Add(1)
	c.sum.Add(int64(d))
}

// Load returns the number of durations in each bucket and their sum.
func (h *Histogram) Load() (counts []int64, sum time.Duration) {
	counts = make([]int64, Buckets)
	for i := range h.cells {
		c := &h.cells[i]
		sum += time.Duration(c.sum.Load())
		for k := range c.counts {
			counts[k] += c.counts[k].Load()
		}
	}
	return counts, sum
}
