// Package cache keeps verified and decoded pieces of blocks in memory, up to a limit in bytes.
//
// The key of a value is its block, its byte offset in the block, and a part: 0 for the piece at
// that offset, other numbers for data derived from it. Values are immutable and shared by all
// callers of Get; an evicted value stays valid while it is referenced. Blocks never change and
// their numbers are never reused, so no value in the cache can be stale: Evict only frees memory.
//
//	c := cache.New(64 << 20)
//	v, ok := c.Get(k)
//	if !ok {
//		v = decode(…)
//		c.Put(k, v, size)
//	}
//
// All methods are safe for concurrent use. Get takes no lock: it probes a table of atomic pointers
// and increments a counter, so point reads do not wait for one another. Put, Evict and SetLimit
// take the lock of one shard.
//
// The eviction policy is known as S3-FIFO: two queues and a list of recently dropped keys. A new
// value enters a short queue with a tenth of the bytes. If no Get returns it before it reaches the
// end, it is dropped and only its hash is kept. If a Get does, or if it is put again soon after, it
// enters the main queue, where each Get gives it one more round. A full scan therefore passes
// through the short queue and does not displace the values that point reads use. A full cache takes
// a value of PutAgain at its second call only, directly into the main queue. Small values that save much,
// the values of PutLasting, have a queue of their own with up to a quarter of the bytes.
//
// Simpler than Kudu: one policy, no persistent memory, no pinned entries.
package cache

import (
	"math/bits"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/metrics"
)

// Key identifies a value: its block, its byte offset there, and the part.
type Key struct {
	Block  uint64
	Offset uint64
	Part   uint32
}

const (
	maxShards     = 8
	minShardBytes = 16 << 20 // room for the largest cblock

	// entryBytes is the overhead of an entry: the entry itself (120 bytes on amd64), the header of
	// a slice in an interface, and its slots in the table and the block index.
	entryBytes = 192
)

// Cache is a set of values with a limit in bytes. The zero value is not usable; see New.
type Cache struct {
	shards []shard
	shift  uint // of a hash, to its shard
	limit  atomic.Int64
	hits   metrics.Counter
	parts  metrics.Counter
}

// New returns a cache of at most limitBytes, including 192 bytes of overhead for each entry, and
// the bytes that the runtime adds to values above 32 KiB. A cache with limit 0 stays empty. A value
// larger than a shard (an eighth of the limit, or 16 MiB if that is more, but not more than the
// limit) is not stored.
func New(limitBytes int64) *Cache {
	n := 1
	for n < maxShards && int64(2*n)*minShardBytes <= limitBytes {
		n *= 2
	}
	c := &Cache{shards: make([]shard, n), shift: 64 - uint(bits.TrailingZeros(uint(n)))}
	for i := range c.shards {
		c.shards[i].init()
	}
	c.SetLimit(limitBytes)
	return c
}

// hash maps a key to 64 bits; the high bits choose the shard, the low bits the slot in its table.
func (k Key) hash() uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9
	hi, lo := bits.Mul64(k.Block^m1, k.Offset^uint64(k.Part)<<40^m2)
	h := hi ^ lo
	h ^= h >> 32
	return h * m1
}

func (c *Cache) shard(h uint64) *shard {
	if c.shift == 64 {
		return &c.shards[0]
	}
	return &c.shards[h>>c.shift]
}

// Get returns the value of k, if present.
func (c *Cache) Get(k Key) (any, bool) {
	h := k.hash()
	s := c.shard(h)
	if e := s.find(h, k); e != nil {
		c.hits.Add(1)
		return e.value, true
	}
	s.misses.Add(1) // the caller reads the value from a file, which takes much longer
	return nil, false
}

// Lookups returns the number of Gets that found their value, and of those that did not.
func (c *Cache) Lookups() (hits, misses int64) {
	for i := range c.shards {
		misses += c.shards[i].misses.Load()
	}
	return c.hits.Load(), misses
}

// NotePart counts a read of a part of a piece that is not in the cache, instead of all of it.
func (c *Cache) NotePart() { c.parts.Add(1) }

// Parts returns the number of calls of NotePart.
func (c *Cache) Parts() int64 { return c.parts.Load() }

// memory returns the memory of an entry whose value has a size in bytes: the runtime allocates
// large objects in whole pages of 8 KiB, which makes a fifth of a value of 33 KiB.
func memory(bytes int64) int64 {
	const large, page = 32 << 10, 8 << 10
	if bytes > large {
		bytes = (bytes + page - 1) &^ (page - 1)
	}
	return bytes + entryBytes
}

// Holder is a value that is also used without Get, through a reference of its owner's. The cache
// calls its methods with a lock held: they must not call the cache.
type Holder interface {
	Used() bool // reports whether the value was used without Get since the last call
	Dropped()   // the cache has dropped the value: the owner must not keep it
}

// Put adds a value with the given size in bytes. If k is already present, the older value stays.
// The cache may decline the value; in any case v must not be changed afterwards.
func (c *Cache) Put(k Key, v any, bytes int64) {
	h := k.hash()
	c.shard(h).put(h, k, v, memory(bytes), false)
}

// PutLasting is Put for a small value that saves much each time that it is used. Such values together
// have up to a quarter of the cache, from which no others displace them.
func (c *Cache) PutLasting(k Key, v any, bytes int64) {
	h := k.hash()
	c.shard(h).put(h, k, v, memory(bytes), true)
}

// PutAgain is like Put for a value that pays only if it is used again: once the cache is full, it
// takes the value at the second call for k, if that comes soon enough.
func (c *Cache) PutAgain(k Key, v any, bytes int64) {
	if c.Admits(k, bytes) {
		c.Put(k, v, bytes)
	}
}

// Admits reports whether PutAgain would take a value of this size; a caller that then makes the
// value to keep it calls Put. If not, the next call for k, or of PutAgain, is the second one.
func (c *Cache) Admits(k Key, bytes int64) bool {
	h := k.hash()
	return c.shard(h).admits(h, memory(bytes))
}

// Yields reports whether a value of this size for k that is often needed should displace others although
// the cache is full: those that would be dropped next were not used. A caller who then makes the value
// calls Put.
func (c *Cache) Yields(k Key, bytes int64) bool {
	h := k.hash()
	return c.shard(h).yields(h, memory(bytes))
}

// Evict removes all values of a block.
func (c *Cache) Evict(block uint64) {
	for i := range c.shards {
		c.shards[i].evict(block)
	}
}

// Used returns the number of bytes in use.
func (c *Cache) Used() int64 {
	n := int64(0)
	for i := range c.shards {
		n += c.shards[i].used.Load()
	}
	return n
}

// Full reports whether more than seven eighths of the limit are in use.
func (c *Cache) Full() bool { return !c.Room(0) }

// Room reports whether the cache would not be Full with another value of this size.
func (c *Cache) Room(bytes int64) bool { return 8*(c.Used()+bytes) <= 7*c.Limit() }

// Limit returns the current limit.
func (c *Cache) Limit() int64 { return c.limit.Load() }

// SetLimit changes the limit; it evicts down to the new limit before it returns.
func (c *Cache) SetLimit(limitBytes int64) {
	limitBytes = max(limitBytes, 0)
	c.limit.Store(limitBytes)
	for i := range c.shards {
		c.shards[i].setLimit(limitBytes / int64(len(c.shards)))
	}
}
