package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// ordered returns the keys of rows in the order of an index.
func ordered(rows map[int64]person, index string) []int64 {
	return slices.SortedFunc(maps.Keys(rows), func(a, b int64) int {
		p, q := rows[a], rows[b]
		if index == "by_email" {
			return cmp.Or(cmp.Compare(p.email, q.email), cmp.Compare(a, b)) // an empty one is NULL, which comes first
		}
		return cmp.Or(cmp.Compare(p.place, q.place), cmp.Compare(p.v, q.v), cmp.Compare(a, b))
	})
}

// bound returns a random bound in the order of an index, and a function that compares rows with it.
func (p *people) bound(index string) (key any, compare func(k int64, r person) int) {
	rng := p.rng
	at, k := person{place: fmt.Sprint("place ", rng.IntN(4)), v: rng.Int64N(5)}, rng.Int64N(13)
	if rng.IntN(3) > 0 {
		at.email = fmt.Sprint(rng.IntN(9), "@example")
	}
	values := oribi.Key{at.place, at.v, k}
	if index == "by_email" {
		values = oribi.Key{orNull(at.email), k}
	}
	n := 1 + rng.IntN(len(values))
	compare = func(key int64, r person) int {
		orders := []int{cmp.Compare(r.place, at.place), cmp.Compare(r.v, at.v), cmp.Compare(key, k)}
		if index == "by_email" {
			orders = []int{cmp.Compare(r.email, at.email), cmp.Compare(key, k)}
		}
		return cmp.Or(orders[:n]...)
	}
	switch {
	case n == len(values) && rng.IntN(2) == 0:
		return oribi.Row{"place": at.place, "v": at.v, "email": orNull(at.email), "k": k}, compare
	case n == 1 && values[0] != nil && rng.IntN(2) == 0:
		return values[0], compare
	}
	return values[:n], compare
}

// compareOrder compares a random scan in the order of an index with rows.
func (p *people) compareOrder(scan func(opts ...oribi.RowsOption) *oribi.Scan, rows map[int64]person) {
	p.t.Helper()
	rng := p.rng
	index := []string{"by_email", "by_place"}[rng.IntN(2)]
	opts, want := []oribi.RowsOption{oribi.OrderBy(index)}, ordered(rows, index)
	keep := func(ok func(k int64, r person) bool) {
		want = slices.DeleteFunc(want, func(k int64) bool { return !ok(k, rows[k]) })
	}
	if rng.IntN(2) == 0 {
		key, compare := p.bound(index)
		opts = append(opts, oribi.Above(key))
		keep(func(k int64, r person) bool { return compare(k, r) > 0 })
	}
	if rng.IntN(2) == 0 {
		key, compare := p.bound(index)
		opts = append(opts, oribi.Below(key))
		keep(func(k int64, r person) bool { return compare(k, r) < 0 })
	}
	if rng.IntN(4) == 0 {
		from := rng.Int64N(12)
		opts = append(opts, oribi.From(from))
		keep(func(k int64, _ person) bool { return k >= from })
	}
	switch place, v := fmt.Sprint("place ", rng.IntN(4)), rng.Int64N(4); rng.IntN(5) {
	case 0:
		opts = append(opts, oribi.Where(oribi.Eq("place", place)))
		keep(func(_ int64, r person) bool { return r.place == place })
	case 1:
		opts = append(opts, oribi.Where(oribi.In("place", place, "place 1"), oribi.Gt("v", v)))
		keep(func(_ int64, r person) bool { return (r.place == place || r.place == "place 1") && r.v > v })
	case 2:
		opts = append(opts, oribi.Where(oribi.Ge("email", "3")))
		keep(func(_ int64, r person) bool { return r.email >= "3" })
	}
	if rng.IntN(2) == 0 {
		opts = append(opts, oribi.Desc())
		slices.Reverse(want)
	}
	if n := rng.Int64N(6); rng.IntN(2) == 0 {
		opts = append(opts, oribi.Limit(n))
		want = want[:min(int(n), len(want))]
	}
	var got []int64
	for row := range must.All(p.t, scan(opts...).Rows()) {
		k := row["k"].(int64)
		r := rows[k]
		must.Equal(p.t, row, oribi.Row{"k": k, "email": orNull(r.email), "place": r.place, "v": r.v})
		got = append(got, k)
	}
	must.Equal(p.t, fmt.Sprint(got), fmt.Sprint(want), index)
}

