package keyindex

import (
	"bytes"
	"slices"
)

// Gaps are ranges of keys in which a transaction sees no rows. With them, a loop that deletes the
// first row of a table does not pass over the rows that it has deleted before. Only mostGaps ranges
// are remembered. The zero value has none.
type Gaps struct {
	list []Range // the newest last
}

const mostGaps = 16

// below reports whether key is below a bound, which is above all keys if it is nil.
func below(key, bound []byte) bool { return bound == nil || bytes.Compare(key, bound) < 0 }

// Add adds the range [lower, upper), of which it makes copies. A nil upper is above all keys.
func (g *Gaps) Add(lower, upper []byte) {
	if !below(lower, upper) {
		return
	}
	added := Range{append([]byte{}, lower...), bytes.Clone(upper)}
	g.list = slices.DeleteFunc(g.list, func(o Range) bool {
		if added.Upper != nil && bytes.Compare(o.Lower, added.Upper) > 0 ||
			o.Upper != nil && bytes.Compare(added.Lower, o.Upper) > 0 {
			return false
		}
		if bytes.Compare(o.Lower, added.Lower) < 0 {
			added.Lower = o.Lower
		}
		if added.Upper != nil && (o.Upper == nil || bytes.Compare(o.Upper, added.Upper) > 0) {
			added.Upper = o.Upper
		}
		return true
	})
	g.add(added)
}

func (g *Gaps) add(o Range) {
	if len(g.list) == mostGaps {
		g.list = slices.Delete(g.list, 0, 1)
	}
	g.list = append(g.list, o)
}

// Fill records that there may be a row with a key.
func (g *Gaps) Fill(key []byte) {
	for i, o := range g.list {
		if bytes.Compare(o.Lower, key) > 0 || !below(key, o.Upper) {
			continue
		}
		g.list = slices.Delete(g.list, i, i+1)
		if bytes.Compare(o.Lower, key) < 0 {
			g.add(Range{o.Lower, bytes.Clone(key)})
		}
		if next := append(bytes.Clone(key), 0); below(next, o.Upper) {
			g.add(Range{next, o.Upper})
		}
		return
	}
}

// Narrow returns a range without the gap at its beginning or, if the scan of it descends, at its end.
// A nil upper bound is none, before and after.
func (g *Gaps) Narrow(lower, upper []byte, descending bool) (_, _ []byte) {
	for _, o := range g.list { // of two gaps, none begins where the other ends, unless a row was added
		switch {
		case descending && below(o.Lower, upper) && (o.Upper == nil || !above(upper, o.Upper)):
			upper = o.Lower
		case !descending && bytes.Compare(o.Lower, lower) <= 0 && below(lower, o.Upper):
			if lower = o.Upper; lower == nil {
				return []byte{}, []byte{}
			}
		}
	}
	if upper != nil && bytes.Compare(lower, upper) >= 0 {
		return []byte{}, []byte{}
	}
	return lower, upper
}

// above reports whether a bound, which is above all keys if it is nil, is above another one.
func above(bound, other []byte) bool { return bound == nil || bytes.Compare(bound, other) > 0 }
