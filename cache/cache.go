// Package cache keeps verified and decoded pieces of blocks in memory, under one limit in bytes.
//
// The key of a value is its block, its byte offset there and a part: 0 for the piece at that
// offset, other numbers for what was derived from it. Values are immutable and shared by all
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
// and sets a mark, so that point reads do not wait for one another. Put, Evict and SetLimit take
// the lock of one shard.
//
// What is evicted is chosen by two queues and a memory of names (the policy known as S3-FIFO): a
// new value enters a short queue of a tenth of the bytes; if no Get returns it before it reaches
// the end, it is dropped and only its hash is kept. If a Get does, or if it is put again soon
// after, it enters the main queue, where each Get gives it one more round. So a scan of everything
// passes through the short queue and leaves what point reads use where it is.
//
// Simpler than Kudu: one policy, no persistent memory, no pinned entries.
package cache

import (
	"math/bits"
	"sync/atomic"
)

// Key names a value: which block, at which byte offset, which part of what is there.
type Key struct {
	Block  uint64
	Offset uint64
	Part   uint32
}

const (
	maxShards     = 8
	minShardBytes = 16 << 20 // a shard takes the largest cblock

	// entryBytes is what an entry costs beside its value: the entry itself (120 bytes on amd64),
	// the header of a slice in an interface, and its places in the table and the index of blocks.
	entryBytes = 192
)

// Cache is a set of values under a limit of bytes. The zero value is not usable; see New.
type Cache struct {
	shards []shard
	shift  uint // of a hash, to its shard
	limit  atomic.Int64
}

// New makes a cache that holds at most limitBytes, 192 bytes an entry included. With a limit of 0
// it holds nothing. A value larger than a shard (an eighth of the limit, or 16 MiB if that is more,
// but not more than the limit) is not taken.
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

// hash spreads a key over 64 bits; the top ones choose the shard, the low ones the place in its
// table.
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

// Get returns the value named k, if it is there.
func (c *Cache) Get(k Key) (any, bool) {
	h := k.hash()
	if e := c.shard(h).find(h, k); e != nil {
		return e.value, true
	}
	return nil, false
}

// Put offers a value of the given number of bytes. If k is there already the older value stays.
// The cache may decline; v must not be changed afterwards in any case.
func (c *Cache) Put(k Key, v any, bytes int64) {
	h := k.hash()
	c.shard(h).put(h, k, v, bytes+entryBytes)
}

// Evict forgets all values of a block.
func (c *Cache) Evict(block uint64) {
	for i := range c.shards {
		c.shards[i].evict(block)
	}
}

// Used is the number of bytes held.
func (c *Cache) Used() int64 {
	n := int64(0)
	for i := range c.shards {
		n += c.shards[i].used.Load()
	}
	return n
}

// Limit is the limit last set.
func (c *Cache) Limit() int64 { return c.limit.Load() }

// SetLimit changes the limit; what is above it is evicted before the call returns.
func (c *Cache) SetLimit(limitBytes int64) {
	limitBytes = max(limitBytes, 0)
	c.limit.Store(limitBytes)
	for i := range c.shards {
		c.shards[i].setLimit(limitBytes / int64(len(c.shards)))
	}
}
