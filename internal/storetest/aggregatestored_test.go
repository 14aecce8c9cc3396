package storetest

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// storedColumns are the columns of a table whose aggregates are computed from stored values in
// different ways.
var storedColumns = []schema.Column{
	{Name: "k", Type: schema.Int64},
	{Name: "word", Type: schema.String},
	{Name: "flag", Type: schema.String, Nullable: true},
	{Name: "many", Type: schema.String}, // too many words for a dictionary, in the last rows
	{Name: "n", Type: schema.Int32, Nullable: true},
	{Name: "b", Type: schema.Bool},
	{Name: "day", Type: schema.Date},
	{Name: "neg", Type: schema.Int16},
	{Name: "u", Type: schema.Uint64},
	{Name: "disc", Type: schema.Int64},
	{Name: "tax", Type: schema.Int8},
	{Name: "price", Type: schema.Int64},
	{Name: "null", Type: schema.Int64, Nullable: true},
	{Name: "big", Type: schema.Int64},
}

// storedRow returns a random row.
func storedRow(r *rand.Rand, k, rows int) oribi.Row {
	row := oribi.Row{"k": k, "word": fmt.Sprint("word ", r.IntN(7)), "b": r.IntN(2) == 0,
		"day": time.Unix(int64(9000+r.IntN(40))*86400, 0).UTC(), "neg": r.IntN(11) - 5,
		"u": r.Uint64N(100), "disc": r.IntN(11), "tax": r.IntN(9), "price": r.IntN(1e7), "big": r.Int64() - r.Int64(),
		"many": fmt.Sprint(r.IntN(3))}
	if r.IntN(4) > 0 {
		row["flag"], row["n"] = "abc"[r.IntN(3):][:1], r.IntN(30)
	}
	if r.IntN(9) > 0 {
		row["null"] = r.IntN(1000)
	}
	if k > rows/2 {
		row["many"] = strings.Repeat(fmt.Sprint(k%997, " "), 40)
	}
	return row
}

// storedQuery is sums of products, minima, and maxima in groups.
type storedQuery struct {
	by       []string
	terms    [][]oribi.Term
	exact    [][]func(x int64) int64
	names    [][]string
	extremes []storedExtreme
}

// storedExtreme is the least or the greatest cell of a column.
type storedExtreme struct {
	name string
	max  bool
}

// better reports whether a cell replaces the best one so far, nil for none.
func (e *storedExtreme) better(typ schema.Type, cell, best []byte) bool {
	if best == nil || cell == nil {
		return best == nil
	}
	order := batch.Compare(typ, cell, best)
	return order > 0 == e.max && order != 0
}

// add adds a product of columns, of which each is plus more, and negated if it is after the first.
func (q *storedQuery) add(more int64, names ...string) {
	var terms []oribi.Term
	var exact []func(x int64) int64
	for i, name := range names {
		if i == 0 {
			terms, exact = append(terms, oribi.Col(name)), append(exact, func(x int64) int64 { return x })
			continue
		}
		terms, exact = append(terms, oribi.Col(name).Neg().Plus(more)), append(exact, func(x int64) int64 {
			return more - x
		})
	}
	q.terms, q.exact, q.names = append(q.terms, terms), append(q.exact, exact), append(q.names, names)
}

// scanned computes the query from the rows of a scan: for each group, the number of rows, the sums
// of the products, and the cells of the extremes.
func (q *storedQuery) scanned(t *testing.T, table *oribi.Table, where ...oribi.Predicate) map[string]string {
	t.Helper()
	columns := map[string]int{}
	for i := range storedColumns {
		columns[storedColumns[i].Name] = i
	}
	counts, sums, values, best := map[string]int{}, map[string][]*big.Int{}, map[string][]int{}, map[string][][]byte{}
	for b := range must.All(t, table.Scan(t.Context(), oribi.Where(where...)).Batches()) {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			key := ""
			for _, name := range q.by {
				key += fmt.Sprintf("%x|", b.Columns[columns[name]].Cell(i))
			}
			if counts[key]++; best[key] == nil {
				values[key], best[key] = make([]int, len(q.terms)), make([][]byte, len(q.extremes))
				for range q.terms {
					sums[key] = append(sums[key], new(big.Int))
				}
			}
			for e := range q.extremes {
				v := b.Columns[columns[q.extremes[e].name]]
				if cell := v.Cell(i); q.extremes[e].better(v.Type, cell, best[key][e]) {
					best[key][e] = bytes.Clone(cell)
				}
			}
		product:
			for p, names := range q.names {
				x := big.NewInt(1)
				for k, name := range names {
					v := b.Columns[columns[name]]
					if v.IsNull(i) {
						continue product
					}
					x.Mul(x, big.NewInt(q.exact[p][k](int64(batch.Int128OfCell(v.Type, v.Cell(i)).Lo))))
				}
				sums[key][p].Add(sums[key][p], x)
				values[key][p]++
			}
		}
	}
	out := map[string]string{}
	for key, n := range counts {
		line := fmt.Sprint(n)
		for p, sum := range sums[key] {
			if line += " "; values[key][p] == 0 {
				line += "NULL"
			} else {
				line += sum.String()
			}
		}
		for _, cell := range best[key] {
			line += fmt.Sprintf(" %x", cell)
		}
		out[key] = line
	}
	return out
}