func (p *people) scanAsOf(ts mvcc.Timestamp) func(opts ...oribi.RowsOption) *oribi.Scan {
	return func(opts ...oribi.RowsOption) *oribi.Scan {
		var all []oribi.ScanOption
		if ts > 0 {
			all = append(all, oribi.AsOf(ts))
		}
		for _, o := range opts {
			all = append(all, o)
		}
		return p.table.Scan(context.Background(), all...)
	}
}

// Scans in the order of an index return what the model has, with bounds, predicates, and limits, in both
// directions, now and in the past.
func TestScansInTheOrderOfAnIndex(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	defer func() { p.store.Close() }()
	for range 200 {
		switch p.rng.IntN(20) {
		case 0:
			must.Do(t, p.table.Flush(ctx))
		case 1:
			must.Do(t, p.table.Compact(ctx))
		default:
			p.commit()
		}
		for range 5 {
			p.compareOrder(p.scanAsOf(0), p.rows)
		}
	}
	for ts, rows := range p.past {
		for range 5 {
			p.compareOrder(p.scanAsOf(ts), rows)
		}
	}
}

// A list is read in pages, forward and backward, with rows that are equal in the indexed columns on both sides
// of a page's end. Each page reads about its own rows.
func TestPagesInTheOrderOfAnIndex(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/pages", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "users", "id*:string place:string? v:int64", oribi.Index("by_place", "place"))
	const n, page = 1000, 7
	b := store.NewBatch()
	for i := range n {
		row := oribi.Row{"id": fmt.Sprint("user", i), "place": fmt.Sprint(i % 5), "v": i}
		if i%5 == 4 {
			row["place"] = nil
		}
		b.Insert(table, row)
	}
	must.Get(b.Commit(ctx))(t)
	must.Do(t, table.Flush(ctx))
	all := slices.Collect(must.All(t, table.Scan(ctx, oribi.OrderBy("by_place")).Rows()))
	must.Equal(t, len(all), n)
	var forward, backward []oribi.Row
	for last := any(nil); len(forward) <= n; {
		var e oribi.Explanation
		rows := slices.Collect(must.All(t, table.Scan(ctx, oribi.OrderBy("by_place"), oribi.Above(last),
			oribi.Limit(page), oribi.Explain(&e)).Rows()))
		must.Equal(t, e.Index, "by_place")
		must.Equal(t, e.Keys, int64(len(rows)))
		if len(rows) == 0 {
			break
		}
		last = rows[len(rows)-1]
		forward = append(forward, rows...)
	}
	for first := any(nil); len(backward) <= n; {
		rows := slices.Collect(must.All(t, table.Scan(ctx, oribi.OrderBy("by_place"), oribi.Below(first), oribi.Desc(),
			oribi.Limit(page)).Rows()))
		if len(rows) == 0 {
			break
		}
		first = rows[len(rows)-1]
		backward = append(backward, rows...)
	}
	slices.Reverse(backward)
	must.Equal(t, fmt.Sprint(forward), fmt.Sprint(all))
	must.Equal(t, fmt.Sprint(backward), fmt.Sprint(all))

	// In the order of the key, too.
	ids := slices.Collect(must.All(t, table.Scan(ctx).Rows()))
	var pages []oribi.Row
	for last := any(nil); len(pages) <= n; {
		rows := slices.Collect(must.All(t, table.Scan(ctx, oribi.Above(last), oribi.Limit(page)).Rows()))
		if len(rows) == 0 {
			break
		}
		last = rows[len(rows)-1]["id"]
		pages = append(pages, rows...)
	}
	must.Equal(t, fmt.Sprint(pages), fmt.Sprint(ids))
	must.Equal(t, len(slices.Collect(must.All(t, table.Scan(ctx, oribi.Below(oribi.Row{"id": "user2"})).Rows()))), 112)
}

