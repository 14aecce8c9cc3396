package keyindex

import (
	"bytes"
	"slices"
)

// Gaps are ranges of keys in which a transaction sees no rows. With them, a loop that deletes the
// first row of a table does not pass over the rows that it has deleted before. Only mostGaps ranges
// are remembered. The zero value has none.
type Gaps struct {
	list []gap // the newest last
}

// gap is a range of keys, [lower, upper). A nil upper is above all keys.
type gap struct{ lower, upper []byte }

const mostGaps = 16

// below reports whether key is below a bound, which is above all keys if it is nil.
func below(key, bound []byte) bool { return bound == nil || bytes.Compare(key, bound) < 0 }

// Add adds the range [lower, upper), of which it makes copies. A nil upper is above all keys.
func (g *Gaps) Add(lower, upper []byte) {
	if !below(lower, upper) {
		return
	}
	added := gap{append([]byte{}, lower...), bytes.Clone(upper)}
	g.list = slices.DeleteFunc(g.list, func(o gap) bool {
		if added.upper != nil && bytes.Compare(o.lower, added.upper) > 0 ||
			o.upper != nil && bytes.Compare(added.lower, o.upper) > 0 {
			return false
		}
		if bytes.Compare(o.lower, added.lower) < 0 {
			added.lower = o.lower
		}
		if added.upper != nil && (o.upper == nil || bytes.Compare(o.upper, added.upper) > 0) {
			added.upper = o.upper
		}
		return true
	})
	g.add(added)
}

func (g *Gaps) add(o gap) {
	if len(g.list) == mostGaps {
		g.list = slices.Delete(g.list, 0, 1)
	}
	g.list = append(g.list, o)
}

// Fill records that there may be a row with a key.
func (g *Gaps) Fill(key []byte) {
	for i, o := range g.list {
		if bytes.Compare(o.lower, key) > 0 || !below(key, o.upper) {
			continue
		}
		g.list = slices.Delete(g.list, i, i+1)
		if bytes.Compare(o.lower, key) < 0 {
			g.add(gap{o.lower, bytes.Clone(key)})
		}
		if next := append(bytes.Clone(key), 0); below(next, o.upper) {
			g.add(gap{next, o.upper})
		}
		return
	}
}

// Narrow returns a range without the gap at its beginning or, if the scan of it descends, at its end.
// A nil upper bound is none, before and after.
func (g *Gaps) Narrow(lower, upper []byte, descending bool) (_, _ []byte) {
	for _, o := range g.list { // of two gaps, none begins where the other ends, unless a row was added
		switch {
		case descending && below(o.lower, upper) && (o.upper == nil || !above(upper, o.upper)):
			upper = o.lower
		case !descending && bytes.Compare(o.lower, lower) <= 0 && below(lower, o.upper):
			if lower = o.upper; lower == nil {
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
