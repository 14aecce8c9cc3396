package storetest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// aggregateTable creates a table with key k and columns of all kinds that aggregates treat
// differently.
func aggregateTable(t *testing.T, o *oribi.Options) (*oribi.Store, *oribi.Table) {
	t.Helper()
	if o == nil {
		o = &oribi.Options{}
	}
	o.FS, o.Clock, o.Manual = vfs.NewMem(), mvcc.NewLogicalClock(1), true
	store := must.Get(oribi.Open("/store", o))(t)
	t.Cleanup(func() { store.Close() })
	table := tableOf(t, store, "t", "k*:int64 i:int64? u:uint64? w:int128? d:decimal(15,2)? e:decimal(38,2)? "+
		"f:double? g:float? s:string? b:bool? day:date? a:array(int32)?")
	return store, table
}

// insert commits rows with keys 0, 1, ….
func insert(t *testing.T, store *oribi.Store, table *oribi.Table, rows ...oribi.Row) {
	t.Helper()
	b := store.NewBatch()
	for i, row := range rows {
		row["k"] = i
		b.Insert(table, row)
	}
	must.Get(b.Commit(t.Context()))(t)
}

func TestAggregateValuesHaveDocumentedTypes(t *testing.T) {
	store, table := aggregateTable(t, nil)
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	insert(t, store, table,
		oribi.Row{"i": 1, "u": uint64(math.MaxUint64), "d": 1.25, "e": 1, "f": 0.1, "g": 0.5,
			"s": "x", "b": true, "day": day},
		oribi.Row{"i": 2, "u": 1, "d": -7.75, "e": 2, "f": 0.2, "g": 0.25, "s": "é",
			"b": false, "day": day.AddDate(0, 0, 1)},
		oribi.Row{"i": 4, "u": 1, "d": 0.01, "e": 2, "f": 0.7, "g": 1, "s": "a"})
	r := must.Get(table.Aggregate(t.Context(), []oribi.Aggregate{
		oribi.CountOf("b"), oribi.SumOf("i"), oribi.SumOf("u"), oribi.SumOf("d"), oribi.SumOf("f"), oribi.SumOf("g"),
		oribi.AvgOf("i"), oribi.AvgOf("u"), oribi.AvgOf("d"), oribi.AvgOf("e"), oribi.AvgOf("f"),
		oribi.MinOf("u"), oribi.MaxOf("d"), oribi.MinOf("g"), oribi.MaxOf("s"), oribi.MaxOf("b"), oribi.MinOf("day"),
		oribi.SumOfProduct(oribi.Col("i").Times(0.5)),
		oribi.SumOfProduct(oribi.Col("d"), oribi.Col("i").Neg().Plus(oribi.NewDecimal(1, 1))),
		oribi.SumOfProduct(oribi.Col("d"), oribi.Col("f"))}))(t)
	decimal := func(unscaled int64, scale int) any { return oribi.NewDecimal(unscaled, scale) }
	for i, want := range []any{
		int64(2), batch.Int128Of(7), batch.Int128{Lo: 1, Hi: 1}, decimal(-649, 2), 1.0, 1.75,
		7.0 / 3, (math.MaxUint64 + 2.0) / 3, decimal(-216333333, 8), decimal(167, 2), 1.0 / 3,
		uint64(1), decimal(125, 2), float32(0.25), "é", true, day,
		// the last one is the sum of rounded products
		decimal(35, 1), decimal(-1125+14725-39, 3), -1.4180000000000001} {
		must.Equal(t, r.Groups[0].Values[i].Any(), want, r.Columns[i].Name)
	}
	b := must.Get(r.Batch())(t)
	must.Equal(t, b.Len, 1, "rows")
	for i, v := range b.Columns {
		must.Do(t, v.Validate())
		must.Equal(t, v.IsNull(0), false, "column", b.Schema[i].Name, "of the batch: NULL")
	}
}

func TestAggregateValueConversions(t *testing.T) {
	store, table := aggregateTable(t, nil)
	insert(t, store, table, oribi.Row{"u": uint64(math.MaxUint64), "d": 1.5, "f": 2.5, "s": "x"})
	r := must.Get(table.Aggregate(t.Context(),
		[]oribi.Aggregate{oribi.SumOf("u"), oribi.SumOf("d"), oribi.SumOf("f"), oribi.MinOf("s"),
			oribi.SumOf("i"), oribi.CountRows()}))(t)
	var got []string
	for _, v := range r.Groups[0].Values {
		i, err1 := v.Int64()
		d, err2 := v.Decimal()
		f, err3 := v.Float64()
		got = append(got, fmt.Sprint(v, v.IsNull(), i, err1, d, err2, f, err3))
	}
	want := []string{
		"18446744073709551615 false -1 oribi: 18446744073709551615 as int64: out of range 18446744073709551615 <nil> " +
			"1.8446744073709552e+19 <nil>",
		"1.50 false 0 oribi: the value, a batch.Decimal, is not an integer 1.50 <nil> 1.5 <nil>",
		"2.5 false 0 oribi: the value, a float64, is not an integer 0 oribi: the value, a float64, is not a decimal " +
			"2.5 <nil>",
		"x false 0 oribi: the value, a string, is not an integer 0 oribi: the value, a string, is not a decimal 0 " +
			"oribi: the value, a string, is not a number",
		"NULL true 0 oribi: the value is NULL 0 oribi: the value is NULL 0 oribi: the value is NULL",
		"1 false 1 <nil> 1 <nil> 1 <nil>"}
	must.Equal(t, got, want)
}

