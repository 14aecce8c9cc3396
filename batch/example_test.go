package batch_test

import (
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// sales is a batch as a scan returns it: three rows, the second of which a predicate has dropped.
func sales() *batch.RecordBatch {
	b := batch.New([]schema.Column{{Name: "city", Type: schema.String}, {Name: "price", Type: schema.Double}}, 3)
	for i, city := range []string{"Kyoto", "Lima", "Oslo"} {
		b.Columns[0].SetCell(i, []byte(city))
	}
	copy(batch.Values[float64](b.Columns[1]), []float64{1.5, 7, 2})
	b.Selection.Clear(1)
	return b
}

// Visit the selected rows of a batch without moving them.
func ExampleRecordBatch_Rows() {
	b := sales()
	prices := batch.Values[float64](b.Columns[1])
	sum := 0.0
	for i := range b.Rows() {
		sum += prices[i]
	}
	fmt.Println(b.Selected(), sum)
	// Output: 2 3.5
}

// Make a batch dense, then use whole columns.
func ExampleRecordBatch_Compact() {
	b := sales()
	b.Compact()
	fmt.Println(b.Len, batch.Strings(b.Columns[0]), batch.Values[float64](b.Columns[1]))
	// Output: 2 [Kyoto Oslo] [1.5 2]
}