// check compares Table.Aggregate with a loop over the rows of a scan.
func (q *storedQuery) check(t *testing.T, table *oribi.Table, where ...oribi.Predicate) {
	t.Helper()
	want := q.scanned(t, table, where...)
	list := []oribi.Aggregate{oribi.CountRows()}
	for _, terms := range q.terms {
		list = append(list, oribi.SumOfProduct(terms...))
	}
	for _, e := range q.extremes {
		if e.max {
			list = append(list, oribi.MaxOf(e.name))
		} else {
			list = append(list, oribi.MinOf(e.name))
		}
	}
	for _, workers := range []int{1, 3} {
		result, err := table.Aggregate(t.Context(), list, oribi.GroupBy(q.by...),
			oribi.Where(where...), oribi.Workers(workers))
		must.Do(t, err, list, "by", q.by)
		b := must.Get(result.Batch())(t)
		must.Equal(t, b.Len, len(want), list, "by", q.by, "groups")
		for i, g := range result.Groups {
			key := ""
			for k := range q.by {
				key += fmt.Sprintf("%x|", b.Columns[k].Cell(i))
			}
			got := strings.Trim(fmt.Sprint(g.Values[:1+len(q.terms)]), "[]")
			for e := range q.extremes {
				got += fmt.Sprintf(" %x", b.Columns[len(q.by)+1+len(q.terms)+e].Cell(i))
			}
			must.Equal(t, got, want[key], list, "by", q.by, "group", g.Key)
		}
	}
}

// Aggregates of stored values equal a loop over the rows of a scan: several keys, NULLs, values
// beyond a dictionary, products of three factors, and changed and deleted rows.
func TestAggregateOfStoredValuesEqualsScan(t *testing.T) {
	r := seedtest.Rand(t)
	store := must.Get(
		oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1), Manual: true}))(t)
	defer store.Close()
	table := must.Get(store.CreateTable("t", mustSchema(t, storedColumns...)))(t)
	const rows = 9000
	for from := 0; from < rows; from += 3000 {
		b := store.NewBatch()
		for k := from; k < from+3000; k++ {
			b.Insert(table, storedRow(r, k, rows))
		}
		must.Get(b.Commit(t.Context()))(t)
		if from == 0 {
			continue // two rowsets
		}
		must.Do(t, table.Flush(t.Context()))
	}
	checkStored(t, r, table)
	b := store.NewBatch()
	for range 150 {
		k := r.IntN(rows)
		row := storedRow(r, k, rows)
		switch {
		case r.IntN(5) == 0:
			row["word"], row["flag"], row["n"] = "new", "also new", 1e6 // beyond what the files have
		case r.IntN(5) == 0:
			row["price"], row["null"] = -1e9, nil
		}
		for _, c := range storedColumns[1:] {
			if r.IntN(3) == 0 {
				delete(row, c.Name)
			}
		}
		b.Update(table, row)
	}
	must.Get(b.Commit(t.Context()))(t)
	b = store.NewBatch()
	for k := 100; k < rows; k += 300 {
		b.Delete(table, oribi.Row{"k": k})
	}
	must.Get(b.Commit(t.Context()))(t)
	checkStored(t, r, table)
}

// checkStored checks queries.
func checkStored(t *testing.T, r *rand.Rand, table *oribi.Table) {
	t.Helper()
	keys := []string{"word", "flag", "many", "n", "b", "day", "neg", "u", "tax"}
	products := [][]string{{"price"}, {"disc"}, {"null"}, {"neg"}, {"price", "disc"}, {"price", "disc", "tax"},
		{"null", "disc", "tax"}, {"price", "u", "null"},
		{"neg", "n", "tax"}, {"big"}, {"big", "tax"}, {"price", "null", "disc", "tax"}}
	extremes := []string{"many", "n", "b", "day", "neg", "u", "disc", "tax", "price", "null", "big"}
	for round := range 20 {
		q := storedQuery{}
		for range r.IntN(3) {
			q.extremes = append(q.extremes, storedExtreme{extremes[r.IntN(len(extremes))], r.IntN(2) == 0})
		}
		for range r.IntN(3) {
			if key := keys[r.IntN(len(keys))]; !slices.Contains(q.by, key) {
				q.by = append(q.by, key)
			}
		}
		if round == 0 {
			q.by = []string{"flag", "word"}
		}
		for range r.IntN(4) {
			q.add(100, products[r.IntN(len(products))]...)
		}
		switch r.IntN(3) {
		case 0:
			q.check(t, table)
		case 1:
			q.check(t, table, oribi.Lt("price", r.IntN(1e7)))
		default:
			q.check(t, table, oribi.Ge("disc", 3), oribi.Lt("tax", 8))
		}
	}
	big := oribi.Col("big")
	for _, by := range []oribi.AggregateOption{oribi.GroupBy(), oribi.GroupBy("word")} {
		must.Fail(t, must.Err(table.Aggregate(t.Context(),
			[]oribi.Aggregate{oribi.SumOfProduct(big, big, big, oribi.Col("price"))}, by)),
			oribi.ErrOverflow, "a product that does not fit")
	}
}
