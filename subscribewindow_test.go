package oribi

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// Windows, one after the other, contain each change once, in the order of timestamps, and no more
// than their limit.
func TestWindowsContainEachChangeOnce(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 200 {
		var all []conflict.Change
		for range rng.IntN(300) {
			c := conflict.Change{Timestamp: mvcc.Timestamp(1 + rng.IntN(1+rng.IntN(60))),
				Table: uint32(1 + rng.IntN(2)), Key: fmt.Append(nil, rng.IntN(50))}
			if rng.IntN(20) == 0 {
				c.Key, c.Unknown = nil, true
			}
			all = append(all, c)
		}
		type change struct {
			at      mvcc.Timestamp
			table   uint32
			key     string
			unknown bool
		}
		name := func(c conflict.Change) change { return change{c.Timestamp, c.Table, string(c.Key), c.Unknown} }
		const last = 60
		limit := int64(1000 + rng.IntN(4000))
		for done := mvcc.Timestamp(0); done < last; {
			w := window{limit: limit, upTo: last}
			for _, c := range all {
				if c.Timestamp > done && c.Timestamp <= w.upTo {
					w.add(c.Timestamp, c.Table, c.Key)
				}
				if w.bytes > limit {
					t.Fatalf("%d bytes, limit %d", w.bytes, limit)
				}
			}
			w.sort()
			unknown := func(c conflict.Change) change { return change{at: c.Timestamp, table: c.Table, unknown: true} }
			listed := map[change]bool{}
			for i, c := range w.changes {
				if c.Timestamp <= done || c.Timestamp > w.upTo || i > 0 && c.Timestamp < w.changes[i-1].Timestamp {
					t.Fatalf("a change at %v in the window (%v, %v]", c.Timestamp, done, w.upTo)
				}
				listed[name(c)] = true
			}
			for _, c := range all {
				inside := c.Timestamp > done && c.Timestamp <= w.upTo
				if inside && !listed[name(c)] && !listed[unknown(c)] || !inside && listed[name(c)] {
					t.Fatalf("change %v in the window (%v, %v]: listed %t", name(c), done, w.upTo, listed[name(c)])
				}
			}
			if w.upTo <= done {
				t.Fatalf("the window (%v, %v] is empty", done, w.upTo)
			}
			done = w.upTo
		}
	}
}
