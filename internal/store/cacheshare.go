package store

import (
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
)

// The cache may use what everything else leaves of a share of Options.MemoryLimit, and a quarter of
// the limit whatever rows and changes take. Flushes and compactions may take an eighth of the limit,
// and half of that quarter if they need more, as those of wide tables do:
//
//	0         1/4         1/2         3/4          1
//	|------------- cache --------------|           |   nothing else in memory
//	|---- cache ----|-- rows, changes -|           |
//	|- cache -|----- rows, changes --------|       |   the cache keeps its quarter
//
// The share is three quarters if the program bounds its heap, with GOMEMLIMIT or
// debug.SetMemoryLimit. Otherwise the garbage collector lets the heap grow to twice of what is in
// use, and the share is a half. The rest is for what is not counted: blocks that are being read,
// buffers of flushes, metadata besides open files.
const (
	defaultQuarters = 2 // of the limit
	boundQuarters   = 3 // if the runtime bounds the heap
)

// The limit of the cache is a multiple of cacheStep, or the least, and grows by growthSteps at least,
// so that it does not change at each allocation.
const (
	cacheStep   = 1 << 20
	growthSteps = 4
)

// cacheShare sets the limit of a cache from a budget. Safe for concurrent use.
type cacheShare struct {
	cache  *cache.Cache
	budget *budget.Budget
	// Of the memory limit, in bytes.
	quarter int64
	share   int64 // of the cache and the budget together

	mu  sync.Mutex   // held while the limit changes
	now atomic.Int64 // the limit, or unknownLimit
}

// unknownLimit is cacheShare.now while the limit changes.
const unknownLimit = -1

// ScarceCache makes stores that are opened later have a cache of scarceBytes, so that most reads go to
// files. It is for tests.
var ScarceCache atomic.Bool

const scarceBytes = 64 << 10

// NewCache returns a cache with a limit that follows the budget, whose limit is memoryLimit.
func NewCache(b *budget.Budget, memoryLimit int64) *cache.Cache {
	if ScarceCache.Load() {
		return cache.New(scarceBytes)
	}
	quarters := int64(defaultQuarters)
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		quarters = boundQuarters
	}
	quarter := memoryLimit / 4
	// The number of the cache's shards suits a quarter of the limit.
	c := &cacheShare{cache: cache.New(quarter), budget: b, quarter: quarter, share: quarters * quarter}
	c.fit()
	b.Watch(c.fit)
	return c.cache
}

// limit returns the limit for what the budget counts now: a multiple of cacheStep, or the least.
func (c *cacheShare) limit() int64 {
	return max(c.least(), (c.share-c.budget.Used())&^(cacheStep-1))
}

// least returns the limit that is left to the cache in any case.
func (c *cacheShare) least() int64 {
	eighth := c.quarter / 2
	jobs := c.budget.UsedBy(budget.Merge) + c.budget.UsedBy(budget.Compaction)
	return max(eighth, c.quarter-max(0, jobs-eighth))
}

// fit sets the limit of the cache. When it returns, the cache is within what the budget leaves of the
// share, as far as the budget had counted when fit began.
func (c *cacheShare) fit() {
	if !c.changes() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changes() {
		return
	}
	// Another call that counts more compares it with c.now. If it does before c.now is unknown, the
	// limit below is computed after it has counted; if it does later, it waits for this call.
	c.now.Store(unknownLimit)
	n := c.limit()
	c.cache.SetLimit(n)
	c.now.Store(n)
}

// changes reports whether the limit must be set: to less, or to so much more that it pays.
func (c *cacheShare) changes() bool {
	now, n := c.now.Load(), c.limit()
	return n < now || n >= now+growthSteps*cacheStep || now == unknownLimit
}
