package store

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The cache takes what the budget leaves of the share, at least a quarter of the limit, after each
// Reserve and Release, and uses no more than that.
func TestCacheTakesWhatOthersLeave(t *testing.T) {
	const limit = 64 << 20
	for _, heap := range []int64{math.MaxInt64, 1 << 40} {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(heap))
		share := int64(limit / 2)
		if heap != math.MaxInt64 {
			share = limit / 4 * 3
		}
		b := budget.New(limit)
		c := NewCache(b, limit)
		must.Equal(t, c.Limit(), share, "the limit of an empty store")
		r, held := seedtest.Rand(t), int64(0)
		for i := range 3000 {
			n := r.Int64N(2<<20) - 1<<20 + max(0, 4<<20-held)/16
			if held+n < 0 || held+n > limit {
				n = -held
			}
			b.Reserve(budget.MemRowSet, n)
			held += n
			c.Put(cache.Key{Block: 1, Offset: uint64(i)}, nil, 100<<10)
			got, most := c.Limit(), max(share-held, limit/4)
			if got > most || got < most-growthSteps*cacheStep-cacheStep || got < limit/4 {
				t.Fatalf("the limit is %d with %d bytes in use, want at most %d", got, held, most)
			}
			if used := c.Used(); used > got {
				t.Fatalf("%d bytes in the cache, limit %d", used, got)
			}
		}
	}
}

// Goroutines that count at the same time leave the limit that fits the sum.
func TestConcurrentReservationsBoundTheCache(t *testing.T) {
	const limit, each, rounds = 1 << 30, 5 << 20, 300
	b := budget.New(limit)
	c := NewCache(b, limit)
	first := c.Limit()
	for range rounds {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				b.Reserve(budget.Delta, 2*each)
				b.Release(budget.Delta, each)
			})
		}
		wg.Wait()
		if got := c.Limit(); got > first-4*each || got < first-4*each-growthSteps*cacheStep {
			t.Fatalf("limit %d, want %d", got, first-4*each)
		}
		b.Release(budget.Delta, 4*each)
		if got := c.Limit(); got > first || got < first-growthSteps*cacheStep {
			t.Fatalf("limit %d, want %d", got, first)
		}
	}
}

// Rows and changes leave a quarter of the limit to the cache. Flushes and compactions that take more
// than an eighth take it from the cache, down to an eighth.
func TestCacheGivesWayToCompactions(t *testing.T) {
	const limit = 256 * mib
	b := budget.New(limit)
	c := NewCache(b, limit)
	for _, step := range []struct {
		kind  budget.Kind
		bytes int64 // in MiB
		want  int64
	}{
		{budget.MemRowSet, 0, 128}, {budget.MemRowSet, 40, 88}, {budget.Delta, 60, 64}, {budget.Merge, 30, 64},
		{budget.Compaction, 12, 54}, {budget.Merge, 60, 32}, {budget.Merge, -90, 64}, {budget.Compaction, -12, 64},
	} {
		b.Reserve(step.kind, step.bytes*mib)
		must.Equal(t, c.Limit()/mib, step.want, step.kind, step.bytes)
	}
}
