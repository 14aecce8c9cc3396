package keyindex

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// TestIndexMatchesALoopOverOperations adds and removes operations and compares the index with loops
// over all of them.
func TestIndexMatchesALoopOverOperations(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 200 {
		var ops [][]byte
		x := &Index{Key: func(op int) []byte { return ops[op] }}
		key := func() []byte { return fmt.Appendf([]byte{}, "%d", rng.IntN(60))[:rng.IntN(3)] }
		for range 40 {
			switch rng.IntN(4) {
			case 0:
				n := rng.IntN(len(ops) + 1)
				seen := 0
				x.Truncate(n, func(int) { seen++ })
				left := 0
				for _, k := range ops[n:] {
					if k != nil {
						left++
					}
				}
				must.Equal(t, seen, left, "removed operations with a key")
				ops = ops[:n]
			default:
				for range rng.IntN(8) {
					if ops = append(ops, key()[:]); rng.IntN(10) == 0 {
						ops[len(ops)-1] = nil
					}
				}
				x.Extend(len(ops))
			}
			check(t, x, ops, key())
			lower, upper := key(), key()
			if rng.IntN(4) == 0 {
				upper = nil
			}
			for _, descending := range []bool{false, true} {
				checkRange(t, x, ops, lower, upper, descending)
			}
		}
	}
}

// check compares the operations on a key.
func check(t *testing.T, x *Index, ops [][]byte, key []byte) {
	t.Helper()
	var want, got []int
	for i, k := range ops {
		if k != nil && bytes.Equal(k, key) {
			want = append(want, i)
		}
	}
	if e := x.Find(key); e >= 0 {
		for op := x.Last(e); op >= 0; op = x.Before(op) {
			got = append(got, op)
		}
		slices.Reverse(got)
	}
	must.Equal(t, got, want, "operations on", key)
}

func checkRange(t *testing.T, x *Index, ops [][]byte, lower, upper []byte, descending bool) {
	t.Helper()
	var want, got []string
	for _, k := range ops {
		if k != nil && bytes.Compare(k, lower) >= 0 && (upper == nil || bytes.Compare(k, upper) < 0) {
			want = append(want, string(k))
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if descending {
		slices.Reverse(want)
	}
	for c := x.Range(lower, upper, descending); c.Key() != nil; c.Next() {
		got = append(got, string(c.Key()))
	}
	must.Equal(t, got, want, "range", lower, upper, descending)
}

// A cursor visits each key that stays, in order, whatever is added and removed meanwhile.
func TestCursorVisitsKeysThatStay(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 300 {
		var ops [][]byte
		x := &Index{Key: func(op int) []byte { return ops[op] }}
		add := func() {
			ops = append(ops, fmt.Appendf(nil, "%02d", rng.IntN(100)))
			x.Extend(len(ops))
		}
		for range 20 {
			add()
		}
		stay := map[string]bool{}
		for _, k := range ops {
			stay[string(k)] = true
		}
		descending := rng.IntN(2) == 0
		var last []byte
		for c := x.Range(nil, nil, descending); c.Key() != nil; c.Next() {
			k := c.Key()
			if last != nil && bytes.Compare(k, last) > 0 == descending {
				t.Fatalf("key %s after %s, descending %v", k, last, descending)
			}
			last = bytes.Clone(k)
			delete(stay, string(k))
			for range rng.IntN(4) {
				if len(ops) > 20 && rng.IntN(2) == 0 {
					x.Truncate(len(ops)-1, nil)
					ops = ops[:len(ops)-1]
				} else {
					add()
				}
			}
		}
		must.Equal(t, len(stay), 0, "keys that stayed and were not visited")
	}
}
