// Package keyindex finds the operations of a write batch by their keys, and the keys in order.
//
// An Index does not contain keys: it asks its caller for the key of an operation, which must not
// change. Operations are added at the end and removed at the end. Each takes about 16 bytes, or
// about 24 once the keys were asked for in order. Not safe for concurrent use.
//
// The order is a skip list, whose towers are one slice, in the order in which the keys were added.
package keyindex

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
)

// Index is an index of operations. Its zero value, with Key set, is empty.
type Index struct {
	// Key returns the key of an operation; nil, unlike an empty key, leaves the operation out.
	Key func(op int) []byte

	ops  []int32 // for each operation, the previous one on its key, or −1
	last []int32 // for each entry, a key, its last operation; in the order of their first operations

	seed  maphash.Seed
	slots []int32 // hash table of entries + 1, 0 is free; its length is a power of two, or 0

	// The skip list has the first len(start) entries.
	start   []int32           // where the tower of an entry begins in links
	links   []int32           // the next entry + 1 on each level, 0 for none
	head    [mostLevels]int32 // the first entry + 1 on each level
	random  uint64
	removed int // keys so far: cursors at removed entries look for their place again
}

const mostLevels = 12

// Len returns the number of operations.
func (x *Index) Len() int { return len(x.ops) }

// Keys returns the number of keys.
func (x *Index) Keys() int { return len(x.last) }

// Extend adds the operations up to n.
func (x *Index) Extend(n int) {
	for op := len(x.ops); op < n; op++ {
		key := x.Key(op)
		if key == nil {
			x.ops = append(x.ops, -1)
			continue
		}
		if 4*(len(x.last)+1) > 3*len(x.slots) {
			x.grow()
		}
		at := x.slot(key)
		e := x.slots[at] - 1
		if e < 0 {
			e = int32(len(x.last))
			x.slots[at] = e + 1
			x.last = append(x.last, -1)
		}
		x.ops = append(x.ops, x.last[e])
		x.last[e] = int32(op)
	}
}

// Truncate removes the operations from n on. removed, unless it is nil, is called with the entry of
// each, whose last operation is then the one before or, if there is none, which exists no longer.
func (x *Index) Truncate(n int, removed func(entry int)) {
	for op := len(x.ops) - 1; op >= n; op-- {
		before := x.ops[op]
		x.ops = x.ops[:op]
		key := x.Key(op)
		if key == nil {
			continue
		}
		at := x.slot(key)
		e := x.slots[at] - 1
		if removed != nil {
			removed(int(e))
		}
		if before >= 0 {
			x.last[e] = before
			continue
		}
		x.unlink(e, key)
		x.free(at)
		x.last = x.last[:e] // e is the newest entry
	}
}

// Find returns the entry of a key, −1 if there is none.
func (x *Index) Find(key []byte) int {
	if len(x.slots) == 0 {
		return -1
	}
	return int(x.slots[x.slot(key)]) - 1
}

// Last returns the last operation of an entry.
func (x *Index) Last(entry int) int { return int(x.last[entry]) }

// Before returns the operation before op on the same key, −1 if there is none.
func (x *Index) Before(op int) int { return int(x.ops[op]) }

func (x *Index) keyOf(entry int32) []byte { return x.Key(int(x.last[entry])) }