// An index that the caller names is used whatever it costs, also if its keys do not fit in memory at once; one
// that cannot be used is refused, with the reason.
func TestScansUsingAnIndex(t *testing.T) {
	notWithRace(t)
	ctx := context.Background()
	store := must.Get(oribi.Open("/using", &oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: 16 << 20}))(t)
	defer store.Close()
	table := tableOf(t, store, "rows", "k*:int64 a:int64 b:int64", oribi.Index("by_a", "a"), oribi.Index("by_b", "b"))
	const n = 30_000 // their keys take 960 kB, those of a scan may take 512 KiB
	for from := 0; from < n; from += 10_000 {
		b := store.NewBatch()
		for i := from; i < from+10_000; i++ {
			b.Insert(table, oribi.Row{"k": i, "a": i * 7919 % n, "b": i % 10})
		}
		must.Get(b.Commit(ctx))(t)
		must.Do(t, table.Flush(ctx))
	}
	where := oribi.Where(oribi.Ge("a", 100), oribi.Ne("b", 3))
	for _, opts := range [][]oribi.ScanOption{{}, {oribi.Desc()}, {oribi.From(1000), oribi.To(20_000), oribi.Limit(15_000)}} {
		var e oribi.Explanation
		opts = append(opts, where)
		want := slices.Collect(must.All(t, table.Scan(ctx, append(opts, oribi.Explain(&e))...).Rows()))
		must.Equal(t, e.Index, "")
		must.Contain(t, e.String(), `index "by_a", not used: it leads to more than 30 rows`)
		must.Contain(t, e.String(), `index "by_b", not used: no predicate that must be true bounds its first column`)
		got := slices.Collect(must.All(t, table.Scan(ctx, append(opts, oribi.Using("by_a"), oribi.Explain(&e))...).Rows()))
		must.Equal(t, e.Index, "by_a")
		must.Equal(t, slices.EqualFunc(got, want, func(a, b oribi.Row) bool { return a["k"] == b["k"] }), true,
			len(got), len(want))
	}
	must.Equal(t, must.Get(table.Count(ctx, where, oribi.Using("by_a")))(t), must.Get(table.Count(ctx, where))(t))
	sums := func(opts ...oribi.AggregateOption) string {
		r := must.Get(table.Aggregate(ctx, []oribi.Aggregate{oribi.SumOf("a")}, append(opts, oribi.GroupBy("b"), where,
			oribi.Top(3))...))(t)
		return fmt.Sprint(r.Groups)
	}
	must.Equal(t, sums(oribi.Using("by_a")), sums())
	res := must.Get(table.UpdateWhere(ctx, oribi.Row{"b": 3}, where, oribi.Using("by_a"), oribi.InPieces()))(t)
	must.Equal(t, must.Get(table.Count(ctx, oribi.Where(oribi.Ge("a", 100))))(t), res.Rows+n/10-10)

	for _, c := range []struct {
		opts []oribi.ScanOption
		text string
	}{
		{[]oribi.ScanOption{oribi.Using("by_c")}, "no such index"},
		{[]oribi.ScanOption{oribi.Using("by_b"), oribi.Where(oribi.Eq("a", 1))}, "no predicate that must be true bounds"},
		{[]oribi.ScanOption{oribi.OrderBy("by_b"), oribi.NoIndex()}, "uses no other index"},
		{[]oribi.ScanOption{oribi.OrderBy("by_b"), oribi.Using("by_a")}, "uses no other index"},
		{[]oribi.ScanOption{oribi.OrderBy("by_b"), oribi.Workers(2)}, "goroutine"},
		{[]oribi.ScanOption{oribi.OrderBy("by_b"), oribi.AsOf(1 << 40)}, ""},
	} {
		var err error
		for _, err = range table.Scan(ctx, c.opts...).Rows() {
		}
		must.Contain(t, fmt.Sprint(err), c.text)
		must.Equal(t, err != nil, true, c.text)
	}
	for key, text := range map[any]string{"x": `column "b"`, nil: "", int64(1): ""} {
		var err error
		for _, err = range table.Scan(ctx, oribi.OrderBy("by_b"), oribi.Above(key)).Rows() {
		}
		must.Contain(t, fmt.Sprint(err), text)
	}
	var err error
	for _, err = range table.Scan(ctx, oribi.OrderBy("by_b"), oribi.Above(oribi.Key{1, 2, 3})).Rows() {
	}
	must.Contain(t, fmt.Sprint(err), "3 values, the order has 2 columns")
	var differs error
	now := must.Get(store.Snapshot(ctx))(t)
	defer now.Close()
	for _, differs = range table.Diff(ctx, now.Timestamp(), now.Timestamp(), oribi.OrderBy("by_b")) {
	}
	must.Fail(t, differs, oribi.ErrSchema)
}
