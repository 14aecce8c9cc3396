package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/prooftest"
)

// counts are amounts of work by unit, each unit once, in the order in which units first occurred.
type counts []prooftest.Tally

// tallied converts tallies to counts, without those that are zero.
func tallied(list []prooftest.Tally) (c counts) {
	for _, t := range list {
		if t.N != 0 {
			c = append(c, t)
		}
	}
	return c
}

func (c counts) plus(o counts) counts {
	c = slices.Clone(c)
	for _, t := range o {
		if i := slices.IndexFunc(c, func(have prooftest.Tally) bool { return have.Unit == t.Unit }); i >= 0 {
			c[i].N += t.N
		} else {
			c = append(c, t)
		}
	}
	return c
}

// of returns the number of a unit, 0 if it is absent.
func (c counts) of(unit string) int64 {
	for _, t := range c {
		if t.Unit == unit {
			return t.N
		}
	}
	return 0
}

// first returns the first unit.
func (c counts) first() string {
	if len(c) == 0 {
		return "seeds"
	}
	return c[0].Unit
}

// String formats counts as "3 histories, 4,500 steps".
func (c counts) String() string {
	var parts []string
	for _, t := range c {
		parts = append(parts, grouped(t.N)+" "+t.Unit)
	}
	return strings.Join(parts, ", ")
}

// parseCounts parses the output of String.
func parseCounts(text string) (c counts, err error) {
	for part := range strings.SplitSeq(text, ", ") {
		number, unit, ok := strings.Cut(part, " ")
		n, err := strconv.ParseInt(strings.ReplaceAll(number, ",", ""), 10, 64)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("invalid count %q", part)
		}
		c = c.plus(counts{{N: n, Unit: unit}})
	}
	return c, nil
}

// grouped formats 1234567 as 1,234,567.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// span is a run of seeds, both ends inclusive.
type span struct{ first, last uint64 }

// spans are sorted, disjoint and not adjacent.
type spans []span

// plus returns the union of two lists.
func (s spans) plus(o spans) (out spans) {
	all := slices.Concat(s, o)
	slices.SortFunc(all, func(a, b span) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return 0
	})
	for _, x := range all {
		if n := len(out); n > 0 && x.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, x.last)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// String formats spans as "1–40, 52".
func (s spans) String() string {
	var parts []string
	for _, x := range s {
		if x.first == x.last {
			parts = append(parts, strconv.FormatUint(x.first, 10))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", x.first, x.last))
		}
	}
	return strings.Join(parts, ", ")
}

// parseSpans parses the output of String.
func parseSpans(text string) (s spans, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ", ") {
		from, to, ok := strings.Cut(part, "–")
		if !ok {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 64)
		last, err2 := strconv.ParseUint(to, 10, 64)
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("invalid seeds %q", part)
		}
		s = s.plus(spans{{first, last}})
	}
	return s, nil
}
