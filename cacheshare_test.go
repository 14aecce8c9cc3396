package oribi

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
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
		s := &Store{opts: Options{MemoryLimit: limit}, budget: budget.New(limit)}
		s.shareCache()
		if n := s.cache.Limit(); n != share {
			t.Errorf("the limit of an empty store is %d, want %d", n, share)
		}
		r, held := seedtest.Rand(t), int64(0)
		for i := range 3000 {
			n := r.Int64N(2<<20) - 1<<20 + max(0, 4<<20-held)/16
			if held+n < 0 || held+n > limit {
				n = -held
			}
			s.budget.Reserve(budget.MemRowSet, n)
			held += n
			s.cache.Put(cache.Key{Block: 1, Offset: uint64(i)}, nil, 100<<10)
			got, most := s.cache.Limit(), max(share-held, limit/4)
			if got > most || got < most-growthSteps*cacheStep-cacheStep || got < limit/4 {
				t.Fatalf("the limit is %d with %d bytes in use, want at most %d", got, held, most)
			}
			if used := s.cache.Used(); used > got {
				t.Fatalf("%d bytes in the cache, limit %d", used, got)
			}
		}
	}
}

// Goroutines that count at the same time leave the limit that fits the sum.
func TestConcurrentReservationsBoundTheCache(t *testing.T) {
	const limit, each, rounds = 1 << 30, 5 << 20, 300
	s := &Store{opts: Options{MemoryLimit: limit}, budget: budget.New(limit)}
	s.shareCache()
	first := s.cache.Limit()
	for range rounds {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s.budget.Reserve(budget.Delta, 2*each)
				s.budget.Release(budget.Delta, each)
			})
		}
		wg.Wait()
		if got := s.cache.Limit(); got > first-4*each || got < first-4*each-growthSteps*cacheStep {
			t.Fatalf("limit %d, want %d", got, first-4*each)
		}
		s.budget.Release(budget.Delta, 4*each)
		if got := s.cache.Limit(); got > first || got < first-growthSteps*cacheStep {
			t.Fatalf("limit %d, want %d", got, first)
		}
	}
}

// Rows in memory make the cache of a store smaller, and a flush gives the memory back.
func TestRowsInMemoryShrinkTheCache(t *testing.T) {
	const limit = 64 << 20
	ctx := t.Context()
	store, err := Open("/store", &Options{FS: vfs.NewMem(), MemoryLimit: limit, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.CreateTable("t", columns)
	if err != nil {
		t.Fatal(err)
	}
	metrics := func() Metrics {
		m, err := store.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := metrics().Cache.Limit
	for i := range 160 {
		b := store.NewBatch()
		b.Insert(table, Row{"k": i, "v": make([]byte, 60<<10)})
		if _, err := b.Commit(ctx, NoSync); err != nil {
			t.Fatal(err)
		}
	}
	m := metrics()
	if m.Memory.Rows < 8<<20 || m.Cache.Limit > before-m.Memory.Rows {
		t.Errorf("the cache may have %d bytes with %d of rows in memory, %d before", m.Cache.Limit, m.Memory.Rows, before)
	}
	if err := table.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if m = metrics(); m.Cache.Limit < before-2*growthSteps*cacheStep {
		t.Errorf("the cache may have %d bytes after the flush, %d before", m.Cache.Limit, before)
	}
}
