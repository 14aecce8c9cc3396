package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Grouping by a period gives the groups of the times' texts, in rows in memory, in files, and
// changed.
func TestGroupsByPeriodAreThoseOfTexts(t *testing.T) {
	r := seedtest.Rand(t)
	store, table := periodTable(t, nil)
	edges := []int64{0, -62135596800e6, 253402300799999999, 951782400e6, -2203891200e6, 1767225600e6,
		3600e6, math.MaxInt64, math.MinInt64}
	layouts := map[string]string{"year": "2006", "month": "2006-01", "day": "2006-01-02", "hour": "2006-01-02T15"}
	times := map[int]any{}
	for round := range 4 {
		b := store.NewBatch()
		for range 300 {
			k := r.IntN(800)
			micros := edges[r.IntN(len(edges))] + int64(r.IntN(3)-1) // those at the ends of int64 wrap
			if r.IntN(2) == 0 {
				micros = r.Int64N(8e15) - 4e15
			}
			if times[k] = any(time.UnixMicro(micros).UTC()); r.IntN(9) == 0 {
				times[k] = nil
			}
			day := any(nil)
			if at, ok := times[k].(time.Time); ok && at.Year() > 0 && at.Year() < 10000 {
				day = at
			}
			b.Upsert(table, oribi.Row{"k": k, "ts": times[k], "day": day})
		}
		must.Get(b.Commit(t.Context()))(t)
		if round < 2 {
			must.Do(t, table.Flush(t.Context()))
		}
	}
	for period, layout := range layouts {
		for _, column := range []string{"ts", "day"} {
			want := map[any]int64{}
			for _, v := range times {
				at, ok := v.(time.Time)
				inDay := ok && at.Year() > 0 && at.Year() < 10000
				switch {
				case column == "day" && inDay:
					want[at.Truncate(24*time.Hour).Format(layout)]++
				case column == "ts" && ok:
					want[at.Format(layout)]++
				default:
					want[nil]++
				}
			}
			result := must.Get(table.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows(), oribi.MinOf(column)},
				oribi.GroupByPeriod(period, column)))(t)
			got, last := map[any]int64{}, time.Time{}
			for i, g := range result.Groups {
				got[g.Key[0]] = g.Values[0].Any().(int64)
				least, ok := g.Values[1].Any().(time.Time)
				if i > 0 && ok && !least.After(last) || !ok && i < len(result.Groups)-1 {
					t.Errorf("%s(%s): group %v is after %v", period, column, g.Key[0], last)
				}
				last = least
			}
			must.Equal(t, got, want, period, column)
			must.Equal(t, result.Total, int64(len(want)), period, column)
			if c := result.Columns[0]; c.Name != period+"("+column+")" || c.Type != schema.String {
				t.Errorf("column %q of type %s", c.Name, c.TypeName())
			}
		}
	}
	for bad, want := range map[[2]string]error{{"week", "ts"}: oribi.ErrSchema, {"", "ts"}: oribi.ErrSchema,
		{"year", "s"}: oribi.ErrSchema, {"year", "none"}: oribi.ErrNoColumn} {
		must.Fail(t, must.Err(table.Aggregate(t.Context(), nil, oribi.GroupByPeriod(bad[0], bad[1]))), want,
			"period", bad[0], "of", bad[1])
	}
}

// periodTable creates a table with key k, times, texts, and numbers.
func periodTable(t *testing.T, o *oribi.Options) (*oribi.Store, *oribi.Table) {
	t.Helper()
	if o == nil {
		o = &oribi.Options{}
	}
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	o.Clock, o.Manual = mvcc.NewLogicalClock(1), true
	store := must.Get(oribi.Open("/store", o))(t)
	t.Cleanup(func() { store.Close() })
	table := tableOf(t, store, "t", "k*:int64 ts:timestamp? day:date? s:string? f:double? w:int128? a:array(int32)?")
	return store, table
}

// fillGroups commits rows with many groups in most columns.
func fillGroups(t *testing.T, store *oribi.Store, table *oribi.Table, rows int) {
	t.Helper()
	r := seedtest.Rand(t)
	b := store.NewBatch()
	for k := range rows {
		row := oribi.Row{"k": k, "ts": time.UnixMicro(int64(r.IntN(rows)) * 3_600_000_000).UTC(),
			"s": fmt.Sprint("text", r.IntN(rows)),
			"f": float64(r.IntN(rows)), "w": r.IntN(rows), "a": []int32{int32(r.IntN(rows))}}
		switch r.IntN(50) {
		case 0:
			row["s"], row["f"], row["w"], row["a"] = nil, nil, nil, nil
		case 1:
			row["f"] = math.Float64frombits(0x7ff8000000000000 + uint64(r.IntN(5)))
		case 2:
			row["f"] = math.Copysign(0, float64(r.IntN(2)*2-1))
		}
		b.Insert(table, row)
		if k%500 != 499 {
			continue
		}
		_, err := b.Commit(t.Context())
		if err == nil && k%10_000 == 9999 && k < rows-1 { // the last ones stay in memory
			err = table.Flush(t.Context())
		}
		must.Do(t, err)
		b.Reset()
	}
}

