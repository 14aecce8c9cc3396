package encoding

import (
	"bytes"
	"math/bits"

	"github.com/oribi-db/oribi/keyenc"
)

// spread has the first and the last restart's values, as numbers, from which the restart of a value
// is estimated. The zero value gives no estimate.
type spread struct {
	skip      int    // leading bytes that both have in common
	low, high uint64 // their heads after these
}

// fewRestarts is the number of restarts below which no estimate is made: a binary search compares
// about as many values.
const fewRestarts = 8

// maxStep bounds how far from an estimate the values are searched for by doubling steps.
const maxStep = 8

// countRestarts returns the number of restarts, including entry 0.
func (b *prefixBlock) countRestarts() int { return (b.count + b.interval - 1) / b.interval }

// measure returns the spread of the restarts' values.
func (b *prefixBlock) measure() spread {
	n := b.countRestarts()
	if n < fewRestarts {
		return spread{}
	}
	first, last := b.restartValue(0), b.restartValue(n-1)
	skip := commonPrefix(first, last)
	return spread{skip, keyenc.Head(first[skip:]), keyenc.Head(last[skip:])}
}

// estimate returns where target would be among n restarts if their values were evenly spread. ok is
// false if that is unknown.
func (s *spread) estimate(target []byte, n int) (r int, ok bool) {
	if s.low >= s.high || len(target) < s.skip {
		return 0, false
	}
	at := min(max(keyenc.Head(target[s.skip:]), s.low), s.high)
	// at − low is at most high − low, so the quotient is at most n − 1.
	hi, lo := bits.Mul64(at-s.low, uint64(n-1))
	q, _ := bits.Div64(hi, lo, s.high-s.low)
	return int(q), true
}

// Seek searches the restarts, then walks the entries between the last one whose value is below
// target and the next.
//
// The walk builds no values. It tracks how many leading bytes the previous value, which is below
// target, has in common with target. From the order of the values it follows for the next one:
//
//	shared > common  it differs from target at the same byte as the previous one: below
//	shared < common  it differs from target earlier: above
//	shared = common  the unshared bytes decide against the rest of target
//
// A restart shares nothing whatever its value is, so the walk ends before it.
func (b *prefixBlock) Seek(target []byte) (int, bool, error) {
	lo := b.restartsBelow(target)
	end := min(lo*b.interval, b.count)
	if lo > 0 {
		if i, exact := b.seekBetween((lo-1)*b.interval, end, target); i < end {
			return i, exact, nil
		}
	}
	return end, end < b.count && bytes.Equal(b.restartValue(lo), target), nil
}

// restartsBelow returns the number of restarts whose values are below target. The values are not
// next to each other in memory, and a comparison waits for two cache misses. So the search begins
// where the value would be if they were evenly spread, which keys often are nearly, and becomes a
// binary search if it is not near.
func (b *prefixBlock) restartsBelow(target []byte) int {
	lo, hi := 0, b.countRestarts() // those before lo are below, those from hi on are not
	if at, ok := b.spread.estimate(target, hi); ok {
		lo, hi = b.bracket(target, at, hi)
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b.isBelow(mid, target) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// bracket searches from restart at, of n, in doubling steps. The number of restarts whose values are
// below target is in [lo, hi].
func (b *prefixBlock) bracket(target []byte, at, n int) (lo, hi int) {
	if b.isBelow(at, target) {
		lo = at + 1
		for step := 1; step <= maxStep && lo+step <= n; step *= 2 {
			if at := lo + step - 1; !b.isBelow(at, target) {
				return lo, at
			}
			lo += step
		}
		return lo, n
	}
	hi = at
	for step := 1; step <= maxStep && step <= hi; step *= 2 {
		if b.isBelow(hi-step, target) {
			return hi - step + 1, hi
		}
		hi -= step
	}
	return 0, hi
}

// isBelow reports whether the value of a restart is below target.
func (b *prefixBlock) isBelow(r int, target []byte) bool {
	return bytes.Compare(b.restartValue(r), target) < 0
}

// seekBetween walks entries [i, end), of which only the first is a restart. It returns end if all
// are below target.
func (b *prefixBlock) seekBetween(i, end int, target []byte) (int, bool) {
	pos, common := b.restart(i/b.interval), 0
	for ; i < end; i++ {
		shared, unshared, next, _ := b.entry(pos)
		if shared < common {
			return i, false
		}
		if shared == common {
			rest, wanted := b.payload[next-unshared:next], target[common:]
			if order := bytes.Compare(rest, wanted); order >= 0 {
				return i, order == 0
			}
			common += commonPrefix(rest, wanted)
		}
		pos = next
	}
	return end, false
}
