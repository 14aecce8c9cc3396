package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// explainTable returns a table whose layout is known. Row i has i in k, n and wide, and "red" in
// word if i is even, otherwise "blue".
//
//	rowset          rows           cblocks of n     of word    of wide
//	0 on disk       [0, 10000)     10 of 1024       5 of 2048  1, in chunks of 1024
//	1 on disk       [10000, 12000) 2                1          1
//	2 in memory     [12000, 12300)
//
// Rows [100, 110) were written again with the same values, and rows [5000, 5020) were deleted, both
// after the flush. before is the time of the last row of rowset 1.
func explainTable(t *testing.T) (table *oribi.Table, before mvcc.Timestamp) {
	t.Helper()
	store := must.Get(
		oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	table = must.Get(store.CreateTable("t", mustSchema(t, schema.Column{Name: "k", Type: schema.Int64},
		schema.Column{Name: "n", Type: schema.Int64, BlockBytes: 8 << 10},
		schema.Column{Name: "word", Type: schema.String, BlockBytes: 8 << 10},
		schema.Column{Name: "wide", Type: schema.Int64})))(t)
	commit := func(fill func(b *oribi.Batch)) mvcc.Timestamp {
		b := store.NewBatch()
		fill(b)
		return must.Get(b.Commit(t.Context()))(t)
	}
	put := func(from, to int) mvcc.Timestamp {
		return commit(func(b *oribi.Batch) {
			for i := from; i < to; i++ {
				b.Upsert(table, oribi.Row{"k": i, "n": i, "word": []string{"red", "blue"}[i%2], "wide": i})
			}
		})
	}
	for _, rows := range [][2]int{{0, 10000}, {10000, 12000}} {
		before = put(rows[0], rows[1])
		must.Do(t, table.Flush(t.Context()))
	}
	put(12000, 12300)
	put(100, 110)
	commit(func(b *oribi.Batch) {
		for i := 5000; i < 5020; i++ {
			b.Delete(table, oribi.Row{"k": i})
		}
	})
	// The order of predicates depends on the costs of testing a column, which are unknown until its
	// file is open. This opens all.
	must.Get(table.Count(t.Context(),
		oribi.Where(oribi.Ge("n", 0), oribi.Ge("wide", 0), oribi.Ne("word", "green"))))(t)
	return table, before
}

// The tests share a table, which they do not change.
func TestExplain(t *testing.T) {
	table, before := explainTable(t)
	for name, test := range map[string]func(t *testing.T, table *oribi.Table, before mvcc.Timestamp){
		"CountsWhatScansDo": explainCountsWhatScansDo, "CountsPartsOfScans": explainCountsPartsOfScans,
		"CountsAndAggregates": explainOfCountsAndAggregates, "GroupsAndExtremes": explainOfGroupsAndExtremes,
		"CountsRestingFilters": explainCountsRestingFilters, "RandomScans": explainOfRandomScans,
	} {
		t.Run(name, func(t *testing.T) { test(t, table, before) })
	}
}

// checkSums checks that the parts of an explanation add up.
func checkSums(t *testing.T, e *oribi.Explanation) {
	t.Helper()
	s, r := &e.RowSets, &e.Rows
	must.Equal(t, s.Disk, s.Outside+s.NotReached+s.Read, "rowsets do not add up", *s)
	must.Equal(t, r.Disk+r.Memory, r.Outside+r.NotReached+r.Invisible+r.Excluded+r.NotReturned+r.Decoded+r.Stored,
		"rows do not add up", *r)
	must.Equal(t, e.Returned, r.Decoded+r.Stored, "rows returned", *r)
	for _, p := range e.Predicates {
		if p.Tested != p.Schema+p.ZoneMap+p.Dictionary+p.Planes+p.Stored+p.Decoded+p.Changed+p.Memory+p.Untested ||
			p.Passed > p.Tested {
			t.Errorf("cells of a predicate do not add up: %+v", p)
		}
	}
	for _, c := range e.Columns {
		must.Equal(t, c.Blocks, c.Outside+c.Skipped+c.ZoneMap+c.Stored+c.Decoded, "cblocks do not add up")
		must.Equal(t, c.Cells > 0, c.Decoded > 0, "cblocks do not add up")
	}
	for _, v := range []any{*s, *r, e.Predicates, e.Columns} {
		checkNotNegative(t, reflect.ValueOf(v))
	}
}

func checkNotNegative(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			checkNotNegative(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInt() && f.Int() < 0 {
				t.Errorf("%s is %d", v.Type().Field(i).Name, f.Int())
			}
		}
	}
}

