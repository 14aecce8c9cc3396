package keyindex

import (
	"bytes"
	"slices"
)

// Range is the keys in [Lower, Upper). A nil Upper is above all keys.
type Range struct{ Lower, Upper []byte }

// Ranges are disjoint ranges of keys in their order. They are immutable.
type Ranges []Range

// With returns rs with the keys of [lower, upper), of which it makes copies. It takes time in proportion
// to rs.
func (rs Ranges) With(lower, upper []byte) Ranges {
	if !below(lower, upper) {
		return rs
	}
	added := Range{append([]byte{}, lower...), bytes.Clone(upper)}
	from, _ := slices.BinarySearchFunc(rs, lower, func(r Range, lower []byte) int { // the first that ends at lower or after it
		if r.Upper != nil && bytes.Compare(r.Upper, lower) < 0 {
			return -1
		}
		return 1
	})
	end := from
	for ; end < len(rs) && (upper == nil || bytes.Compare(rs[end].Lower, upper) <= 0); end++ {
		if bytes.Compare(rs[end].Lower, added.Lower) < 0 {
			added.Lower = rs[end].Lower
		}
		if added.Upper != nil && (rs[end].Upper == nil || bytes.Compare(rs[end].Upper, added.Upper) > 0) {
			added.Upper = rs[end].Upper
		}
	}
	return slices.Concat(rs[:from], Ranges{added}, rs[end:])
}

// Without returns rs without some keys, which are in their order and each in one of the ranges.
func (rs Ranges) Without(keys [][]byte) Ranges {
	if len(keys) == 0 {
		return rs
	}
	out := make(Ranges, 0, len(rs)+len(keys))
	for _, r := range rs {
		for ; len(keys) > 0 && below(keys[0], r.Upper); keys = keys[1:] {
			if below(r.Lower, keys[0]) {
				out = append(out, Range{r.Lower, bytes.Clone(keys[0])})
			}
			r.Lower = append(bytes.Clone(keys[0]), 0)
		}
		if below(r.Lower, r.Upper) {
			out = append(out, r)
		}
	}
	return out
}

// Contain reports whether a key is in one of the ranges.
func (rs Ranges) Contain(key []byte) bool {
	_, ok := rs.Find(key)
	return ok
}

// Find returns the range that contains a key, or false if no range does.
func (rs Ranges) Find(key []byte) (r Range, ok bool) {
	i, _ := slices.BinarySearchFunc(rs, key, func(r Range, key []byte) int {
		if !below(key, r.Upper) {
			return -1
		}
		return 1
	})
	if i == len(rs) || bytes.Compare(rs[i].Lower, key) > 0 {
		return Range{}, false
	}
	return rs[i], true
}

// Next returns the first range after key, which is in none of them, or the last one before it.
func (rs Ranges) Next(key []byte, before bool) (lower, upper []byte, ok bool) {
	i, _ := slices.BinarySearchFunc(rs, key, func(r Range, key []byte) int { return bytes.Compare(r.Lower, key) })
	if before {
		i--
	}
	if i < 0 || i == len(rs) {
		return nil, nil, false
	}
	return rs[i].Lower, rs[i].Upper, true
}

// Bytes returns about how much memory the ranges take.
func (rs Ranges) Bytes() (n int64) {
	for _, r := range rs {
		n += int64(len(r.Lower)+len(r.Upper)) + 48
	}
	return n
}
