package rewrite

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// orderLines is a table of the shape of TPC-H's lineitem: a key of two numbers, columns of numbers
// and of words of which there are few, and a column of texts.
var orderLines = func() *schema.Schema {
	var columns []schema.Column
	add := func(t schema.Type, names ...string) {
		for _, name := range names {
			columns = append(columns, schema.Column{ID: schema.ColumnID(10 + len(columns)), Name: name, Type: t})
		}
	}
	add(schema.Int64, "order")
	add(schema.Int32, "line")
	add(schema.Int64, "part", "supplier", "quantity", "price", "discount", "tax")
	add(schema.String, "returned", "status")
	add(schema.Int32, "shipped", "committed", "received")
	add(schema.String, "instruct", "mode", "comment")
	return mustSchema(columns, 2)
}()

// orderRows returns n rows of orderLines, of which the key of row i is from + i*step.
func orderRows(r *rand.Rand, from, step, n int) *change.Rows {
	rows := &change.Rows{Batch: batch.New(orderLines.Columns, n)}
	c := rows.Batch.Columns
	number := func(col, i int, v int64) {
		if c[col].Type == schema.Int32 {
			batch.Raw[int32](c[col])[i] = int32(v)
			return
		}
		batch.Raw[int64](c[col])[i] = v
	}
	word := func(prefix string, of int) []byte { return fmt.Appendf(nil, "%s %d", prefix, r.IntN(of)) }
	for i := range n {
		k := int64(from + i*step)
		for col, v := range []int64{k / 4, k % 4, r.Int64N(20_000), r.Int64N(1000), 100 * r.Int64N(50),
			r.Int64N(10_000_000), r.Int64N(11), r.Int64N(9)} {
			number(col, i, v)
		}
		day := 8000 + r.Int64N(2500)
		for col, v := range []int64{day, day + r.Int64N(60), day + r.Int64N(30)} {
			number(10+col, i, v)
		}
		c[8].Bytes[i], c[9].Bytes[i] = word("R", 3), word("S", 2)
		c[13].Bytes[i], c[14].Bytes[i] = word("DELIVER IN PERSON", 4), word("TRUCK", 7)
		c[15].Bytes[i] = fmt.Appendf(nil, "%x carefully %x the even requests", r.IntN(1<<20), r.IntN(1<<20))
		rows.Undo = append(rows.Undo, change.Delta{Row: uint32(i), TS: mvcc.Timestamp(1 + k/1000), List: deleteList})
	}
	rows.Keys = change.AppendVectorKeys(nil, keyenc.NewEncoder(orderLines), c, 0, n)
	return rows
}

// orderSets returns rowsets of orderLines, whose keys alternate, or do not overlap.
func orderSets(t testing.TB, sets, rows int, disjoint bool) (out []*rowset.DiskRowSet) {
	r := rand.New(rand.NewPCG(1, 2))
	for set := range sets {
		first, step := set, sets
		if disjoint {
			first, step = set*rows, 1
		}
		var parts []*change.Rows
		for at := 0; at < rows; at += batch.WindowRows {
			parts = append(parts, orderRows(r, first+at*step, step, min(rows-at, batch.WindowRows)))
		}
		out = append(out, writeRowSet(t, orderLines, parts))
	}
	return out
}

// BenchmarkMerge merges rowsets whose keys alternate, and rowsets whose keys do not overlap.
func BenchmarkMerge(b *testing.B) {
	const sets, rows = 8, 25_000
	for _, bench := range []struct {
		name   string
		schema *schema.Schema
		inputs []*rowset.DiskRowSet
	}{
		{"rows=orders/keys=alternate", orderLines, orderSets(b, sets, rows, false)},
		{"rows=orders/keys=disjoint", orderLines, orderSets(b, sets, rows, true)},
		{"rows=changed/keys=alternate", memorySchema, overlapping(b, sets, rows)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mergeToNowhere(b, bench.schema, bench.inputs)
			}
			b.ReportMetric(float64(sets*rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