// slot returns the place of a key in the hash table, or the free one where it belongs.
func (x *Index) slot(key []byte) int {
	mask := len(x.slots) - 1
	at := int(maphash.Bytes(x.seed, key)) & mask
	for x.slots[at] != 0 && !bytes.Equal(x.keyOf(x.slots[at]-1), key) {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the hash table.
func (x *Index) grow() {
	if len(x.slots) == 0 {
		x.seed = maphash.MakeSeed()
	}
	x.slots = make([]int32, max(8, 2*len(x.slots)))
	for e := range x.last {
		x.slots[x.slot(x.keyOf(int32(e)))] = int32(e) + 1
	}
}

// free empties a place of the hash table, and moves up those after it that looked past it.
func (x *Index) free(at int) {
	mask := len(x.slots) - 1
	for next := (at + 1) & mask; x.slots[next] != 0; next = (next + 1) & mask {
		home := int(maphash.Bytes(x.seed, x.keyOf(x.slots[next]-1))) & mask
		if (next-home)&mask >= (next-at)&mask {
			x.slots[at], at = x.slots[next], next
		}
	}
	x.slots[at] = 0
}

// order adds the entries to the skip list that it lacks.
func (x *Index) order() {
	for e := int32(len(x.start)); int(e) < len(x.last); e++ {
		x.random = x.random*6364136223846793005 + 1442695040888963407 // Knuth's MMIX
		levels := min(1+bits.TrailingZeros64(x.random>>32|1<<40)/2, mostLevels)
		x.links = slices.Grow(x.links, levels) // which is not moved while before points into it
		var before [mostLevels]*int32
		x.search(x.keyOf(e), &before)
		x.start = append(x.start, int32(len(x.links)))
		for level := range levels {
			x.links = append(x.links, *before[level])
			*before[level] = e + 1
		}
	}
}

// search sets before to the links, on each level, that lead past key: to the first entry that is not
// below it. It returns that entry, or −1.
func (x *Index) search(key []byte, before *[mostLevels]*int32) int32 {
	at := int32(-1) // the last entry below key; −1 is the head
	for level := mostLevels - 1; level >= 0; level-- {
		for {
			link := x.link(at, level)
			if *link == 0 || bytes.Compare(x.keyOf(*link-1), key) >= 0 {
				before[level] = link
				break
			}
			at = *link - 1
		}
	}
	return *before[0] - 1
}

// link returns the link of an entry, −1 for the head, on a level.
func (x *Index) link(entry int32, level int) *int32 {
	if entry < 0 {
		return &x.head[level]
	}
	return &x.links[x.start[entry]+int32(level)]
}

// unlink removes the newest entry from the skip list.
func (x *Index) unlink(e int32, key []byte) {
	if int(e) >= len(x.start) {
		return
	}
	x.removed++
	var before [mostLevels]*int32
	x.search(key, &before)
	for level := range len(x.links) - int(x.start[e]) {
		*before[level] = *x.link(e, level)
	}
	x.links, x.start = x.links[:x.start[e]], x.start[:e]
}

// Cursor visits the keys of an Index in a range, in order. Keys that are added while it is in use may
// or may not be visited; removed ones are not.
type Cursor struct {
	x          *Index
	lower      []byte // inclusive
	upper      []byte // exclusive; nil for none
	descending bool
	entry      int32 // of the current key
	key        []byte
	removed    int
}

// Range returns a cursor at the first key in [lower, upper), or at the last one if it descends. A nil
// upper bound is none.
func (x *Index) Range(lower, upper []byte, descending bool) *Cursor {
	x.order()
	c := &Cursor{x: x, lower: lower, upper: upper, descending: descending, removed: x.removed}
	if descending {
		c.moveBelow(upper)
	} else {
		c.moveTo(lower)
	}
	return c
}

// Key returns the current key, nil at the end. It belongs to the caller of the Index.
func (c *Cursor) Key() []byte {
	if c.removed != c.x.removed && c.key != nil {
		c.x.order()
		c.removed = c.x.removed
		if c.descending {
			c.moveBelow(append(bytes.Clone(c.key), 0))
		} else {
			c.moveTo(c.key)
		}
	}
	return c.key
}

// Next moves to the next key.
func (c *Cursor) Next() {
	if c.key == nil {
		return
	}
	c.x.order()
	switch {
	case c.descending:
		c.moveBelow(c.key)
	case c.removed == c.x.removed:
		c.set(*c.x.link(c.entry, 0) - 1)
	default: // the entry may be another one
		c.moveTo(append(bytes.Clone(c.key), 0))
	}
	c.removed = c.x.removed
}

// moveTo moves to the first key that is not below key.
func (c *Cursor) moveTo(key []byte) {
	var before [mostLevels]*int32
	c.set(c.x.search(key, &before))
}

// moveBelow moves to the last key below key; nil is above all.
func (c *Cursor) moveBelow(key []byte) {
	at := int32(-1)
	for level := mostLevels - 1; level >= 0; level-- {
		for next := *c.x.link(at, level) - 1; next >= 0 &&
			(key == nil || bytes.Compare(c.x.keyOf(next), key) < 0); next = *c.x.link(at, level) - 1 {
			at = next
		}
	}
	c.set(at)
}

// set makes an entry the current one; −1 is the end.
func (c *Cursor) set(entry int32) {
	c.entry, c.key = entry, nil
	if entry < 0 {
		return
	}
	key := c.x.keyOf(entry)
	if c.descending && bytes.Compare(key, c.lower) >= 0 || !c.descending && (c.upper == nil || bytes.Compare(key, c.upper) < 0) {
		c.key = key
	}
}
