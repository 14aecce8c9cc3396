package aggregate

import (
	"math/rand/v2"
)

// numbers is a hash table that numbers distinct 64-bit keys in the order of their first appearance,
// from 0. The zero value is empty.
type numbers struct {
	slots []slot // a power of 2 of them, at most half in use
	keys  []uint64
	seed  [2]uint64 // odd; random, so that no choice of keys collides each time
}

type slot struct {
	key    uint64
	number uint32 // number of the group plus one; 0 = the slot is free
}

// bytesPerKey is about how much memory a key takes.
const bytesPerKey = 16*3 + 8

// number returns the number of a key.
func (t *numbers) number(key uint64) uint32 {
	if 2*len(t.keys) >= len(t.slots) {
		t.grow()
	}
	i := t.find(key)
	if n := t.slots[i].number; n != 0 {
		return n - 1
	}
	t.keys = append(t.keys, key)
	t.slots[i] = slot{key, uint32(len(t.keys))}
	return uint32(len(t.keys) - 1)
}

// find returns the slot of a key, or the free one where it belongs.
func (t *numbers) find(key uint64) int {
	h := key * t.seed[0]
	h = (h ^ h>>32) * t.seed[1]
	mask := len(t.slots) - 1
	i := int(h>>32) & mask
	for t.slots[i].number != 0 && t.slots[i].key != key {
		i = (i + 1) & mask
	}
	return i
}

func (t *numbers) grow() {
	if t.slots == nil {
		t.seed = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}
	}
	t.slots = make([]slot, max(64, 2*len(t.slots)))
	for n, key := range t.keys {
		t.slots[t.find(key)] = slot{key, uint32(n + 1)}
	}
}
