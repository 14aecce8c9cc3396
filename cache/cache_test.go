package cache

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func key(block, offset int) Key { return Key{Block: uint64(block), Offset: uint64(offset)} }

func TestGetReturnsPutValues(t *testing.T) {
	c := New(1 << 20)
	for i := range 100 {
		for part := range 3 {
			c.Put(Key{uint64(i % 7), uint64(i), uint32(part)}, fmt.Sprint(i, part), 100)
		}
	}
	for i := range 100 {
		for part := range 3 {
			v, ok := c.Get(Key{uint64(i % 7), uint64(i), uint32(part)})
			if want := fmt.Sprint(i, part); !ok || v != want {
				t.Fatalf("entry %d part %d: %v, %v, want %q", i, part, v, ok, want)
			}
		}
	}
	if _, ok := c.Get(key(3, 4)); ok {
		t.Error("found an entry that was never put")
	}
	must.Equal(t, c.Used(), int64(300*(100+entryBytes)), "bytes used")
}

func TestPutKeepsOlderValue(t *testing.T) {
	c := New(1 << 20)
	c.Put(key(1, 1), "first", 10)
	c.Put(key(1, 1), "second", 10)
	if v, _ := c.Get(key(1, 1)); v != "first" {
		t.Errorf("got %v", v)
	}
	must.Equal(t, c.Used(), 10+entryBytes, "bytes used")
}

func TestCacheStaysWithinLimit(t *testing.T) {
	for _, limit := range []int64{0, 1000, 1 << 20, 40 << 20} {
		c := New(limit)
		rng := rand.New(rand.NewPCG(1, uint64(limit)))
		for i := range 20000 {
			k := key(rng.IntN(10), rng.IntN(4000))
			if rng.IntN(2) == 0 {
				c.Get(k)
			} else {
				c.Put(k, i, int64(rng.IntN(5000)))
			}
			if used := c.Used(); used > limit || used < 0 {
				t.Fatalf("limit %d: %d bytes used", limit, used)
			}
		}
	}
}

func TestPutDeclinesValuesAboveLimit(t *testing.T) {
	c := New(10000)
	c.Put(key(1, 1), 1, 100)
	c.Put(key(1, 2), 2, 10000)
	if _, ok := c.Get(key(1, 2)); ok {
		t.Error("took a value above the limit")
	}
	if _, ok := c.Get(key(1, 1)); !ok {
		t.Error("dropped a value, although the new value was declined")
	}
}

func TestEvictRemovesOneBlock(t *testing.T) {
	c := New(64 << 20) // several shards
	for b := range 4 {
		for o := range 100 {
			c.Put(key(b, o), b, 10)
		}
	}
	c.Evict(2)
	c.Evict(99)
	for b := range 4 {
		for o := range 100 {
			if _, ok := c.Get(key(b, o)); ok == (b == 2) {
				t.Fatalf("block %d offset %d: found = %v", b, o, ok)
			}
		}
	}
	must.Equal(t, c.Used(), int64(300*(10+entryBytes)), "bytes used")
}

func TestSetLimitEvicts(t *testing.T) {
	c := New(1 << 20)
	for o := range 1000 {
		c.Put(key(1, o), o, 500)
	}
	c.SetLimit(100000)
	if c.Used() > 100000 || c.Used() < 90000 || c.Limit() != 100000 {
		t.Errorf("%d bytes used, limit %d", c.Used(), c.Limit())
	}
	c.SetLimit(0)
	must.Equal(t, c.Used(), 0, "bytes used with limit 0")
}

// A working set that is read repeatedly survives a scan ten times as large as the cache.
func TestScanKeepsWorkingSet(t *testing.T) {
	const entries, size = 1000, 1000
	c := New(entries * (size + entryBytes))
	for round := range 3 {
		for o := range entries / 2 {
			if _, ok := c.Get(key(1, o)); !ok {
				c.Put(key(1, o), o, size)
			}
		}
		_ = round
	}
	for o := range 10 * entries {
		c.Put(key(2, o), o, size)
	}
	kept := 0
	for o := range entries / 2 {
		if _, ok := c.Get(key(1, o)); ok {
			kept++
		}
	}
	if kept < entries/2*9/10 {
		t.Errorf("%d of %d values of the working set survived a scan", kept, entries/2)
	}
}

