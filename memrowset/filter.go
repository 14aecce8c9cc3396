package memrowset

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/cityhash"
)

// keyFilter is a Bloom filter over the keys of a set. It shows for most keys that are not in the set
// that they are not: that takes a tenth of a walk of the tree, and an insert into a table looks its
// key up first, unless it comes after all others. A set whose keys are mostly inserted in order needs
// no filter, which makes these inserts a tenth slower: while the set is small, it is decided whether
// there is one.
//
// A filter cannot grow without reading all keys again, so it has parts:
//
//	keys    512 ├ 2,048 ┼──── 8,192 ────┼──────────── 32,768 …
//	parts    0      1           2                 3
//
// A key is in the part that was the newest when it was inserted. A lookup asks all parts, one word
// of each.
type keyFilter struct {
	// parts is replaced when a part is added, and free is set, with the set's lock held. A nil
	// pointer means that there is no filter.
	parts  atomic.Pointer[[]filterPart]
	free   int          // number of keys that the newest part still takes
	missed atomic.Int64 // lookups of keys that were not in the tree, while there is no filter
}

type filterPart struct {
	words []atomic.Uint64
	shift int // of a hash, to the index of its word
}

const (
	filterKeys      = 512 // keys of the first part
	filterGrowth    = 4   // each part is for so many times more keys than the one before
	filterWordKeys  = 4   // keys per word: about one absent key in a hundred is not recognized
	filterWordBytes = 8

	filterLeast = 512     // it is decided at this number of rows, …
	filterMost  = 8 << 10 // … then at each power of two up to this one: a filter for so many takes a millisecond
	filterMiss  = 4       // there must be a lookup of an absent key for so many rows
)

func hashKey(key []byte) uint64 { return cityhash.Hash64(key) }

// filterMask returns the four bits of a hash in its word. The word depends on higher bits.
func filterMask(hash uint64) uint64 {
	return 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63)
}

// exists reports whether there is a filter.
func (f *keyFilter) exists() bool { return f.parts.Load() != nil }

// worthwhile reports whether there should be a filter, although there is none, as of the insertion of
// the last of so many rows.
func (f *keyFilter) worthwhile(rows int) bool {
	return rows >= filterLeast && rows <= filterMost && rows&(rows-1) == 0 && f.missed.Load() >= int64(rows/filterMiss)
}

// mayContain reports whether the key with that hash may be in the filter, which exists. It returns
// true for each key of which add has returned before.
func (f *keyFilter) mayContain(hash uint64) bool {
	parts := f.parts.Load()
	mask := filterMask(hash)
	for i := range *parts {
		p := &(*parts)[i]
		if p.words[hash>>p.shift].Load()&mask == mask {
			return true
		}
	}
	return false
}

// add adds the key with that hash to the filter, which then exists, and returns the bytes that it has
// allocated. The caller holds the set's lock.
func (f *keyFilter) add(hash uint64) (grown int64) {
	if f.free == 0 {
		grown = f.addPart()
	}
	f.free--
	parts := *f.parts.Load()
	p := &parts[len(parts)-1]
	p.words[hash>>p.shift].Or(filterMask(hash))
	return grown
}

func (f *keyFilter) addPart() (grown int64) {
	var old []filterPart
	keys, shift := filterKeys, 64-7 // 128 words
	if parts := f.parts.Load(); parts != nil {
		old = *parts
		last := &old[len(old)-1]
		keys, shift = len(last.words)*filterWordKeys*filterGrowth, last.shift-2
	}
	words := make([]atomic.Uint64, keys/filterWordKeys)
	parts := append(old[:len(old):len(old)], filterPart{words, shift})
	f.parts.Store(&parts)
	f.free = keys
	return int64(len(words)) * filterWordBytes
}
