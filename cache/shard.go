package cache

import (
	"sync"
	"sync/atomic"
)

// entry is one value with its links: in the table, in one queue, in the list of its block. key,
// hash, value and bytes never change, so readers need no lock.
type entry struct {
	key   Key
	hash  uint64
	value any
	bytes int64

	// uses counts the Gets since the entry became the newest of a queue, up to maxUses.
	uses atomic.Int32

	// The fields below are guarded by the shard's lock.
	queue      *queue
	next, prev *entry // in the queue; towards the tail, towards the head
	sibling    *entry // next entry of the same block
	elder      *entry // previous entry of the same block
}

// maxUses is the maximum number of further rounds in the main queue that a value can have at a
// time.
const maxUses = 3

// gone replaces a removed entry in the table. A probe continues past it.
var gone = new(entry)

// shard is a part of the cache with its own share of the limit.
type shard struct {
	// Get uses only these fields and takes no lock: a hit costs a probe of the table and a store
	// into the entry.
	table  atomic.Pointer[table]
	used   atomic.Int64
	misses atomic.Int64

	// mu guards the rest, which changes when values are put or evicted. New values enter fresh, and
	// move to proven if they are used there. recent remembers the hashes of values that were dropped
	// from fresh or not admitted: a value that is put again soon enters proven at once. Values of
	// PutLasting enter lasting, and are dropped only if all of them have more than their share.
	mu      sync.Mutex
	limit   int64
	fresh   queue
	proven  queue
	lasting queue
	recent  ghosts
	count   int               // live entries
	filled  int               // slots of the table that are not nil: live entries and gone
	blocks  map[uint64]*entry // first entry of each block, to evict a block's entries together
}

// table is an open-addressed hash table whose size is a power of two, at most three quarters full.
// Readers probe it while a writer stores into it; it grows by replacement.
//
// Tags are compared before places: a probe of a key that the table does not have reads one cache line
// of tags, and no entry.
type table struct {
	mask  uint64
	tags  []atomic.Uint32         // of the hashes of entries; 0: the place is empty
	place []atomic.Pointer[entry] // stored before the tag
}

// tagOf returns the tag of a hash. Its low bits choose the place.
func tagOf(h uint64) uint32 { return uint32(h>>32) | 1 }

const minPlaces = 64

func newTable(places int) *table {
	return &table{mask: uint64(places - 1), tags: make([]atomic.Uint32, places),
		place: make([]atomic.Pointer[entry], places)}
}

func (s *shard) init() {
	s.table.Store(newTable(minPlaces))
	s.blocks = make(map[uint64]*entry)
}

// find looks up k without a lock.
//
// A reader may probe a table that a writer is filling, or a table that was just replaced. An entry
// is complete before it is stored, and its key never changes, so a match is always correct; a tag may
// be that of an entry that was in the place before. A miss
// may be an entry that was put or moved during the probe; the caller then reads the block.
func (s *shard) find(h uint64, k Key) *entry {
	t := s.table.Load()
	tag := tagOf(h)
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		switch t.tags[i].Load() {
		case 0:
			return nil
		default:
			continue
		case tag:
		}
		if e := t.place[i].Load(); e.hash == h && e.key == k && e != gone {
			if n := e.uses.Load(); n < maxUses {
				e.uses.Store(n + 1) // concurrent Gets may count as one
			}
			return e
		}
	}
}

// lastingShare is the part of the limit, one in so many, that values of PutLasting may have.
const lastingShare = 4

func (s *shard) put(h uint64, k Key, v any, size int64, lasting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.limit || s.find(h, k) != nil {
		return
	}
	e := &entry{key: k, hash: h, value: v, bytes: size}
	s.makeRoom(size)
	s.store(e)
	if first := s.blocks[k.Block]; first != nil {
		e.sibling, first.elder = first, e
	}
	s.blocks[k.Block] = e
	s.used.Add(size)
	s.count++
	switch {
	case lasting:
		s.lasting.push(e)
	case s.recent.take(h):
		s.proven.push(e)
	default:
		s.fresh.push(e)
	}
}

// admits reports whether a value for the hash should be put: there is room for it, or it was
// dropped or declined recently. Otherwise it remembers the hash.
func (s *shard) admits(h uint64, size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used.Load()+size <= s.limit || s.recent.has(h) {
		return true
	}
	s.recent.add(h, s.count)
	return false
}