var topGroups = map[string][]oribi.AggregateOption{
	"s": {oribi.GroupBy("s")}, "f": {oribi.GroupBy("f")}, "w": {oribi.GroupBy("w")},
	"a": {oribi.GroupBy("a")}, "k": {oribi.GroupBy("k")},
	"hour(ts)": {oribi.GroupByPeriod("hour", "ts")}, "s f": {oribi.GroupBy("s", "f")},
	"day(ts) a": {oribi.GroupByPeriod("day", "ts"), oribi.GroupBy("a")},
}

// Top returns the first groups of all, in a store with memory for all of them, and in one with
// memory for a small part of them.
func TestTopReturnsTheGreatestGroups(t *testing.T) {
	notWithRace(t)
	const rows = 120_000
	disk := vfs.NewMem()
	largeStore, large := periodTable(t, &oribi.Options{FS: disk})
	fillGroups(t, largeStore, large, rows)
	must.Get(largeStore.Checkpoint(t.Context(), "/small"))(t)
	smallStore := must.Get(oribi.Open("/small", &oribi.Options{FS: disk, Manual: true, MemoryLimit: 16 << 20}))(t)
	defer smallStore.Close()
	small := must.Get(smallStore.Table("t"))(t)
	for name, by := range topGroups {
		if testing.Short() && name != "s" && name != "f" && name != "hour(ts)" {
			continue
		}
		if _, err := small.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows()}, by...); err == nil ||
			!strings.Contains(err.Error(), "the groups take too much memory") {
			t.Errorf("%s: all groups are within the limit: %v", name, err)
		}
		for n, first := range map[int]oribi.Aggregate{7: oribi.CountRows(), 100: oribi.MaxOf("f"),
			1: oribi.SumOf("w"), 12: oribi.MinOf("s")} {
			if n < 100 && n != 7 && name != "s" {
				continue
			}
			all := must.Get(large.Aggregate(t.Context(), []oribi.Aggregate{first, oribi.MinOf("k")}, by...))(t)
			want := slices.Clone(all.Groups)
			slices.SortStableFunc(want, func(x, y oribi.Group) int { return descending(x.Values[0], y.Values[0]) })
			want = want[:n]
			for i, table := range []*oribi.Table{large, small} {
				got, err := table.Aggregate(t.Context(), []oribi.Aggregate{first, oribi.MinOf("k")},
					append(by[:len(by):len(by)], oribi.Top(n))...)
				must.Do(t, err, name, "top", n, "by", first)
				if got.Total != int64(len(all.Groups)) || fmt.Sprint(got.Groups) != fmt.Sprint(want) {
					t.Errorf("%s, top %d by %v, store %d: %v of %d, want %v of %d", name, n, first, i, got.Groups,
						got.Total, want, len(all.Groups))
				}
			}
		}
	}
}

// descending orders values for Top.
func descending(x, y oribi.Value) int {
	switch {
	case x.IsNull() || y.IsNull():
		return cmp.Compare(fmt.Sprint(x.IsNull()), fmt.Sprint(y.IsNull()))
	case reflect.TypeOf(x.Any()).Kind() == reflect.String:
		return cmp.Compare(y.String(), x.String())
	}
	a, errA := x.Float64()
	b, errB := y.Float64()
	switch {
	case errA != nil || errB != nil:
		panic(errors.Join(errA, errB))
	case math.IsNaN(a) || math.IsNaN(b):
		return cmp.Compare(fmt.Sprint(math.IsNaN(b)), fmt.Sprint(math.IsNaN(a)))
	}
	return cmp.Compare(b, a)
}

// The first groups are bounded as well, and need an order.
func TestTopErrors(t *testing.T) {
	store, table := periodTable(t, &oribi.Options{MemoryLimit: 16 << 20})
	fillGroups(t, store, table, 20_000)
	must.Fail(t, must.Err(table.Aggregate(t.Context(), nil, oribi.GroupBy("s"), oribi.Top(1))), oribi.ErrSchema,
		"without an aggregate")
	_, err := table.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows()}, oribi.GroupBy("k"), oribi.Top(20_000))
	must.Refuse(t, err, "20000 groups")
	must.Contain(t, err.Error(), "the groups take too much memory", "20000 groups")
	r, err := table.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows(), oribi.SumOf("f")}, oribi.Top(3))
	if err != nil || len(r.Groups) != 1 || r.Total != 1 {
		t.Errorf("without groups: %v, %v", r, err)
	}
}
