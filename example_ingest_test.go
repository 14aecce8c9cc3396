package oribi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Ingest writes rows in key order directly to files, a few thousand at a time. They become visible
// all at once. If one key exists, the whole ingest is refused.
func ExampleTable_Ingest() {
	ctx := context.Background()
	store, files := filesTable()
	defer store.Close()

	const rows, step = 10000, 4000
	source := func(yield func([]*batch.Vector, error) bool) {
		for from := 0; from < rows; from += step {
			n := min(step, rows-from)
			paths, sizes := batch.NewVector(schema.String, n), batch.NewVector(schema.Int64, n)
			for i := range n {
				paths.Bytes[i] = fmt.Appendf(nil, "log/%05d", from+i)
				batch.Values[int64](sizes)[i] = int64(from + i)
			}
			if !yield([]*batch.Vector{paths, sizes}, nil) {
				return
			}
		}
	}
	ts, n, err := files.Ingest(ctx, source)
	fmt.Println(n, err)
	before, err := files.Count(ctx, oribi.AsOf(ts-1))
	fmt.Println(before, err)
	at, err := files.Count(ctx, oribi.AsOf(ts))
	fmt.Println(at, err)

	_, _, err = files.Ingest(ctx, source)
	var refused *oribi.RowError
	fmt.Println(errors.Is(err, oribi.ErrKeyExists), errors.As(err, &refused) && refused.Row == 0)
	// Output:
	// 10000 <nil>
	// 0 <nil>
	// 10000 <nil>
	// true true
}

// The typed form takes structs, also in key order.
func ExampleTableOf_Ingest() {
	type reading struct {
		Sensor string `oribi:"sensor,key"`
		Minute int64  `oribi:"minute,key"`
		Value  float64
	}
	ctx := context.Background()
	store, _ := filesTable()
	defer store.Close()
	columns, err := oribi.SchemaOf[reading]()
	if err != nil {
		log.Fatal(err)
	}
	table, err := store.CreateTable("readings", columns)
	if err != nil {
		log.Fatal(err)
	}
	readings, err := oribi.Typed[reading](table)
	if err != nil {
		log.Fatal(err)
	}
	_, n, err := readings.Ingest(ctx, func(yield func(reading) bool) {
		for _, sensor := range []string{"attic", "cellar"} {
			for minute := range int64(60) {
				if !yield(reading{sensor, minute, float64(minute) / 2}) {
					return
				}
			}
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	last, err := readings.Get(ctx, oribi.Key{"cellar", int64(59)})
	fmt.Println(n, last, err)
	// Output:
	// 120 {cellar 59 29.5} <nil>
}