// yields reports whether a value of a size for the hash should displace others: the next one to be dropped was
// not used. If so, the value will enter proven. If not, that one begins another round.
func (s *shard) yields(h uint64, size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.limit {
		return false
	}
	q := &s.proven
	if s.freshIsDue() {
		q = &s.fresh
	}
	e := q.tail
	if e == nil {
		return false
	}
	if n := e.uses.Load(); n > 0 || e.usedByHolder() {
		q.remove(e)
		e.uses.Store(max(n-1, 0))
		s.proven.push(e)
		return false
	}
	s.recent.add(h, s.count)
	return true
}

// store puts e into the table. It first grows or cleans a table that is three quarters full.
func (s *shard) store(e *entry) {
	t := s.table.Load()
	if 4*(s.filled+1) > 3*len(t.place) {
		places := minPlaces
		for places < 2*(s.count+1) {
			places *= 2
		}
		grown := newTable(places)
		for i := range t.place {
			if old := t.place[i].Load(); old != nil && old != gone {
				grown.insert(old)
			}
		}
		s.filled = s.count
		s.table.Store(grown)
		t = grown
	}
	if t.insert(e) {
		s.filled++
	}
}

// insert reports whether it filled a slot that was nil.
func (t *table) insert(e *entry) bool {
	for i := e.hash & t.mask; ; i = (i + 1) & t.mask {
		switch old := t.place[i].Load(); old {
		case nil, gone:
			t.place[i].Store(e)
			t.tags[i].Store(tagOf(e.hash))
			return old == nil
		}
	}
}

// makeRoom evicts until size more bytes fit within the limit.
func (s *shard) makeRoom(size int64) {
	for s.count > 0 && s.used.Load()+size > s.limit {
		switch {
		case s.lasting.bytes*lastingShare > s.limit || s.lasting.bytes == s.used.Load():
			s.shrink(&s.lasting)
		case s.freshIsDue():
			s.shrinkFresh()
		default:
			s.shrink(&s.proven)
		}
	}
}

// freshIsDue reports whether the next value to be dropped is the oldest one in fresh, not in proven.
func (s *shard) freshIsDue() bool {
	return s.fresh.bytes*10 >= s.used.Load()-s.lasting.bytes || s.proven.tail == nil
}

// shrinkFresh drops the oldest new value, or promotes it if it was used.
func (s *shard) shrinkFresh() {
	e := s.fresh.tail
	if e.uses.Load() > 0 || e.usedByHolder() {
		s.fresh.remove(e)
		e.uses.Store(0)
		s.proven.push(e)
		return
	}
	s.recent.add(e.hash, s.count)
	s.drop(e)
}

// shrink drops the oldest value of a queue other than fresh, or gives it another round if it was used.
// It terminates: each round decrements uses, which is at most maxUses, and concurrent Gets and holders
// can only increment it once for each reader.
func (s *shard) shrink(q *queue) {
	e := q.tail
	if n := e.uses.Load(); n > 0 || e.usedByHolder() {
		q.remove(e)
		e.uses.Store(max(n-1, 0))
		q.push(e)
		return
	}
	s.drop(e)
}

// usedByHolder reports whether the value is a Holder that was used since the last call.
func (e *entry) usedByHolder() bool {
	h, ok := e.value.(Holder)
	return ok && h.Used()
}

// drop removes e from the table, its queue and the list of its block.
func (s *shard) drop(e *entry) {
	if h, ok := e.value.(Holder); ok {
		h.Dropped()
	}
	t := s.table.Load()
	for i := e.hash & t.mask; ; i = (i + 1) & t.mask {
		if t.place[i].Load() == e {
			t.place[i].Store(gone)
			break
		}
	}
	e.queue.remove(e)
	if e.sibling != nil {
		e.sibling.elder = e.elder
	}
	switch {
	case e.elder != nil:
		e.elder.sibling = e.sibling
	case e.sibling != nil:
		s.blocks[e.key.Block] = e.sibling
	default:
		delete(s.blocks, e.key.Block)
	}
	e.sibling, e.elder = nil, nil
	s.used.Add(-e.bytes)
	s.count--
}

func (s *shard) evict(block uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.blocks[block]; e != nil; e = s.blocks[block] {
		s.drop(e)
	}
}

func (s *shard) setLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.makeRoom(0)
}