// A value that is dropped and soon put again enters the main queue.
func TestReinsertedValueIsKept(t *testing.T) {
	const size = 1000
	c := New(100 * (size + entryBytes))
	c.Put(key(1, 0), 0, size)
	for o := range 110 {
		c.Put(key(2, o), o, size)
	}
	if _, ok := c.Get(key(1, 0)); ok {
		t.Fatal("the value was not dropped before it was put again")
	}
	c.Put(key(1, 0), 0, size)
	for o := range 500 {
		c.Put(key(3, o), o, size)
	}
	if _, ok := c.Get(key(1, 0)); !ok {
		t.Error("a scan dropped a value that was put a second time")
	}
}

// Compared with a map, the cache always returns the value that was put under the key.
func TestConcurrentGetsReturnCorrectValues(t *testing.T) {
	c := New(40 << 20)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for range 50000 {
				k := Key{uint64(rng.IntN(20)), uint64(rng.IntN(500)) * 4096, uint32(rng.IntN(4))}
				want := k.Block<<40 | k.Offset<<4 | uint64(k.Part)
				switch rng.IntN(100) {
				case 0:
					c.Evict(k.Block)
				case 1:
					c.SetLimit(int64(rng.IntN(40 << 20)))
				default:
					if v, ok := c.Get(k); !ok {
						c.Put(k, want, int64(rng.IntN(100000)))
					} else if v != want {
						t.Errorf("%v: got %v, want %v", k, v, want)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for b := range 20 {
		c.Evict(uint64(b))
	}
	must.Equal(t, c.Used(), 0, "bytes used after all blocks were evicted")
}

func BenchmarkGet(b *testing.B) {
	for _, entries := range []int{1000, 100000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			c := New(int64(entries) * 1000)
			for o := range entries {
				c.Put(key(o%50, o*4096), o, 100)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			order := make([]Key, 4096)
			for i := range order {
				o := rng.IntN(entries)
				order[i] = key(o%50, o*4096)
			}
			hits := 0
			b.ResetTimer()
			for i := range b.N {
				if _, ok := c.Get(order[i&4095]); ok {
					hits++
				}
			}
			must.Equal(b, hits, b.N)
		})
	}
}

// A full cache takes a value of PutAgain at the second call for its key, if other keys did not make
// it forget the first.
func TestPutAgainTakesValuesAtTheSecondCall(t *testing.T) {
	const size = 1 << 10
	c := New(100 * (size + entryBytes))
	key := func(i int) Key { return Key{Block: 1, Offset: uint64(i)} }
	for i := range 100 {
		c.PutAgain(key(i), i, size)
		if _, ok := c.Get(key(i)); !ok {
			t.Fatalf("value %d was declined, with room for it", i)
		}
	}
	for i := 100; i < 130; i++ {
		c.PutAgain(key(i), i, size)
		if _, ok := c.Get(key(i)); ok {
			t.Fatalf("value %d was taken at the first call", i)
		}
	}
	for i := 100; i < 130; i++ {
		c.PutAgain(key(i), i, size)
		if v, ok := c.Get(key(i)); !ok || v != i {
			t.Fatalf("value %d was declined at the second call", i)
		}
	}
	if c.Used() > c.Limit() {
		t.Errorf("%d bytes used of %d", c.Used(), c.Limit())
	}
}

// A value above 32 KiB counts as the pages that the runtime allocates for it.
func TestLargeValuesCountAsPages(t *testing.T) {
	c := New(1 << 20)
	c.Put(key(1, 1), nil, 33<<10)
	must.Equal(t, c.Used(), int64(40<<10+entryBytes), "bytes used")
}

// held is a Holder that records what the cache calls.
type held struct {
	used    bool
	dropped int
}

func (h *held) Used() bool {
	used := h.used
	h.used = false
	return used
}

func (h *held) Dropped() { h.dropped++ }

// A value that its holder uses survives a scan, like a value that Get returns. Once it is not used,
// or its block is evicted, its holder is told once.
func TestHoldersKeepUsedValues(t *testing.T) {
	const size = 1000
	c := New(100 * (size + entryBytes))
	used, unused, evicted := &held{}, &held{}, &held{}
	c.Put(key(1, 0), used, size)
	c.Put(key(2, 0), unused, size)
	for o := range 500 {
		used.used = true
		c.Put(key(3, o), o, size)
	}
	if _, ok := c.Get(key(1, 0)); !ok || used.dropped > 0 {
		t.Errorf("the used value is in the cache: %t; it was dropped %d times", ok, used.dropped)
	}
	if _, ok := c.Get(key(2, 0)); ok || unused.dropped != 1 {
		t.Errorf("the unused value is in the cache: %t; it was dropped %d times", ok, unused.dropped)
	}
	c.Put(key(4, 0), evicted, size)
	c.Evict(4)
	must.Equal(t, evicted.dropped, 1, "drops of the evicted value")
	used.used = false
	c.SetLimit(0)
	must.Equal(t, used.dropped, 1, "drops of a value without a limit")
}

// Values of PutLasting stay, however many others are put and used, while they have at most a quarter of
// the cache. Beyond that, values that are not used are dropped.
func TestLastingValuesHaveAQuarter(t *testing.T) {
	const size, entries = 1000, 400
	c := New(entries * (size + entryBytes))
	for o := range entries / 5 {
		c.PutLasting(key(1, o), o, size)
	}
	for o := range 10 * entries {
		c.Put(key(2, o), o, size)
		c.Get(key(2, o))
	}
	for o := range entries / 5 {
		if _, ok := c.Get(key(1, o)); !ok {
			t.Fatalf("lasting value %d was dropped", o)
		}
	}
	for o := entries / 5; o < 10*entries; o++ {
		c.PutLasting(key(1, o), o, size)
		c.Get(key(1, 0))
	}
	c.Put(key(3, 0), 0, size)
	kept := 0
	for o := range 10 * entries {
		if _, ok := c.Get(key(1, o)); ok {
			kept++
		}
	}
	if _, ok := c.Get(key(1, 0)); !ok || kept > entries/4+1 || kept < entries/4-1 {
		t.Errorf("%d lasting values are kept, the one that is used: %t", kept, ok)
	}
	if c.Used() > c.Limit() {
		t.Errorf("%d bytes used of %d", c.Used(), c.Limit())
	}
}

// A full cache yields to a value if the others are not used, and then keeps the value.
func TestUnusedValuesYield(t *testing.T) {
	const size, entries = 1000, 100
	for _, used := range []bool{false, true} {
		c := New(entries * (size + entryBytes))
		for round := range 4 { // all but a tenth are in the main queue in the end
			for o := range entries {
				if _, ok := c.Get(key(1, o)); !ok {
					c.Put(key(1, o), o, size)
				}
				if round > 2 && used {
					c.Get(key(1, o))
				}
			}
		}
		if !used {
			c.SetLimit(0) // forgets all uses
			c.SetLimit(entries * (size + entryBytes))
			for o := range entries {
				c.Put(key(1, o), o, size)
			}
		}
		if got := c.Yields(key(2, 0), size); got == used {
			t.Errorf("yields: %t, the values are used: %t", got, used)
		}
		if c.Put(key(2, 0), 0, size); used {
			continue
		}
		for o := range 5 * entries {
			c.Put(key(3, o), o, size)
		}
		if _, ok := c.Get(key(2, 0)); !ok {
			t.Error("the value was dropped")
		}
	}
	if New(1000).Yields(key(1, 1), 2000) {
		t.Error("yields to a value above the limit")
	}
}