func TestAggregateOverflow(t *testing.T) {
	store, table := aggregateTable(t, nil)
	most := batch.Int128{Lo: math.MaxUint64, Hi: math.MaxInt64}
	digits := oribi.Decimal{Unscaled: batch.Pow10(38).Neg(), Scale: 2}
	digits.Unscaled, _ = digits.Unscaled.Add(batch.Int128Of(1))
	insert(t, store, table, oribi.Row{"w": most, "e": digits, "i": 1},
		oribi.Row{"w": 1, "e": oribi.NewDecimal(-1, 2)}, oribi.Row{"w": -1})
	for name, c := range map[string]struct {
		a    oribi.Aggregate
		want string // "": ErrOverflow
	}{
		"sum in between": {oribi.SumOf("w"), most.String()},
		"decimal":        {oribi.SumOf("e"), ""},
		"average":        {oribi.AvgOf("e"), "-500000000000000000000000000000000000.00"},
		"product":        {oribi.SumOfProduct(oribi.Col("w"), oribi.Col("w")), ""},
		"term":           {oribi.SumOfProduct(oribi.Col("w").Plus(1)), ""},
		"constants":      {oribi.SumOfProduct(oribi.Col("w").Times(most).Times(10)), ""},
		"NULL in time":   {oribi.SumOfProduct(oribi.Col("i"), oribi.Col("w"), oribi.Col("w").Neg().Plus(most)), "0"},
	} {
		r, err := table.Aggregate(t.Context(), []oribi.Aggregate{c.a})
		switch {
		case c.want == "" && !errors.Is(err, oribi.ErrOverflow):
			t.Errorf("%s: %v, want ErrOverflow", name, err)
		case c.want != "" && (err != nil || r.Groups[0].Values[0].String() != c.want):
			t.Errorf("%s: %v, %v, want %s", name, r, err, c.want)
		}
	}
	must.Fail(t, must.Err(table.Aggregate(t.Context(), []oribi.Aggregate{oribi.SumOf("w")},
		oribi.Where(oribi.Ge("k", 0), oribi.Le("k", 1)))), oribi.ErrOverflow, "sum")
}

func TestAggregateErrorsNameTableAndColumn(t *testing.T) {
	store, table := aggregateTable(t, &oribi.Options{MemoryLimit: 16 << 20})
	for want, c := range map[string]struct {
		is   error
		a    oribi.Aggregate
		opts []oribi.AggregateOption
	}{
		`oribi: table "t": sum(x): column "x": no such column; there is`: {oribi.ErrNoColumn,
			oribi.SumOf("x"), nil},
		`oribi: table "t": count(x): column "x": no such column; there is`: {oribi.ErrNoColumn,
			oribi.CountOf("x"), nil},
		`oribi: table "t": group by: column "x": no such column; there is`: {oribi.ErrNoColumn,
			oribi.SumOf("i"), []oribi.AggregateOption{oribi.GroupBy("k", "x")}},
		`oribi: table "t": group by: column "k" appears twice`: {oribi.ErrSchema,
			oribi.SumOf("i"), []oribi.AggregateOption{oribi.GroupBy("k", "k")}},
		`oribi: table "t": sum(s): column "s": type string cannot be added`: {oribi.ErrSchema,
			oribi.SumOf("s"), nil},
		`oribi: table "t": avg(day): column "day": type date cannot be added`: {oribi.ErrSchema,
			oribi.AvgOf("day"), nil},
		`oribi: table "t": min(a): type`: {oribi.ErrSchema,
			oribi.MinOf("a"), nil},
		`oribi: table "t": sum(k): column "k": a string is not a constant of a term`: {oribi.ErrSchema,
			oribi.SumOfProduct(oribi.Col("k").Plus("1").Plus(0.5)), nil},
		`oribi: table "t": sum(d * (0.00000000000000000000000000000000000001 + d)): 40 decimals`: {oribi.ErrSchema,
			oribi.SumOfProduct(oribi.Col("d"), oribi.Col("d").Plus(oribi.NewDecimal(1, 38))), nil},
	} {
		_, err := table.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows(), c.a}, c.opts...)
		if !errors.Is(err, c.is) || !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	b := store.NewBatch()
	for i := range 100 {
		b.Insert(table, oribi.Row{"k": i, "s": strings.Repeat("x", 60_000) + fmt.Sprint(i)})
		if i%50 == 49 {
			must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		}
	}
	if _, err := table.Aggregate(t.Context(), nil, oribi.GroupBy("s")); !strings.Contains(fmt.Sprint(err),
		`oribi: table "t": `) || !strings.Contains(fmt.Sprint(err), "too much memory: more than 4 MiB") {
		t.Errorf("too many groups: %v", err)
	}
}
