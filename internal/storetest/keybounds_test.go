package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// keyTest is a predicate on the key columns, with a function that says for which keys it is true.
type keyTest struct {
	p    oribi.Predicate
	true func(a string, b int) bool
}

// TestFiltersOfKeyColumnsBoundScans compares scans with predicates on the columns of a compound key
// with a loop over all rows. The rows are in several rowsets and in memory.
func TestFiltersOfKeyColumnsBoundScans(t *testing.T) {
	r := seedtest.Rand(t)
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "a*:string b*:int32")
	words := []string{"", "\x00", "a", "a\x00", "a\x00b", "ab", "b", "ba", "z", "zz"}
	for i, w := range words {
		b := store.NewBatch()
		for n := -3; n <= 3; n++ {
			b.Insert(table, oribi.Row{"a": w, "b": n})
		}
		must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		if i%2 == 1 && i < 8 {
			must.Do(t, table.Flush(t.Context()))
		}
	}
	word := func() string { return words[r.IntN(len(words))] }
	number := func() int { return r.IntN(9) - 4 }
	var draw func(depth int) keyTest
	draw = func(depth int) keyTest {
		w, n, m := word(), number(), number()
		tests := []keyTest{
			{oribi.Eq("a", w), func(a string, _ int) bool { return a == w }},
			{oribi.Eq("b", n), func(_ string, b int) bool { return b == n }},
			{oribi.Ne("a", w), func(a string, _ int) bool { return a != w }},
			{oribi.Lt("a", w), func(a string, _ int) bool { return a < w }},
			{oribi.Le("a", w), func(a string, _ int) bool { return a <= w }},
			{oribi.Gt("b", n), func(_ string, b int) bool { return b > n }},
			{oribi.Ge("a", w), func(a string, _ int) bool { return a >= w }},
			{oribi.Gt("a", w), func(a string, _ int) bool { return a > w }},
			{oribi.Lt("b", n), func(_ string, b int) bool { return b < n }},
			{oribi.In("b", n, m), func(_ string, b int) bool { return b == n || b == m }},
			{oribi.In("a", w, "a", w), func(a string, _ int) bool { return a == w || a == "a" }},
			{oribi.Between("b", n, m), func(_ string, b int) bool { return n <= b && b <= m }},
			{oribi.HasPrefix("a", w), func(a string, _ int) bool { return len(a) >= len(w) && a[:len(w)] == w }},
		}
		x := tests[r.IntN(len(tests))]
		if depth == 0 || r.IntN(3) == 0 {
			return x
		}
		y, z := draw(depth-1), draw(depth-1)
		switch r.IntN(6) {
		case 0:
			return keyTest{oribi.Or(y.p, z.p), func(a string, b int) bool { return y.true(a, b) || z.true(a, b) }}
		case 1:
			return keyTest{oribi.Not(y.p), func(a string, b int) bool { return !y.true(a, b) }}
		}
		return keyTest{oribi.And(y.p, z.p), func(a string, b int) bool { return y.true(a, b) && z.true(a, b) }}
	}
	for range 500 {
		c := draw(3)
		var want, got []string
		for _, w := range words {
			for n := -3; n <= 3; n++ {
				if c.true(w, n) {
					want = append(want, fmt.Sprintf("%q %d", w, n))
				}
			}
		}
		for row := range must.All(t, table.Scan(t.Context(), oribi.Where(c.p)).Rows()) {
			got = append(got, fmt.Sprintf("%q %d", row["a"], row["b"]))
		}
		n, err := table.Count(t.Context(), oribi.Where(c.p), oribi.Workers(2))
		if !slices.Equal(got, want) || err != nil || n != int64(len(want)) {
			t.Fatalf("%v: %q, %d rows, %v, want %q", c.p, got, n, err, want)
		}
	}
	var e oribi.Explanation
	if n, err := table.Count(t.Context(), oribi.Where(oribi.Eq("a", "ab"), oribi.Ge("b", 2)),
		oribi.Explain(&e)); err != nil || n != 2 || e.RowSets.Outside != 3 {
		t.Errorf("%d rows, %v: %v", n, err, &e)
	}
}
