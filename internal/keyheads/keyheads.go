// Package keyheads searches ascending keys by eight bytes of each.
package keyheads

import (
	"bytes"
	"math/bits"

	"github.com/oribi-db/oribi/keyenc"
)

// Heads has eight bytes of each of some ascending keys as a number, so that a search compares
// whole keys only if heads are equal. They are the bytes after the common prefix of all keys except
// the first one, which writers of indexes cut. If the keys do not ascend, a search returns any of
// them. Immutable.
type Heads struct {
	heads  []uint64 // of keys 1 and up, without common; heads[0] is not used
	common []byte   // common prefix of keys 1 and up
	step   float64  // keys for each unit of a head between the first and the last one, on average
}

// Make returns the heads of n keys. The result aliases key 1.
func Make(n int, key func(i int) []byte) Heads {
	h := Heads{heads: make([]uint64, n)}
	if n < 2 {
		return h
	}
	h.common = key(1)
	for i := 2; i < n && len(h.common) > 0; i++ {
		k := key(i)
		n := 0
		for n < len(k) && n < len(h.common) && k[n] == h.common[n] {
			n++
		}
		h.common = h.common[:n]
	}
	for i := 1; i < n; i++ {
		h.heads[i] = keyenc.Head(key(i)[len(h.common):])
	}
	if first, last := h.heads[1], h.heads[n-1]; first < last {
		h.step = float64(n-2) / float64(last-first)
	}
	return h
}

// Of returns the heads of keys of which only keyenc.Head is known. It owns the slice.
func Of(heads []uint64) Heads { return Heads{heads: heads} }

// Detach makes h refer to no key.
func (h *Heads) Detach() { h.common = bytes.Clone(h.common) }

// Bytes returns the memory of h, with the common prefix.
func (h *Heads) Bytes() int64 { return int64(8*cap(h.heads) + cap(h.common)) }

// near returns a range [lo, hi) that has the last head below head, or key 0 if no head is below it: a few
// keys around the key that it is if keys are evenly distributed. A search of all heads would miss the
// CPU's caches at each of its first steps, one after another.
func (h *Heads) near(head uint64) (lo, hi int) {
	n := len(h.heads)
	if n < 64 || h.step == 0 {
		return 0, n
	}
	guess := 0
	if first := h.heads[1]; head > first {
		guess = int(min(float64(head-first)*h.step, float64(n)))
	}
	for width := 16; ; width *= 8 {
		lo, hi = max(0, guess-width), min(n, guess+width)
		if (lo == 0 || h.heads[lo] < head) && (hi == n || h.heads[hi] >= head) {
			return lo, hi
		}
	}
}

// Find returns the number of the last key at or before probe, which is not before key 0.
// atOrBefore reports whether key i is at or before probe, and is called only for keys with the head of
// the probe. Find returns its error.
func (h *Heads) Find(probe []byte, atOrBefore func(i int) (bool, error)) (int, error) {
	lo, hi := 0, len(h.heads) // key lo ≤ probe < key hi
	n := len(h.common)
	switch bytes.Compare(probe[:min(n, len(probe))], h.common) {
	case -1:
		return lo, nil
	case 1:
		return hi - 1, nil
	}
	head := keyenc.Head(probe[n:])
	lo, hi = h.near(head)
	// The comparison is branch-free: with random keys every other branch would be mispredicted.
	for left := hi - lo; left > 1; {
		half := left >> 1
		_, below := bits.Sub64(h.heads[lo+half], head, 0) // 1 if that head is below, else 0
		lo += half & -int(below)
		left -= half
	}
	// Keys up to lo are before the probe, keys with greater heads are after it, and all keys
	// between have the same head.
	for hi = lo + 1; hi < len(h.heads) && h.heads[hi] == head; {
		hi = min(2*hi-lo, len(h.heads))
	}
	for hi-lo > 1 {
		mid := int(uint(lo+hi) >> 1)
		before := false
		if h.heads[mid] == head {
			var err error
			if before, err = atOrBefore(mid); err != nil {
				return 0, err
			}
		}
		if before {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}
