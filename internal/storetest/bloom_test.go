package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// BloomBytes returns the bytes of the cells that a scan returns.
func TestBloomBytesAreCells(t *testing.T) {
	columns := []schema.Column{
		{Name: "k", Type: schema.Int64}, {Name: "b", Type: schema.Bool}, {Name: "i8", Type: schema.Int8},
		{Name: "u32", Type: schema.Uint32},
		{Name: "f", Type: schema.Float}, {Name: "d", Type: schema.Double},
		{Name: "small", Type: schema.Decimal32, Precision: 9, Scale: 2},
		{Name: "large", Type: schema.Decimal128, Precision: 38, Scale: 2}, {Name: "date", Type: schema.Date},
		{Name: "time", Type: schema.Timestamp},
		{Name: "s", Type: schema.String}, {Name: "bin", Type: schema.Binary},
	}
	s := must.Get(schema.New(columns, 1))(t)
	store := must.Get(oribi.Open("/bloom", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := must.Get(store.CreateTable("t", s))(t)
	day := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	row := oribi.Row{"k": -5, "b": true, "i8": -1, "u32": 7, "f": 1.5, "d": -2.25, "small": oribi.NewDecimal(150, 2),
		"large": oribi.NewDecimal(-3, 0),
		"date":  day, "time": day.Add(time.Second), "s": "text", "bin": []byte{0, 1}}
	b := store.NewBatch()
	b.Insert(table, row)
	must.Get(b.Commit(t.Context()))(t)
	for b := range must.All(t, table.Scan(t.Context()).Batches()) {
		for i, c := range b.Schema {
			got := must.Get(oribi.BloomBytes(&c, row[c.Name]))(t)
			must.Equal(t, string(got), string(b.Columns[i].Cell(0)), c.Name)
		}
	}
	minusZero := oribi.Cell{0, 0, 0, 0, 0, 0, 0, 0x80}
	must.Equal(t, string(must.Get(oribi.BloomBytes(&columns[5], minusZero))(t)), string(make([]byte, 8)))
	for _, bad := range []any{nil, "x", 1 << 40} {
		must.Fail(t, must.Err(oribi.BloomBytes(&columns[2], bad)), oribi.ErrSchema, bad)
	}
}

// bloomRow has a column of few values, one of many, and one with NULLs.
type bloomRow struct {
	K    int64   `oribi:"k,key"`
	Few  string  `oribi:"few"`
	Many int32   `oribi:"many"`
	Null *string `oribi:"null"`
}

// Scans return every row that the filter passes, and some others while it rests. Counts, negations
// and deletes are exactly the filter's own answers.
func TestInBloomMatchesItsFilter(t *testing.T) {
	const n = 30_000
	r := seedtest.Rand(t)
	store := must.Get(oribi.Open("/bloom", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := must.Get(oribi.OpenTable[bloomRow](store, "t"))(t)
	var rows []bloomRow
	b := store.NewBatch()
	for i := range n {
		row := bloomRow{K: int64(i), Few: fmt.Sprint(r.IntN(50)), Many: r.Int32N(1000)}
		if text := fmt.Sprint(r.IntN(2000)); r.IntN(3) > 0 {
			row.Null = &text
		}
		rows = append(rows, row)
		table.InBatch(b).Upsert(row)
		if i == n*3/4 || i == n-1 {
			must.Get(b.Commit(t.Context()))(t)
			b.Reset()
		}
		if i == n*3/4 {
			must.Do(t, table.Table.Flush(t.Context()))
		}
	}
	column := func(name string) *schema.Column {
		return &table.Table.Schema().Columns[table.Table.Schema().Index(name)]
	}
	rested := 0
	for _, c := range []struct {
		column string
		share  int // percent of the values that are added
		value  func(row bloomRow) any
	}{
		{"few", 40, func(row bloomRow) any { return row.Few }},
		{"few", 96, func(row bloomRow) any { return row.Few }},
		{"many", 30, func(row bloomRow) any { return row.Many }},
		{"many", 97, func(row bloomRow) any { return row.Many }},
		{"null", 97, func(row bloomRow) any {
			if row.Null == nil {
				return nil
			}
			return *row.Null
		}},
	} {
		filter := bloom.NewWithEstimates(1000, 0.05)
		for v := range 2000 {
			if r.IntN(100) >= c.share || c.column == "few" && v >= 50 || c.column == "many" && v >= 1000 {
				continue
			}
			value := any(fmt.Sprint(v))
			if c.column == "many" {
				value = v
			}
			bytes := must.Get(oribi.BloomBytes(column(c.column), value))(t)
			filter.Add(bytes)
		}
		passes := func(row bloomRow) (value, passes bool) {
			v := c.value(row)
			if v == nil {
				return false, false
			}
			bytes := must.Get(oribi.BloomBytes(column(c.column), v))(t)
			return true, filter.Test(bytes)
		}
		var want, negated, notNull []int64
		for _, row := range rows {
			value, passed := passes(row)
			if passed {
				want = append(want, row.K)
			} else if value {
				negated = append(negated, row.K)
			}
			if value {
				notNull = append(notNull, row.K)
			}
		}
		p := oribi.InBloom(c.column, filter)
		keys := func(p oribi.Predicate) (keys []int64) {
			for row := range must.All(t, table.Scan(t.Context(), oribi.Where(p))) {
				keys = append(keys, row.K)
			}
			return keys
		}
		got := keys(p)
		for _, k := range want {
			if _, ok := slices.BinarySearch(got, k); !ok {
				t.Fatalf("%s: row %d is missing", p, k)
			}
		}
		for _, k := range got {
			if _, ok := slices.BinarySearch(notNull, k); !ok {
				t.Fatalf("%s: row %d is NULL", p, k)
			}
		}
		if len(got) > len(want) {
			rested++
			if 10*len(want) < 9*len(notNull) {
				t.Errorf("%s: %d rows of %d pass, the scan returns %d", p, len(want), len(notNull), len(got))
			}
		}
		must.Equal(t, keys(oribi.Not(p)), negated, "NOT", p, "rows", len(negated))
		if got := keys(oribi.And(oribi.Lt("k", 100),
			oribi.Or(oribi.Eq("k", 7), oribi.Not(oribi.Not(p))))); len(got) > 100 || !slices.Contains(got, 7) {
			t.Errorf("%s in a tree: %v", p, got)
		}
		must.Equal(t, must.Get(table.Table.Count(t.Context(), oribi.Where(p)))(t), int64(len(want)), p, "Count")
	}
	if rested == 0 {
		t.Error("no filter rested")
	}
}