// The expected counts follow from the layout of the table.
func explainCountsWhatScansDo(t *testing.T, table *oribi.Table, before mvcc.Timestamp) {
	whole := []oribi.ColumnCounts{{Column: "k", Blocks: 2, Skipped: 2}, {Column: "n", Blocks: 12, Skipped: 12},
		{Column: "word", Blocks: 6, Stored: 6}, {Column: "wide", Blocks: 2, Skipped: 2}}
	for name, c := range map[string]struct {
		opts       []oribi.ScanOption
		rowSets    oribi.RowSetCounts
		rows       oribi.RowCounts
		predicates []oribi.PredicateCounts
		columns    []oribi.ColumnCounts // nil: not compared
	}{
		"all rows": {
			opts:    []oribi.ScanOption{oribi.Columns("n")},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Memory: 300, Invisible: 20, Decoded: 12280},
			columns: []oribi.ColumnCounts{{Column: "n", Blocks: 12, Decoded: 12, Cells: 12000}},
		},
		"the past": {
			opts:    []oribi.ScanOption{oribi.Columns("n"), oribi.AsOf(before)},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Decoded: 12000},
			columns: []oribi.ColumnCounts{{Column: "n", Blocks: 12, Decoded: 12, Cells: 12000}},
		},
		"key range": { // of rowset 0 the cblocks of rows from 2048 on, of rowset 1 the first
			opts:    []oribi.ScanOption{oribi.Columns("n", "word"), oribi.From(3000), oribi.To(11000)},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Outside: 4000, Invisible: 20, Decoded: 7980},
			columns: []oribi.ColumnCounts{{Column: "n", Blocks: 12, Outside: 3, Decoded: 9, Cells: 8000},
				{Column: "word", Blocks: 6, Outside: 1, Decoded: 5, Cells: 8000}},
		},
		"one rowset": {
			opts:    []oribi.ScanOption{oribi.Columns("n"), oribi.From(11500), oribi.To(11600)},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Outside: 1, Read: 1},
			rows:    oribi.RowCounts{Disk: 12000, Outside: 11900, Decoded: 100},
			columns: []oribi.ColumnCounts{{Column: "n", Blocks: 2, Outside: 1, Decoded: 1, Cells: 100}},
		},
		"zone map": { // decides all but the cblock of rows [3072, 4096), then [8192, 9216)
			opts: []oribi.ScanOption{oribi.From(3000), oribi.To(12000),
				oribi.Where(oribi.Between("n", 4000, 9000), oribi.Eq("word", "red"))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Outside: 3000, Invisible: 20, Excluded: 6489, Decoded: 2491},
			predicates: []oribi.PredicateCounts{
				{Predicate: "word = 'red'", Column: "word", Tested: 8980, Passed: 4490, Stored: 8980},
				{Predicate: "n >= 4000", Column: "n", Tested: 4490, Passed: 3990, ZoneMap: 3978, Stored: 512},
				{Predicate: "n <= 9000", Column: "n", Tested: 3990, Passed: 2491, ZoneMap: 3478, Stored: 512},
			},
		},
		"dictionary": {
			opts:    []oribi.ScanOption{oribi.Where(oribi.Eq("word", "green"))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Memory: 300, Invisible: 20, Excluded: 12280},
			predicates: []oribi.PredicateCounts{{Predicate: "word = 'green'", Column: "word", Tested: 12280,
				Dictionary: 11970, Changed: 10, Memory: 300}},
			columns: whole,
		},
		// only in the chunk of 2048 to 3071 do the high planes equal the planes of 2048
		"constant planes": {
			opts:    []oribi.ScanOption{oribi.Columns(), oribi.Where(oribi.Ge("wide", 2048))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Memory: 300, Invisible: 20, Excluded: 2048, Decoded: 10232},
			predicates: []oribi.PredicateCounts{{Predicate: "wide >= 2048", Column: "wide", Tested: 12280,
				Passed: 10232, ZoneMap: 2000, Planes: 8946, Stored: 1024, Changed: 10, Memory: 300}},
			columns: []oribi.ColumnCounts{{Column: "wide", Blocks: 2, ZoneMap: 1, Stored: 1}},
		},
		"alternatives": { // the second is tested where the first is not true
			opts: []oribi.ScanOption{oribi.Columns(),
				oribi.Where(oribi.Or(oribi.Eq("word", "green"), oribi.Not(oribi.Lt("n", 12100))))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Read: 2},
			rows:    oribi.RowCounts{Disk: 12000, Memory: 300, Invisible: 20, Excluded: 12080, Decoded: 200},
			predicates: []oribi.PredicateCounts{
				{Predicate: "word = 'green'", Column: "word", Tested: 12280,
					Dictionary: 11970, Changed: 10, Memory: 300},
				{Predicate: "n >= 12100", Column: "n", Tested: 12280, Passed: 200,
					ZoneMap: 11970, Changed: 10, Memory: 300},
			},
		},
		"nothing left": { // NOT NULL, which costs least, is tested first
			opts: []oribi.ScanOption{oribi.Columns(), oribi.To(4000),
				oribi.Where(oribi.Lt("n", 0), oribi.NotNull("word"))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Outside: 1, Read: 1},
			rows:    oribi.RowCounts{Disk: 12000, Outside: 8000, Excluded: 4000},
			predicates: []oribi.PredicateCounts{{Predicate: "n < 0", Column: "n", Tested: 4000, ZoneMap: 3990,
				Changed: 10}, {Predicate: "word IS NOT NULL", Column: "word",
				Tested: 4000, Passed: 4000, Schema: 4000}},
			columns: []oribi.ColumnCounts{{Column: "n", Blocks: 10, Outside: 6, ZoneMap: 4},
				{Column: "word", Blocks: 5, Outside: 3, Skipped: 2}},
		},
		"schema": {
			opts:    []oribi.ScanOption{oribi.Columns(), oribi.From(12000), oribi.Where(oribi.NotNull("word"))},
			rowSets: oribi.RowSetCounts{Memory: 1, Disk: 2, Outside: 2},
			rows:    oribi.RowCounts{Disk: 12000, Memory: 300, Outside: 12000, Decoded: 300},
			predicates: []oribi.PredicateCounts{{Predicate: "word IS NOT NULL", Column: "word",
				Tested: 300, Passed: 300, Memory: 300}},
		},
	} {
		for _, workers := range []int{0, 1, 3} {
			opts := c.opts
			if workers > 0 {
				opts = append(opts[:len(opts):len(opts)], oribi.Workers(workers))
			}
			e := must.Get(table.Scan(t.Context(), opts...).Explain())(t)
			checkSums(t, e)
			must.Equal(t, e.RowSets, c.rowSets, name, "rowsets")
			must.Equal(t, e.Rows, c.rows, name, "rows")
			must.Equal(t, fmt.Sprint(e.Predicates), fmt.Sprint(c.predicates), name, "predicates")
			if c.columns != nil && !reflect.DeepEqual(e.Columns, c.columns) {
				t.Errorf("%s: columns\n%+v, want\n%+v", name, e.Columns, c.columns)
			}
			if !e.Complete || e.Table != "t" || e.Returned != c.rows.Decoded || e.Time <= 0 {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// The counts of a scan that ended early are those up to then.
func explainCountsPartsOfScans(t *testing.T, table *oribi.Table, _ mvcc.Timestamp) {
	var e oribi.Explanation
	for range table.Scan(t.Context(), oribi.Limit(3), oribi.Explain(&e)).Rows() {
	}
	if checkSums(t, &e); !e.Complete || e.Returned != 3 || e.RowSets.NotReached != 1 || e.Rows.NotReached < 2000 {
		t.Errorf("limit: %+v", e)
	}
	for range table.Scan(t.Context(), oribi.Explain(&e)).Batches() {
		break
	}
	if checkSums(t, &e); e.Complete || e.Returned == 0 || e.RowSets.NotReached != 1 {
		t.Errorf("the caller stopped: %+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	for _, err := range table.Scan(ctx, oribi.Explain(&e)).Batches() {
		cancel()
		failed = err
	}
	if checkSums(t, &e); !errors.Is(failed, context.Canceled) || e.Complete || e.Returned == 0 {
		t.Errorf("canceled: %v, %+v", failed, e)
	}
	e = oribi.Explanation{Table: "before"}
	if got, err := table.Scan(t.Context(), oribi.Columns("x"), oribi.Explain(&e)).Explain(); !errors.Is(err,
		oribi.ErrNoColumn) || got != nil || e.Table != "before" {
		t.Errorf("a scan that cannot begin: %+v, %v, %+v", got, err, e)
	}
}

// Counts and aggregates are explained too.
func explainOfCountsAndAggregates(t *testing.T, table *oribi.Table, _ mvcc.Timestamp) {
	var e oribi.Explanation
	if n, err := table.Count(t.Context(), oribi.Explain(&e)); err != nil || n != 12280 || !e.FromCounters ||
		e.Returned != n || e.Rows != (oribi.RowCounts{}) {
		t.Errorf("count of all: %d, %v, %+v", n, err, e)
	}
	if n, err := table.Count(t.Context(), oribi.Where(oribi.Ge("n", 12100)), oribi.Workers(2),
		oribi.Explain(&e)); err != nil || n != 200 || e.FromCounters || e.Returned != n || !e.Complete {
		t.Errorf("count: %d, %v, %+v", n, err, e)
	}
	checkSums(t, &e)
	result, err := table.Aggregate(t.Context(), []oribi.Aggregate{oribi.SumOf("wide")},
		oribi.Where(oribi.Ge("n", 1000)), oribi.Explain(&e))
	if err != nil || result.Groups[0].Values[0].Any() == nil || e.Returned != 12300-1000-20 ||
		e.Rows.Stored != 11000-20 || e.Rows.Decoded != 300 || !e.Complete {
		t.Errorf("sum: %v, %+v", err, e)
	}
	checkSums(t, &e)
	if err == nil && !reflect.DeepEqual(e.Columns[1], oribi.ColumnCounts{Column: "wide", Blocks: 2, Stored: 2}) {
		t.Errorf("columns of a sum: %+v", e.Columns)
	}
}

// Groups and extremes that are computed with stored values count their cblocks too.
func explainOfGroupsAndExtremes(t *testing.T, table *oribi.Table, _ mvcc.Timestamp) {
	var e oribi.Explanation
	used := func() (c oribi.ColumnCounts) {
		for _, column := range e.Columns {
			c.Blocks += column.Blocks
			c.Outside += column.Outside
			c.Skipped += column.Skipped
			c.Decoded += column.Decoded
		}
		return c
	}
	must.Get(table.Aggregate(t.Context(), []oribi.Aggregate{oribi.SumOf("wide"), oribi.MaxOf("word")},
		oribi.Explain(&e)))(t)
	if checkSums(t, &e); e.Rows.Stored == 0 || used().Skipped > 0 {
		t.Errorf("extremes: %+v", e)
	}
	must.Get(table.Aggregate(t.Context(), []oribi.Aggregate{oribi.SumOf("wide")}, oribi.GroupBy("word"),
		oribi.Explain(&e)))(t)
	if checkSums(t, &e); e.Rows.Stored == 0 || used().Skipped > 0 {
		t.Errorf("groups: %+v", e)
	}
}

// A Bloom filter that rests passes rows without testing them.
func explainCountsRestingFilters(t *testing.T, table *oribi.Table, _ mvcc.Timestamp) {
	filter := bloom.NewWithEstimates(10, 0.01)
	for _, word := range []string{"red", "blue"} {
		filter.AddString(word)
	}
	e := must.Get(table.Scan(t.Context(), oribi.Where(oribi.InBloom("word", filter))).Explain())(t)
	checkSums(t, e)
	if p := e.Predicates[0]; p.Tested != 12280 || p.Passed != 12280 || p.Untested < 2000 {
		t.Errorf("%+v", p)
	}
}

// Whatever a scan asks for, an explanation does not change its rows, and the counts add up.
func explainOfRandomScans(t *testing.T, table *oribi.Table, before mvcc.Timestamp) {
	r := seedtest.Rand(t)
	predicate := func() oribi.Predicate {
		k := r.IntN(13000)
		return []oribi.Predicate{
			oribi.Ge("n", k), oribi.Lt("wide", k), oribi.Eq("word", "red"), oribi.Between("k", k, k+r.IntN(2000)),
			oribi.NotNull("n"), oribi.IsNull("n"),
			oribi.In("n", 1, k, k+1), oribi.HasPrefix("word", "b"), oribi.Not(oribi.Gt("n", k)),
		}[r.IntN(9)]
	}
	for range 60 {
		var common []oribi.CountOption
		for range r.IntN(4) {
			if p := predicate(); r.IntN(3) == 0 {
				common = append(common, oribi.Where(oribi.Or(p, predicate())))
			} else {
				common = append(common, oribi.Where(p))
			}
		}
		if r.IntN(3) == 0 {
			common = append(common, oribi.From(r.IntN(13000)))
		}
		if r.IntN(3) == 0 {
			common = append(common, oribi.To(r.IntN(13000)))
		}
		if r.IntN(3) == 0 {
			common = append(common, oribi.AsOf(before))
		}
		workers := r.IntN(3) == 0
		if workers {
			common = append(common, oribi.Workers(1+r.IntN(4)))
		}
		var e oribi.Explanation
		var opts []oribi.ScanOption
		aggregate := []oribi.AggregateOption{oribi.Explain(&e)}
		for _, o := range common {
			opts, aggregate = append(opts, o), append(aggregate, o)
		}
		must.Get(table.Aggregate(t.Context(),
			[]oribi.Aggregate{oribi.SumOf("wide"), oribi.CountRows()}, aggregate...))(t)
		checkSums(t, &e)
		aggregated := e.Returned
		must.Equal(t, must.Get(table.Count(t.Context(), common...))(t), aggregated, "rows counted")
		if r.IntN(4) == 0 {
			opts = append(opts, oribi.Limit(int64(r.IntN(3000))))
		} else if r.IntN(3) == 0 && !workers {
			opts = append(opts, oribi.Desc())
		}
		want, got := int64(0), int64(0)
		for b := range must.All(t, table.Scan(t.Context(), opts...).Batches()) {
			want += int64(b.Selected())
		}
		for b := range must.All(t, table.Scan(t.Context(), append(opts, oribi.Explain(&e))...).Batches()) {
			got += int64(b.Selected())
		}
		if checkSums(t, &e); got != want || e.Returned != want || !e.Complete {
			t.Errorf("%d rows, %d without an explanation: %+v", got, want, e)
		}
		_ = e.String()
	}
}
